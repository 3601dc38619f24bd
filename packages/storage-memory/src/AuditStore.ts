/**
 * The audit log in memory.
 */
import { type AuditEntry, type AuditFilter, AuditStore, type NewAuditEntry, ProjectId } from "@device-cloud/core"
import { Effect, Layer, References } from "effect"
import * as IdempotencyStore from "./IdempotencyStore.ts"
import { Tables } from "./Tables.ts"

/** Can be replaced alone; then an entry is no longer stored together with its change. */
export const layer: Layer.Layer<AuditStore, never, Tables> = Layer.effect(
  AuditStore,
  Effect.map(Tables, (tables) => make(tables))
)

/** Entries that are kept; the oldest are forgotten first. */
const maxEntries = 100_000

const matches = (projectId: string, { action, end, keyId, resource, start }: AuditFilter) => (entry: AuditEntry) =>
  entry.projectId === projectId &&
  (keyId === undefined || entry.keyId === keyId) &&
  (action === undefined || entry.action === action) &&
  (resource === undefined || entry.resource.id === resource) &&
  (start === undefined || entry.at >= start) &&
  (end === undefined || entry.at < end)

const make = ({ audit, nextId, requests }: Tables["Service"]) => {
  const append = (entries: ReadonlyArray<NewAuditEntry>) => {
    for (const { claim, ...entry } of entries) {
      audit.push({ ...entry, id: nextId() })
      if (claim === undefined) continue
      const projectId = ProjectId.make(entry.projectId)
      IdempotencyStore.answer(requests, { ...claim, projectId }, { status: 200, body: null })
    }
    if (audit.length > maxEntries) audit.splice(0, audit.length - maxEntries)
  }

  return AuditStore.of({
    append: (entries) => Effect.sync(() => append(entries)),
    commit: (write, entriesOf) =>
      Effect.map(write, (result) => {
        append(entriesOf(result) ?? [])
        return result
      }).pipe(
        // One turn: nobody sees the change without its entry.
        Effect.provideService(References.PreventSchedulerYield, true),
        Effect.uninterruptible
      ),
    read: (projectId, filter, { after, limit }) =>
      Effect.sync(() =>
        audit.filter(matches(projectId, filter))
          .toSorted((a, b) => b.at - a.at || b.id - a.id)
          .filter(({ at, id }) => after === undefined || at < after.at || (at === after.at && id < after.id))
          .slice(0, limit)
      ),
    prune: ({ before, limit }) =>
      Effect.sync(() => {
        const old = new Set(audit.filter(({ at }) => at < before).toSorted((a, b) => a.at - b.at).slice(0, limit))
        if (old.size > 0) audit.splice(0, audit.length, ...audit.filter((entry) => !old.has(entry)))
        return old.size
      })
  })
}
