/**
 * Projects in memory.
 */
import { ProjectStore } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { paginate, Tables } from "./Tables.ts"

const make = Effect.gen(function*() {
  const { accessKeys, meshNetworks, products, projects } = yield* Tables
  return ProjectStore.of({
    insert: (project) =>
      Effect.sync(() => {
        if (projects.has(project.id)) return false
        projects.set(project.id, project)
        return true
      }),
    get: (id) => Effect.sync(() => Option.fromUndefinedOr(projects.get(id))),
    list: (page) => Effect.sync(() => paginate([...projects.values()], page)),
    remove: (id) =>
      Effect.sync(() => {
        if (!projects.has(id)) return "not-found"
        if ([...products.values()].some(({ projectId }) => projectId === id)) return "has-products"
        projects.delete(id)
        for (const key of accessKeys.values()) {
          if (key.projectId === id) accessKeys.delete(key.id)
        }
        for (const [networkId, { network }] of meshNetworks) {
          if (network.projectId === id) meshNetworks.delete(networkId)
        }
        return "removed"
      })
  })
})

export const layer: Layer.Layer<ProjectStore, never, Tables> = Layer.effect(ProjectStore, make)
