/**
 * Port: where projects are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { Page, PageRequest } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { Project, ProjectId } from "./Project.ts"

/** Laws: each call is one transaction. */
export class ProjectStore extends Context.Service<ProjectStore, {
  /** Stores a project. Returns false and changes nothing if the id exists. */
  readonly insert: (project: Project) => Effect.Effect<boolean, StoreError>
  /** Returns the project; none if it does not exist. */
  readonly get: (id: ProjectId) => Effect.Effect<Option.Option<Project>, StoreError>
  /** Returns a page of all projects. */
  readonly list: (page: PageRequest) => Effect.Effect<Page<Project>, StoreError>
  /** Removes the project with its access keys. Returns `has-products` and changes nothing if it has products. */
  readonly remove: (id: ProjectId) => Effect.Effect<"removed" | "not-found" | "has-products", StoreError>
}>()("@device-cloud/core/project/ProjectStore") {}
