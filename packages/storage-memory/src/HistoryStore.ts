/**
 * The history of devices in memory: the latest entries of each property and the
 * latest events of each device, so that memory stays bounded.
 */
import {
  Aggregate,
  type DeviceId,
  equalJson,
  type HistoryAddition,
  type HistoryRange,
  HistoryStore
} from "@device-cloud/core"
import { Effect, Layer, Stream } from "effect"
import { RingBuffer } from "./RingBuffer.ts"
import { Tables } from "./Tables.ts"

/** Keeps the latest 1000 values of each property and the latest 1000 events of each device. */
export const layer: Layer.Layer<HistoryStore, never, Tables> = Layer.effect(
  HistoryStore,
  Effect.map(Tables, (tables) => make(tables))
)

/** Adds entries as they are. */
export const append = (
  { histories }: Tables["Service"],
  deviceId: DeviceId,
  { events, samples }: Omit<HistoryAddition, "deviceId">
): void => {
  if (samples.length + events.length === 0) return
  let history = histories.get(deviceId)
  if (history === undefined) {
    history = { samples: new Map(), events: new RingBuffer() }
    histories.set(deviceId, history)
  }
  for (const { propertyId, time, value } of samples) {
    let series = history.samples.get(propertyId)
    if (series === undefined) {
      series = new RingBuffer()
      history.samples.set(propertyId, series)
    }
    series.push(time, value)
  }
  for (const event of events) history.events.push(event.time, event)
}

/** Leaves out the entries that are stored. */
const withoutKnown = (
  { histories }: Tables["Service"],
  { deviceId, events, samples }: HistoryAddition
): HistoryAddition => {
  const history = histories.get(deviceId)
  return {
    deviceId,
    samples: samples.filter(({ propertyId, time, value }) =>
      history?.samples.get(propertyId)?.has(time, (known) => equalJson(known, value)) !== true
    ),
    events: events.filter(({ eventId, time, value }) =>
      history?.events.has(time, (known) => known.eventId === eventId && equalJson(known.value, value)) !== true
    )
  }
}

const select = <A>(series: RingBuffer<A> | undefined, { end, limit, order, start }: HistoryRange) => {
  const inRange = (series?.entries(start, end) ?? []).toSorted((a, b) => a.time - b.time)
  return (order === "asc" ? inRange : inRange.toReversed()).slice(0, limit)
}

const everything = { limit: Number.POSITIVE_INFINITY, order: "asc" } as const

const millisOfDay = 86_400_000

const make = (tables: Tables["Service"]): HistoryStore["Service"] => {
  const { devices, histories, historyDays } = tables
  return {
    samples: (deviceId, propertyId, range) =>
      Effect.sync(() =>
        select(histories.get(deviceId)?.samples.get(propertyId), range).map(({ time, value }) => ({
          propertyId,
          time,
          value
        }))
      ),
    events: (deviceId, eventId, range) =>
      Effect.sync(() =>
        select(histories.get(deviceId)?.events, { ...range, limit: everything.limit })
          .map(({ value }) => value)
          .filter((event) => eventId === undefined || event.eventId === eventId)
          .slice(0, range.limit)
      ),
    aggregate: (deviceId, propertyId, intervals) =>
      Effect.sync(() => {
        const aggregate = new Aggregate(intervals)
        const series = histories.get(deviceId)?.samples.get(propertyId)
        for (const { time, value } of series?.entries() ?? []) aggregate.add(time, value)
        return aggregate.buckets()
      }),
    scan: (deviceId, { end, propertyIds, start }) =>
      Stream.suspend(() => {
        const samples = histories.get(deviceId)?.samples
        return Stream.fromIterable(propertyIds ?? samples?.keys() ?? []).pipe(
          Stream.map((propertyId) =>
            select(samples?.get(propertyId), { start, end, ...everything })
              .map(({ time, value }) => ({ propertyId, time, value }))
          ),
          Stream.filter((chunk) => chunk.length > 0)
        )
      }),
    devicesWithin: (deviceIds, { end, start }) =>
      Effect.sync(() =>
        deviceIds.filter((deviceId) => {
          const samples = histories.get(deviceId)?.samples.values() ?? []
          return [...samples].some((series) => series.entries(start, end).length > 0)
        })
      ),
    append: (additions) =>
      Effect.sync(() => {
        const added = additions.map((addition) => withoutKnown(tables, addition))
        for (const addition of added) append(tables, addition.deviceId, addition)
      }),
    remove: (deviceIds) =>
      Effect.sync(() => {
        for (const deviceId of deviceIds) histories.delete(deviceId)
      }),
    prune: ({ keepDays }) =>
      Effect.clockWith((clock) =>
        Effect.sync(() => {
          const now = clock.currentTimeMillisUnsafe()
          for (const [deviceId, { events, samples }] of histories) {
            const productKey = devices.get(deviceId)?.productKey
            const days = (productKey === undefined ? undefined : historyDays.get(productKey)) ?? keepDays
            if (days === 0) continue
            for (const series of [events, ...samples.values()]) series.prune(now - days * millisOfDay)
          }
        })
      ),
    maintain: Effect.void
  }
}
