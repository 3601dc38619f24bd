/**
 * Access keys in memory.
 */
import { AccessKeyStore } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { paginate, Tables } from "./Tables.ts"

/** Can be replaced alone. It refuses keys of projects that its tables do not have. */
export const layer: Layer.Layer<AccessKeyStore, never, Tables> = Layer.effect(
  AccessKeyStore,
  Effect.map(Tables, (tables) => make(tables))
)

const make = ({ accessKeys, projects }: Tables["Service"]) =>
  AccessKeyStore.of({
    insert: (key) =>
      Effect.sync(() => {
        if (!projects.has(key.projectId)) return false
        accessKeys.set(key.id, key)
        return true
      }),
    replaceOwner: (key) =>
      Effect.sync(() => {
        for (const { id, role } of accessKeys.values()) {
          if (role === "owner") accessKeys.delete(id)
        }
        accessKeys.set(key.id, key)
      }),
    find: (id) => Effect.sync(() => Option.fromUndefinedOr(accessKeys.get(id))),
    list: (projectId, page) =>
      Effect.sync(() => paginate([...accessKeys.values()].filter((key) => key.projectId === projectId), page)),
    remove: (projectId, id) => Effect.sync(() => accessKeys.get(id)?.projectId === projectId && accessKeys.delete(id))
  })
