/**
 * Manages projects.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { Identifiers } from "../kernel/Identifiers.ts"
import { decodeInput, type InvalidInput } from "../kernel/InvalidInput.ts"
import { type Page, paged, type PageRequest } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { AccessKeys } from "./AccessKeys.ts"
import {
  defaultProjectId,
  type Project,
  ProjectDraft,
  ProjectId,
  ProjectNotFound,
  ProjectNotRemovable
} from "./Project.ts"
import { ProjectStore } from "./ProjectStore.ts"

export class Projects extends Context.Service<Projects, {
  /** Creates a project with a new id. */
  readonly create: (draft: ProjectDraft) => Effect.Effect<Project, InvalidInput | StoreError>
  /** Returns the project. */
  readonly get: (projectId: ProjectId) => Effect.Effect<Project, ProjectNotFound | StoreError>
  /** Returns a page of all projects. */
  readonly list: (page: PageRequest) => Effect.Effect<Page<Project>, InvalidInput | StoreError>
  /**
   * Removes the project and its access keys. Fails with `ProjectNotRemovable` for
   * the default project and for a project that has products.
   */
  readonly remove: (
    projectId: ProjectId
  ) => Effect.Effect<void, ProjectNotFound | ProjectNotRemovable | StoreError>
}>()("@device-cloud/core/project/Projects") {
  /** Creates the default project if it does not exist. */
  static readonly layer: Layer.Layer<Projects, StoreError, ProjectStore | Identifiers | AccessKeys> = Layer.effect(
    Projects,
    Effect.suspend(() => make)
  )
}

const decodeDraft = decodeInput(ProjectDraft)

const make = Effect.gen(function*() {
  const store = yield* ProjectStore
  const identifiers = yield* Identifiers
  const accessKeys = yield* AccessKeys

  yield* store.insert({
    id: defaultProjectId,
    name: "default",
    createdAt: yield* Clock.currentTimeMillis
  })

  const create = Effect.fn("Projects.create")(function*(input: ProjectDraft) {
    const draft = yield* decodeDraft(input)
    const project: Project = {
      id: ProjectId.make(yield* identifiers.projectId),
      name: draft.name,
      createdAt: yield* Clock.currentTimeMillis
    }
    yield* store.insert(project)
    return project
  })

  const get = Effect.fn("Projects.get")(function*(projectId: ProjectId) {
    const project = yield* store.get(projectId)
    return yield* Effect.fromOption(project, () => new ProjectNotFound({ projectId }))
  })

  const remove = Effect.fn("Projects.remove")(function*(projectId: ProjectId) {
    if (projectId === defaultProjectId) {
      return yield* new ProjectNotRemovable({ projectId, reason: "is-default" })
    }
    switch (yield* store.remove(projectId)) {
      case "removed":
        return yield* accessKeys.forget
      case "not-found":
        return yield* new ProjectNotFound({ projectId })
      case "has-products":
        return yield* new ProjectNotRemovable({ projectId, reason: "has-products" })
    }
  })

  return Projects.of({ create, get, list: paged(store.list), remove })
})
