/**
 * Projects: the tenants of the cloud. Every product, device and access key
 * belongs to one and is invisible to all others.
 */
import { Schema } from "effect"
import { DomainError } from "../kernel/DomainError.ts"
import { NonBlankText } from "../kernel/Text.ts"

export const ProjectId = Schema.String.pipe(Schema.brand("ProjectId"))
export type ProjectId = typeof ProjectId.Type

/** The project that always exists. */
export const defaultProjectId = ProjectId.make("default")

export interface Project {
  readonly id: ProjectId
  readonly name: string
  /** Unix milliseconds. */
  readonly createdAt: number
}

/** What the caller decides about a new project. */
export const ProjectDraft = Schema.Struct({
  name: NonBlankText(128)
})
export type ProjectDraft = typeof ProjectDraft.Type

/** There is no such project. */
export class ProjectNotFound extends DomainError<ProjectNotFound>()(
  "ProjectNotFound",
  {
    projectId: Schema.String
  },
  ({ projectId }) => `There is no project ${projectId}`
) {}

/** The project is the default project, or has products. */
export class ProjectNotRemovable extends DomainError<ProjectNotRemovable>()(
  "ProjectNotRemovable",
  {
    projectId: Schema.String,
    reason: Schema.Literals(["is-default", "has-products"])
  },
  ({ projectId, reason }) =>
    reason === "is-default"
      ? `Project ${projectId} is the default one and cannot be deleted`
      : `Project ${projectId} still has products; delete them first`
) {}
