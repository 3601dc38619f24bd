/**
 * Reads what devices have said over time, and forgets what is too old.
 */
import { Clock, Context, Duration, Effect, Layer, Schedule, Schema } from "effect"
import type { DeviceId, DeviceNotFound } from "../device/Device.ts"
import { Devices } from "../device/Devices.ts"
import type { ProjectId } from "../project/Project.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { EventRecord, HistoryRange, PropertySample } from "./HistoryEntry.ts"
import { HistoryStore } from "./HistoryStore.ts"

export class History extends Context.Service<History, {
  readonly properties: (
    projectId: ProjectId,
    deviceId: DeviceId,
    propertyId: string,
    range: HistoryRange
  ) => Effect.Effect<ReadonlyArray<PropertySample>, DeviceNotFound | StoreError>
  /** Of all events, or of the one that is named. */
  readonly events: (
    projectId: ProjectId,
    deviceId: DeviceId,
    eventId: string | undefined,
    range: HistoryRange
  ) => Effect.Effect<ReadonlyArray<EventRecord>, DeviceNotFound | StoreError>
}>()("@device-cloud/core/history/History") {
  static readonly layer: Layer.Layer<History, never, HistoryStore | Devices> = Layer.effect(
    History,
    Effect.suspend(() => make)
  )

  /** While this layer lives, history is forgotten that was stored longer ago than `keep`. */
  static readonly layerRetention = (keep: Duration.Input): Layer.Layer<never, never, HistoryStore> =>
    Layer.effectDiscard(Effect.gen(function*() {
      const store = yield* HistoryStore
      const prune = Effect.gen(function*() {
        const storedBefore = (yield* Clock.currentTimeMillis) - Duration.toMillis(keep)
        while ((yield* store.prune({ storedBefore, limit: pruneLimit })) > 0) yield* Effect.yieldNow
      })
      yield* prune.pipe(
        Effect.catch((error) => Effect.logWarning("Old history could not be forgotten", error)),
        Effect.repeat(Schedule.spaced(pruneEvery)),
        Effect.forkScoped
      )
    }))
}

/** Entries in one answer, 1 to 1000. */
export const HistoryLimit = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1000 }))

/** How often old history is looked for. */
const pruneEvery = "10 minutes"
/** Entries that are forgotten in one transaction. */
const pruneLimit = 10_000

const make = Effect.gen(function*() {
  const store = yield* HistoryStore
  const devices = yield* Devices

  const properties = Effect.fn("History.properties")(
    function*(projectId: ProjectId, deviceId: DeviceId, propertyId: string, range: HistoryRange) {
      yield* devices.get(projectId, { deviceId })
      return yield* store.samples(deviceId, propertyId, range)
    }
  )

  const events = Effect.fn("History.events")(
    function*(projectId: ProjectId, deviceId: DeviceId, eventId: string | undefined, range: HistoryRange) {
      yield* devices.get(projectId, { deviceId })
      return yield* store.events(deviceId, eventId, range)
    }
  )

  return History.of({ properties, events })
})
