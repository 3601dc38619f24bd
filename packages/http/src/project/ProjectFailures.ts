/**
 * Failures of the routes of projects and access keys, and of access keys that
 * come with a request.
 */
import type * as Core from "@device-cloud/core"
import { Code } from "../Code.ts"
import { failure } from "../Failure.ts"

export const Unauthorized = failure("Unauthorized", Code.unauthorized, "The access key is missing or unknown")

export const AccessKeyExpired = failure("AccessKeyExpired", Code.accessKeyExpired, "The access key has expired")

export const RoleTooLow = failure("RoleTooLow", Code.roleTooLow, "The role of the access key is too low")

export const NoSuchAccessKey = failure(
  "NoSuchAccessKey",
  Code.noSuchAccessKeyOrProject,
  "The project has no such access key"
)

export const AccessKeyNotRemovable = failure(
  "AccessKeyNotRemovable",
  Code.stateForbids,
  "The access key is the owner's, which can only be replaced"
)

export const NoSuchProject = failure("NoSuchProject", Code.noSuchAccessKeyOrProject, "There is no such project")

export const ProjectNotRemovable = failure(
  "ProjectNotRemovable",
  Code.stateForbids,
  "The project is the default one, or it still has products"
)

/** From the errors of the domain. */
export const projectFailures = {
  UnknownAccessKey: () => Unauthorized.make({ message: "Send a valid access key: Authorization: Bearer dck_…" }),
  AccessKeyExpired: () => AccessKeyExpired.make({ message: "The access key has expired; ask for a new one" }),
  AccessKeyNotFound: ({ accessKeyId }: Core.AccessKeyNotFound) =>
    NoSuchAccessKey.make({ message: `There is no access key ${accessKeyId} in this project` }),
  AccessKeyNotRemovable: ({ accessKeyId }: Core.AccessKeyNotRemovable) =>
    AccessKeyNotRemovable.make({ message: `Access key ${accessKeyId} is the owner's; it can only be replaced` }),
  ProjectNotFound: ({ projectId }: Core.ProjectNotFound) =>
    NoSuchProject.make({ message: `There is no project ${projectId}` }),
  ProjectNotRemovable: ({ projectId, reason }: Core.ProjectNotRemovable) =>
    ProjectNotRemovable.make({
      message: reason === "is-default"
        ? "The default project cannot be deleted"
        : `Project ${projectId} still has products; delete them first`
    })
}
