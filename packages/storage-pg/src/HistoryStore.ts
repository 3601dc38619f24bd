/**
 * The history of devices on PostgreSQL (docs/decisions/0080-packed-history.md).
 */
import {
  Aggregate,
  type DeviceId,
  type HistoryRange,
  type HistoryScan,
  HistoryStore,
  type Json
} from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Stream } from "effect"
import type { EntryKind } from "./HistoryEntries.ts"
import { append, remove } from "./HistoryApartWrites.ts"
import { maintain, prune } from "./HistoryPacker.ts"
import { devicesWithin, namesOf, outermost, pages, type Run, Unpacked } from "./HistoryReads.ts"
import { type Clients, clients } from "./LongReads.ts"
import { storeError } from "./PgErrors.ts"

/** Stands alone: its tables need no others. */
export const layer: Layer.Layer<HistoryStore, never, PgClient.PgClient> = Layer.effect(
  HistoryStore,
  Effect.map(clients, (both) => make(both))
)

interface Entry {
  readonly name: string
  readonly time: number
  readonly value: Json
}

/** Segments that a scan reads at once: nobody waits for it, and to sort more would hold up others. */
const scanned = 4

/**
 * The first entries by time, or the last ones; those of the same time in the order in
 * which they were stored, or its reverse.
 */
const select = (runs: ReadonlyArray<Run>, bounds: Pick<HistoryRange, "limit" | "order">): ReadonlyArray<Entry> => {
  const { limit, order } = bounds
  const entries = outermost(runs, bounds).flatMap(({ name, read }) => {
    const { times, values } = read()
    const start = order === "asc" ? 0 : Math.max(0, times.length - limit)
    return times.slice(start, start + limit).map((time, i): Entry => ({ name, time, value: values[start + i]! }))
  }).sort((a, b) => a.time - b.time)
  return order === "asc" ? entries : entries.toReversed()
}

const everything = { limit: Number.POSITIVE_INFINITY, order: "asc" } as const

const make = ({ reads, sql }: Clients): HistoryStore["Service"] => {
  const read = (deviceId: DeviceId, kind: EntryKind, names: ReadonlyArray<string>, range: HistoryRange) =>
    pages(reads, { deviceId, kind, names }, range).pipe(
      Stream.flatMap((runs) => Stream.fromIterable(select(runs, range))),
      Stream.take(range.limit),
      Stream.runCollect
    )

  const scan = (deviceId: DeviceId, { end, propertyIds, start }: HistoryScan) =>
    Stream.suspend(() => {
      const unpacked = new Unpacked()
      return Stream.fromEffect(
        propertyIds === undefined ? namesOf(reads, deviceId, "property") : Effect.succeed(propertyIds)
      ).pipe(
        Stream.flatMap((names) => Stream.fromIterable(names)),
        Stream.flatMap((name) =>
          pages(reads, { deviceId, kind: "property", names: [name] }, { start, end, order: "asc" }, scanned, unpacked)
        ),
        Stream.map((runs) =>
          select(runs, everything).map(({ name, time, value }) => ({ propertyId: name, time, value }))
        ),
        Stream.filter((samples) => samples.length > 0)
      )
    })

  return {
    samples: (deviceId, propertyId, range) =>
      read(deviceId, "property", [propertyId], range).pipe(
        Effect.map((entries) => entries.map(({ time, value }) => ({ propertyId, time, value }))),
        Effect.mapError(storeError("HistoryStore.samples"))
      ),
    events: (deviceId, eventId, range) =>
      (eventId === undefined ? namesOf(reads, deviceId, "event") : Effect.succeed([eventId])).pipe(
        Effect.flatMap((names) => read(deviceId, "event", names, range)),
        Effect.map((entries) => entries.map(({ name, time, value }) => ({ eventId: name, time, value }))),
        Effect.mapError(storeError("HistoryStore.events"))
      ),
    aggregate: (deviceId, propertyId, intervals) =>
      Effect.suspend(() => {
        const aggregate = new Aggregate(intervals)
        const { end, start } = intervals
        return pages(reads, { deviceId, kind: "property", names: [propertyId] }, { start, end, order: "asc" }).pipe(
          Stream.runForEach((runs) =>
            Effect.sync(() => {
              for (const { read } of runs) {
                const { times, values } = read()
                for (let i = 0; i < times.length; i++) aggregate.add(times[i]!, values[i]!)
              }
            })
          ),
          Effect.map(() => aggregate.buckets()),
          Effect.mapError(storeError("HistoryStore.aggregate"))
        )
      }),
    scan: (deviceId, range) => Stream.mapError(scan(deviceId, range), storeError("HistoryStore.scan")),
    devicesWithin: (deviceIds, range) =>
      Effect.mapError(devicesWithin(reads, deviceIds, range), storeError("HistoryStore.devicesWithin")),
    append: (additions) => Effect.mapError(append(sql, additions), storeError("HistoryStore.append")),
    remove: (deviceIds) => Effect.mapError(remove(sql, deviceIds), storeError("HistoryStore.remove")),
    prune: ({ keepDays }) => Effect.mapError(prune(reads, keepDays), storeError("HistoryStore.prune")),
    maintain: Effect.mapError(maintain(reads), storeError("HistoryStore.maintain"))
  }
}
