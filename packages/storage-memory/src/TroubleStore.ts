/**
 * What has gone wrong lately, in memory.
 */
import { type Trouble, troubleMillis, TroubleStore } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { Tables } from "./Tables.ts"

/** Can be replaced alone. It drops troubles of projects that its tables do not have. */
export const layer: Layer.Layer<TroubleStore, never, Tables> = Layer.effect(
  TroubleStore,
  Effect.map(Tables, (tables) => make(tables))
)

const keyOf = ({ kind, projectId, subject }: Trouble): string => `${kind} ${projectId} ${subject}`

/** Trouble together with what is known of it. */
const added = (known: Trouble | undefined, trouble: Trouble): Trouble => {
  if (known === undefined) return trouble
  const wasOver = trouble.since - known.at >= troubleMillis
  return {
    ...trouble,
    times: trouble.times + (wasOver ? 0 : known.times),
    since: wasOver ? trouble.since : Math.min(known.since, trouble.since),
    detail: trouble.at >= known.at ? trouble.detail : known.detail,
    at: Math.max(known.at, trouble.at)
  }
}

const worstFirst = (a: Trouble, b: Trouble) =>
  a.kind === b.kind ? b.times - a.times || b.at - a.at || (a.subject < b.subject ? -1 : 1) : a.kind < b.kind ? -1 : 1

const make = ({ projects, troubles }: Tables["Service"]) =>
  TroubleStore.of({
    note: (noted) =>
      Effect.sync(() => {
        for (const trouble of noted) {
          if (!projects.has(trouble.projectId)) continue
          troubles.set(keyOf(trouble), added(troubles.get(keyOf(trouble)), trouble))
        }
      }),
    latest: (projectId, since, limit) =>
      Effect.sync(() => {
        const found = [...troubles.values()].filter((one) => one.projectId === projectId && one.at >= since)
        const places = new Map<string, number>()
        return found.toSorted(worstFirst).filter(({ kind }) => {
          const place = (places.get(kind) ?? 0) + 1
          places.set(kind, place)
          return place <= limit
        })
      }),
    prune: ({ before, limit }) =>
      Effect.sync(() => {
        const old = [...troubles].filter(([, { at }]) => at < before).slice(0, limit)
        for (const [key] of old) troubles.delete(key)
        return old.length
      })
  })
