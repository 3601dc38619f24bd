/**
 * The history of devices in memory: the latest of it, so that memory stays
 * bounded.
 */
import { type DeviceId, type HistoryRange, HistoryStore, type UplinkFacts } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { RingBuffer } from "./RingBuffer.ts"
import { Tables } from "./Tables.ts"

export const append = (
  { histories }: Tables["Service"],
  deviceId: DeviceId,
  facts: Pick<UplinkFacts, "samples" | "events">,
  now: number
): void => {
  if (facts.samples.length + facts.events.length === 0) return
  let history = histories.get(deviceId)
  if (history === undefined) {
    history = { samples: new Map(), events: new RingBuffer() }
    histories.set(deviceId, history)
  }
  for (const { propertyId, time, value } of facts.samples) {
    let series = history.samples.get(propertyId)
    if (series === undefined) {
      series = new RingBuffer()
      history.samples.set(propertyId, series)
    }
    series.push(time, value, now)
  }
  for (const event of facts.events) history.events.push(event.time, event, now)
}

const select = <A>(series: RingBuffer<A> | undefined, { end, limit, order, start }: HistoryRange) => {
  const inRange = (series?.entries() ?? []).filter(({ time }) => time >= start && time <= end)
    .sort((a, b) => a.time - b.time)
  return (order === "asc" ? inRange : inRange.toReversed()).slice(0, limit)
}

const make = Effect.gen(function*() {
  const { histories } = yield* Tables
  return HistoryStore.of({
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
        select(histories.get(deviceId)?.events, { ...range, limit: Number.POSITIVE_INFINITY })
          .map(({ value }) => value)
          .filter((event) => eventId === undefined || event.eventId === eventId)
          .slice(0, range.limit)
      ),
    prune: ({ limit, storedBefore }) =>
      Effect.sync(() => {
        let count = 0
        for (const { events, samples } of histories.values()) {
          for (const series of [events, ...samples.values()]) count += series.prune(storedBefore, limit - count)
        }
        return count
      })
  })
})

export const layer: Layer.Layer<HistoryStore, never, Tables> = Layer.effect(HistoryStore, make)
