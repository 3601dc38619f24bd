/**
 * Failures of the routes of projects and access keys, and of access keys that
 * come with a request.
 */
import type * as Core from "@device-cloud/core"
import { Code } from "../Code.ts"
import { failure, retryData } from "../Failure.ts"
import { snakeCase } from "../SnakeCase.ts"

export const Unauthorized = failure("Unauthorized", Code.unauthorized, "The access key is missing or unknown")

export const AccessKeyExpired = failure("AccessKeyExpired", Code.accessKeyExpired, "The access key has expired")

export const RoleTooLow = failure(
  "RoleTooLow",
  Code.roleTooLow,
  "The role, the scopes or the addresses of the access key do not allow this"
)

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

export const QuotaExceeded = failure("QuotaExceeded", Code.stateForbids, "The project has as much as its quota admits")

export const TooManyRegistrations = failure(
  "TooManyRegistrations",
  Code.tooMany,
  "The product has too many registrations a minute",
  retryData
)

/** What is counted, as a sentence names it. */
const counted = {
  products: "products",
  devices: "devices",
  deviceGroups: "device groups",
  subscriptions: "subscriptions",
  accessKeys: "access keys",
  scenes: "scenes",
  jobs: "jobs",
  objectBytes: "bytes of objects"
} as const

/** From the errors of the domain. */
export const projectFailures = {
  QuotaExceeded: ({ limit, quota }: Core.QuotaExceeded) =>
    QuotaExceeded.make({
      message: `The project may have ${limit} ${counted[quota]}; an owner can raise its quota ${snakeCase(quota)}`
    }),
  TooManyRegistrations: ({ limit, retryAfter }: Core.TooManyRegistrations) =>
    TooManyRegistrations.make({
      message:
        `A product of the project may have ${limit} registrations a minute; an owner can raise its quota registrations_per_minute`,
      data: { retry_after: retryAfter }
    }),
  UnknownAccessKey: () => Unauthorized.make({ message: "Send a valid access key: Authorization: Bearer dck_…" }),
  AccessKeyExpired: () => AccessKeyExpired.make({ message: "The access key has expired; ask for a new one" }),
  RightsExceeded: ({ field }: Core.RightsExceeded) =>
    RoleTooLow.make({
      message: field === "projectId"
        ? "project_id: only an owner may name another project"
        : `${snakeCase(field)}: an access key cannot give a right that it does not have itself`
    }),
  AccessKeyNotFound: ({ message }: Core.AccessKeyNotFound) => NoSuchAccessKey.make({ message }),
  AccessKeyNotRemovable: ({ message }: Core.AccessKeyNotRemovable) => AccessKeyNotRemovable.make({ message }),
  ProjectNotFound: ({ message }: Core.ProjectNotFound) => NoSuchProject.make({ message }),
  ProjectNotRemovable: ({ message }: Core.ProjectNotRemovable) => ProjectNotRemovable.make({ message })
}
