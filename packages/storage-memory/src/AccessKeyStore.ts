/**
 * Access keys in memory.
 */
import { AccessKeyStore } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { paginate, removeAccessKey, Tables } from "./Tables.ts"

/** Can be replaced alone. It refuses keys of projects that its tables do not have. */
export const layer: Layer.Layer<AccessKeyStore, never, Tables> = Layer.effect(
  AccessKeyStore,
  Effect.map(Tables, (tables) => make(tables))
)

const make = (tables: Tables["Service"]) => {
  const { accessKeys, projects } = tables
  /** The keys that come from this one, but for owners. */
  const descendants = (id: string): ReadonlyArray<string> => {
    const found = new Set([id])
    // A set that grows while it is walked: also what the created keys have created.
    for (const creator of found) {
      for (const { createdBy, id, role } of accessKeys.values()) {
        if (createdBy === creator && role !== "owner") found.add(id)
      }
    }
    found.delete(id)
    return [...found]
  }

  const removeAll = (ids: ReadonlyArray<string>): ReadonlyArray<string> => {
    for (const id of ids) removeAccessKey(tables, id)
    return ids
  }

  return AccessKeyStore.of({
    insert: (key) =>
      Effect.sync(() => {
        if (!projects.has(key.projectId)) return "no-project"
        if (key.createdBy !== null && !accessKeys.has(key.createdBy)) return "no-creator"
        accessKeys.set(key.id, key)
        return "inserted"
      }),
    replaceOwner: (key) =>
      Effect.sync(() => {
        const known = accessKeys.get(key.id)
        const isOwner = known?.role === "owner" && known.hash === key.hash
        for (const { id, role } of accessKeys.values()) {
          if (id === key.id ? !isOwner : role === "owner") removeAccessKey(tables, id)
        }
        if (!isOwner) accessKeys.set(key.id, key)
      }),
    find: (id) => Effect.sync(() => Option.fromUndefinedOr(accessKeys.get(id))),
    list: (projectId, page) =>
      Effect.sync(() => paginate([...accessKeys.values()].filter((key) => key.projectId === projectId), page)),
    remove: (projectId, id, options) =>
      Effect.sync(() => {
        const key = accessKeys.get(id)
        if (key?.projectId !== projectId || key.role === "owner") return []
        if (options?.cascade === true) return removeAll([id, ...descendants(id)])
        for (const child of accessKeys.values()) {
          if (child.createdBy === id) accessKeys.set(child.id, { ...child, createdBy: key.createdBy })
        }
        return removeAll([id])
      }),
    removeDescendants: (id) => Effect.sync(() => removeAll(descendants(id))),
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
}
