/**
 * The history of devices in memory: the latest of it, so that memory stays
 * bounded.
 */
import { type DeviceId, type Facts, type HistoryRange, TelemetryStore } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { type Stored, Tables } from "./Tables.ts"

/** Entries that are kept of each property, and of all events of a device. */
const kept = 1000

const push = <A>(entries: Array<Stored<A>>, entry: A, storedAt: number): void => {
  entries.push({ entry, storedAt })
  if (entries.length >= 2 * kept) entries.splice(0, entries.length - kept)
}

export const append = ({ histories }: Tables["Service"], deviceId: DeviceId, facts: Facts, now: number): void => {
  if (facts.samples.length + facts.events.length === 0) return
  let history = histories.get(deviceId)
  if (history === undefined) {
    history = { samples: new Map(), events: [] }
    histories.set(deviceId, history)
  }
  for (const sample of facts.samples) {
    const samples = history.samples.get(sample.propertyId)
    if (samples === undefined) history.samples.set(sample.propertyId, [{ entry: sample, storedAt: now }])
    else push(samples, sample, now)
  }
  for (const event of facts.events) push(history.events, event, now)
}

const select = <A extends { readonly time: number }>(
  entries: ReadonlyArray<Stored<A>>,
  { end, limit, order, start }: HistoryRange
): ReadonlyArray<A> => {
  const inRange = entries.map(({ entry }) => entry).filter(({ time }) => time >= start && time <= end)
    .sort((a, b) => a.time - b.time)
  return (order === "asc" ? inRange : inRange.toReversed()).slice(0, limit)
}

const make = Effect.gen(function*() {
  const { histories } = yield* Tables
  return TelemetryStore.of({
    samples: (deviceId, propertyId, range) =>
      Effect.sync(() => select(histories.get(deviceId)?.samples.get(propertyId) ?? [], range)),
    events: (deviceId, eventId, range) =>
      Effect.sync(() =>
        select(
          (histories.get(deviceId)?.events ?? []).filter(({ entry }) =>
            eventId === undefined || entry.eventId === eventId
          ),
          range
        )
      ),
    prune: ({ limit, storedBefore }) =>
      Effect.sync(() => {
        let count = 0
        for (const { events, samples } of histories.values()) {
          for (const entries of [events, ...samples.values()]) {
            const old = Math.min(entries.filter(({ storedAt }) => storedAt < storedBefore).length, limit - count)
            entries.splice(0, old)
            count += old
          }
        }
        return count
      })
  })
})

export const layer: Layer.Layer<TelemetryStore, never, Tables> = Layer.effect(TelemetryStore, make)
