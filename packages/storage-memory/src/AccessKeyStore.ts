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
        if (!projects.has(key.projectId)) return "no-project"
        if (key.createdBy !== null && !accessKeys.has(key.createdBy)) return "no-creator"
        accessKeys.set(key.id, key)
        return "inserted"
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
    remove: (projectId, id, options) =>
      Effect.sync(() => {
        const key = accessKeys.get(id)
        if (key?.projectId !== projectId || key.role === "owner") return []
        const gone = new Set([id])
        if (options?.cascade === true) {
          // A set that grows while it is walked: also what the created keys have created.
          for (const creator of gone) {
            for (const { createdBy, id, role } of accessKeys.values()) {
              if (createdBy === creator && role !== "owner") gone.add(id)
            }
          }
        } else {
          for (const child of accessKeys.values()) {
            if (child.createdBy === id) accessKeys.set(child.id, { ...child, createdBy: key.createdBy })
          }
        }
        for (const each of gone) accessKeys.delete(each)
        return [...gone]
      }),
    markUsed: (uses) =>
      Effect.sync(() => {
        for (const { at, id } of uses) {
          const key = accessKeys.get(id)
          if (key !== undefined && (key.lastUsedAt === null || key.lastUsedAt < at)) {
            accessKeys.set(id, { ...key, lastUsedAt: at })
          }
        }
      })
  })
