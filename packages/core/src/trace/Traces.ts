/**
 * Shows operators what a device says and hears, message by message
 * (docs/api/traces.md).
 */
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"
import type { DeviceId, DeviceNotFound } from "../device/Device.ts"
import { Devices } from "../device/Devices.ts"
import { DomainError } from "../kernel/DomainError.ts"
import { decodeInput, type InvalidInput } from "../kernel/InvalidInput.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"
import { maxTracedDevices, maxTraceMinutes } from "./TraceEntry.ts"
import { TraceRecorder } from "./TraceRecorder.ts"
import { type TracePart, TraceStore } from "./TraceStore.ts"

export class Traces extends Context.Service<Traces, {
  /**
   * Traces the device for so many minutes from now, 1 to {@link maxTraceMinutes}, on
   * whichever node it is. Returns until when, Unix milliseconds. Fails with
   * `TooManyTraces` if {@link maxTracedDevices} other devices of the project are traced.
   */
  readonly start: (
    projectId: ProjectId,
    deviceId: DeviceId,
    minutes: number
  ) => Effect.Effect<number, InvalidInput | DeviceNotFound | TooManyTraces | StoreError>
  /** Ends the trace; its entries are kept for ten minutes more. Without effect if there is none. */
  readonly stop: (projectId: ProjectId, deviceId: DeviceId) => Effect.Effect<void, DeviceNotFound | StoreError>
  /**
   * Returns `limit` entries after the one with the number `after`, or without it the
   * latest, the oldest first. A device without a trace has none, and `until` is 0.
   */
  readonly read: (
    projectId: ProjectId,
    deviceId: DeviceId,
    page: { readonly after?: number | undefined; readonly limit: number }
  ) => Effect.Effect<TracePart, DeviceNotFound | StoreError>
}>()("@device-cloud/core/trace/Traces") {
  static readonly layer: Layer.Layer<Traces, never, Devices | TraceStore | TraceRecorder> = Layer.effect(
    Traces,
    Effect.suspend(() => make)
  )
}

/** So many devices of the project are traced already. */
export class TooManyTraces extends DomainError<TooManyTraces>()(
  "TooManyTraces",
  { max: Schema.Int },
  ({ max }) => `${max} devices of the project are traced already; end another trace first`
) {}

/** How long a device is traced. */
export const TraceDraft = Schema.Struct({
  minutes: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxTraceMinutes }))
})

const decodeDraft = decodeInput(TraceDraft)

const noTrace: TracePart = { until: 0, dropped: 0, entries: [] }

const make = Effect.gen(function*() {
  const devices = yield* Devices
  const store = yield* TraceStore
  const recorder = yield* TraceRecorder

  const start = Effect.fn("Traces.start")(function*(projectId: ProjectId, deviceId: DeviceId, asked: number) {
    const { minutes } = yield* decodeDraft({ minutes: asked })
    yield* devices.get(projectId, { deviceId })
    const now = yield* Clock.currentTimeMillis
    const until = now + minutes * 60_000
    if (!(yield* store.start({ projectId, deviceId, until, now, max: maxTracedDevices }))) {
      // It may have been deleted meanwhile.
      yield* devices.get(projectId, { deviceId })
      return yield* new TooManyTraces({ max: maxTracedDevices })
    }
    yield* recorder.changed
    return until
  })

  const stop = Effect.fn("Traces.stop")(function*(projectId: ProjectId, deviceId: DeviceId) {
    yield* devices.get(projectId, { deviceId })
    if (yield* store.stop(deviceId, yield* Clock.currentTimeMillis)) yield* recorder.changed
  })

  const read: Traces["Service"]["read"] = Effect.fn("Traces.read")(function*(projectId, deviceId, page) {
    yield* devices.get(projectId, { deviceId })
    return Option.getOrElse(yield* store.read(deviceId, page), () => noTrace)
  })

  return Traces.of({ start, stop, read })
})
