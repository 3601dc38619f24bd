/**
 * Traces of devices, in memory.
 */
import { type DeviceId, type PlacedEntry, TraceStore } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { Tables } from "./Tables.ts"

/** Can be replaced alone. It drops what is noted of devices that its tables do not have. */
export const layer: Layer.Layer<TraceStore, never, Tables> = Layer.effect(
  TraceStore,
  Effect.map(Tables, (tables) => make(tables))
)

/** The trace of a device. */
export interface StoredTrace {
  readonly until: number
  readonly dropped: number
  readonly lastSeq: number
  readonly entries: ReadonlyArray<PlacedEntry>
}

const make = ({ devices, traces }: Tables["Service"]) => {
  const isOn = (deviceId: DeviceId, now: number) => (traces.get(deviceId)?.until ?? 0) > now

  return TraceStore.of({
    start: ({ deviceId, max, now, projectId, until }) =>
      Effect.sync(() => {
        if (devices.get(deviceId)?.projectId !== projectId) return false
        const others = [...traces.keys()].filter((other) =>
          other !== deviceId && isOn(other, now) && devices.get(other)?.projectId === projectId
        )
        if (others.length >= max) return false
        // Numbers of a trace that was removed were smaller.
        const { dropped, entries, lastSeq } = traces.get(deviceId) ?? { dropped: 0, entries: [], lastSeq: now }
        traces.set(deviceId, { until, dropped, lastSeq, entries })
        return true
      }),
    stop: (deviceId, now) =>
      Effect.sync(() => {
        const trace = traces.get(deviceId)
        if (trace === undefined || trace.until <= now) return false
        traces.set(deviceId, { ...trace, until: now })
        return true
      }),
    active: (now) =>
      Effect.sync(() =>
        [...traces].flatMap(([deviceId, { until }]) => {
          const device = devices.get(deviceId)
          return device === undefined || until <= now
            ? []
            : [{ deviceId, productKey: device.productKey, deviceName: device.deviceName, until }]
        })
      ),
    append: (noted, keep) =>
      Effect.sync(() => {
        for (const { deviceId, dropped, entries } of noted) {
          const trace = traces.get(deviceId)
          if (trace === undefined) continue
          const added = entries.map((entry, i) => ({ seq: trace.lastSeq + 1 + i, entry }))
          traces.set(deviceId, {
            until: trace.until,
            dropped: trace.dropped + dropped,
            lastSeq: trace.lastSeq + added.length,
            entries: [...trace.entries, ...added].slice(-keep)
          })
        }
      }),
    read: (deviceId, { after, limit }) =>
      Effect.sync(() =>
        Option.map(Option.fromUndefinedOr(traces.get(deviceId)), ({ dropped, entries, until }) => ({
          until,
          dropped,
          entries: after === undefined
            ? entries.slice(-limit)
            : entries.filter(({ seq }) => seq > after).slice(0, limit)
        }))
      ),
    prune: (before) =>
      Effect.sync(() => {
        for (const [deviceId, { until }] of traces) if (until < before) traces.delete(deviceId)
      })
  })
}
