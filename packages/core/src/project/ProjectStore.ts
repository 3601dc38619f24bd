/**
 * Port: where projects are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { Page, PageRequest } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { Project, ProjectId } from "./Project.ts"

/**
 * Laws: `insert` of an id that exists changes nothing and answers false;
 * `remove` takes the project's access keys with it, in one transaction, and
 * refuses a project that has products.
 */
export class ProjectStore extends Context.Service<ProjectStore, {
  readonly insert: (project: Project) => Effect.Effect<boolean, StoreError>
  readonly get: (id: ProjectId) => Effect.Effect<Option.Option<Project>, StoreError>
  readonly list: (page: PageRequest) => Effect.Effect<Page<Project>, StoreError>
  readonly remove: (id: ProjectId) => Effect.Effect<"removed" | "not-found" | "has-products", StoreError>
}>()("@device-cloud/core/project/ProjectStore") {}
