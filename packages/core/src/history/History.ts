/**
 * Reads the history of devices, and forgets history that is too old.
 */
import { Context, type Duration, Effect, Layer, Schedule, Schema, type Scope } from "effect"
import type { DeviceId, DeviceIdentity, DeviceNotFound } from "../device/Device.ts"
import { DeviceLifecycle } from "../device/DeviceLifecycle.ts"
import { Devices } from "../device/Devices.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"
import type { EventRecord, HistoryRange, PropertySample } from "./HistoryEntry.ts"
import { HistoryDays } from "./HistoryRetention.ts"
import { HistoryStandsApart, HistoryStore } from "./HistoryStore.ts"

/** How many entries one call may ask for: 1 to 1000. */
export const HistoryLimit = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1000 }))

export class History extends Context.Service<History, {
  /** Returns the values of one property. Fails with `DeviceNotFound` if the project has no such device. */
  readonly properties: (
    projectId: ProjectId,
    deviceId: DeviceId,
    propertyId: string,
    range: HistoryRange
  ) => Effect.Effect<ReadonlyArray<PropertySample>, DeviceNotFound | StoreError>
  /**
   * Returns the events with this id, or all events if `eventId` is undefined. Fails with
   * `DeviceNotFound` if the project has no such device.
   */
  readonly events: (
    projectId: ProjectId,
    deviceId: DeviceId,
    eventId: string | undefined,
    range: HistoryRange
  ) => Effect.Effect<ReadonlyArray<EventRecord>, DeviceNotFound | StoreError>
}>()("@device-cloud/core/history/History") {
  /**
   * Also maintains the store, forgets what is more than `HistoryDays` old, and
   * removes the history of deleted devices if it stands apart (`HistoryApart`).
   */
  static readonly layer: Layer.Layer<History, never, HistoryStore | Devices | DeviceLifecycle> = Layer.effect(
    History,
    Effect.suspend(() => make)
  )
}

/** How often the store is maintained. */
const maintainEvery = "1 minute"
/** How often old history is forgotten. */
const pruneEvery = "10 minutes"

const make = Effect.gen(function*() {
  const store = yield* HistoryStore
  const devices = yield* Devices
  const lifecycle = yield* DeviceLifecycle

  const remove = (deleted: ReadonlyArray<DeviceIdentity>) => store.remove(deleted.map(({ deviceId }) => deviceId))

  const removeRest = (deleted: ReadonlyArray<DeviceIdentity>) =>
    remove(deleted).pipe(
      Effect.catch((error) => Effect.logWarning("The last history of deleted devices could not be removed", error))
    )

  // Removes the history before the deletion, so that a device is deleted only if its
  // history can be removed; and again after it, for reports in between.
  if (yield* HistoryStandsApart) {
    yield* lifecycle.register({ stage: "feature", deleting: (deleted) => Effect.as(remove(deleted), removeRest) })
  }

  const keepDays = yield* HistoryDays
  yield* inBackground(store.prune({ keepDays }), pruneEvery, "Old history could not be forgotten")
  yield* inBackground(store.maintain, maintainEvery, "The history could not be maintained")

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

const inBackground = (
  work: Effect.Effect<void, StoreError>,
  every: Duration.Input,
  failure: string
): Effect.Effect<void, never, Scope.Scope> =>
  work.pipe(
    Effect.catch((error) => Effect.logWarning(failure, error)),
    Effect.repeat(Schedule.spaced(every)),
    Effect.forkScoped
  )
