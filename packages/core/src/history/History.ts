/**
 * Reads the history of devices, and forgets history that is too old.
 */
import { Context, type Duration, Effect, Layer, Result, type Scope, Stream } from "effect"
import {
  type Device,
  type DeviceId,
  type DeviceIdentity,
  DeviceNotFound,
  type DeviceReference
} from "../device/Device.ts"
import { DeviceLifecycle } from "../device/DeviceLifecycle.ts"
import { Devices } from "../device/Devices.ts"
import { DeviceStore } from "../device/DeviceStore.ts"
import type { InvalidInput } from "../kernel/InvalidInput.ts"
import * as KeyedPages from "../kernel/KeyedPages.ts"
import * as Periodic from "../kernel/Periodic.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProductKey, ProductNotFound } from "../product/Product.ts"
import { Products } from "../product/Products.ts"
import type { ProjectId } from "../project/Project.ts"
import type { EventRecord, HistoryRange, PropertySample } from "./HistoryEntry.ts"
import { type HistoryPoint, pointsOf } from "./HistoryPoint.ts"
import { checkSize, type HistoryEntries, type HistoryQuery, type HistorySeries } from "./HistoryQuery.ts"
import type { HistoryPlot, HistoryRead } from "./HistoryRead.ts"
import { HistoryDays } from "./HistoryRetention.ts"
import { HistoryFollowsFeed, type HistoryScan, HistoryStandsApart, HistoryStore } from "./HistoryStore.ts"

/** A part of the history of a device. */
export interface DeviceHistory {
  readonly device: Pick<Device, "deviceId" | "deviceName">
  readonly samples: ReadonlyArray<PropertySample>
}

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
  /** Returns the points of one property. Fails with `DeviceNotFound` if the project has no such device. */
  readonly points: (
    projectId: ProjectId,
    deviceId: DeviceId,
    propertyId: string,
    plot: HistoryPlot
  ) => Effect.Effect<ReadonlyArray<HistoryPoint>, DeviceNotFound | StoreError>
  /**
   * Reads each property of each device, in this order, and says for each device
   * that the project does not have so. Fails with `InvalidInput` beyond `maxSeries`
   * or `maxQueried`. A few series are read at the same time.
   */
  readonly query: (
    projectId: ProjectId,
    query: HistoryQuery
  ) => Effect.Effect<ReadonlyArray<HistorySeries>, InvalidInput | StoreError>
  /** Streams the values of a device. Fails with `DeviceNotFound` if the project has no such device. */
  readonly exportDevice: (
    projectId: ProjectId,
    deviceId: DeviceId,
    scan: HistoryScan
  ) => Effect.Effect<Stream.Stream<DeviceHistory, StoreError>, DeviceNotFound | StoreError>
  /**
   * Streams the values of all devices of a product, one device after the other, in
   * the order in which they were created. Fails with `ProductNotFound` if the
   * project has no such product.
   */
  readonly exportProduct: (
    projectId: ProjectId,
    productKey: ProductKey,
    scan: HistoryScan
  ) => Effect.Effect<Stream.Stream<DeviceHistory, StoreError>, ProductNotFound | StoreError>
}>()("@device-cloud/core/history/History") {
  /**
   * Also maintains the store, forgets what is more than `HistoryDays` old, and
   * removes the history of deleted devices if it stands apart (`HistoryApart`).
   */
  static readonly layer: Layer.Layer<
    History,
    never,
    HistoryStore | Devices | DeviceLifecycle | DeviceStore | Products
  > = Layer.effect(
    History,
    Effect.suspend(() => make)
  )
}

/** How often the store is maintained. */
const maintainEvery = "1 minute"
/** How often old history is forgotten. */
const pruneEvery = "10 minutes"

/** Values before a plot among which the numeric value is looked for that holds at its start. */
const maxBefore = 100
/** Series of one query that are read at the same time. */
const concurrency = 4
/** Devices that an export looks up at once. */
const devicesPage = 1000

const make = Effect.gen(function*() {
  const store = yield* HistoryStore
  const devices = yield* Devices
  const products = yield* Products
  const { ofProduct } = yield* DeviceStore
  const lifecycle = yield* DeviceLifecycle

  const remove = (deleted: ReadonlyArray<DeviceIdentity>) => store.remove(deleted.map(({ deviceId }) => deviceId))

  const removeRest = (deleted: ReadonlyArray<DeviceIdentity>) =>
    remove(deleted).pipe(
      Effect.catch((error) => Effect.logWarning("The last history of deleted devices could not be removed", error))
    )

  // Removes the history before the deletion, so that a device is deleted only if its
  // history can be removed; and again after it, for reports in between.
  if ((yield* HistoryStandsApart) && !(yield* HistoryFollowsFeed)) {
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

  /** Returns the latest numeric value before a time; null: there is none. */
  const numberBefore = Effect.fnUntraced(function*(deviceId: DeviceId, propertyId: string, time: number) {
    // The latest value is mostly a number.
    for (const limit of [1, maxBefore]) {
      const range = { start: 0, end: time - 1, limit, order: "desc" } as const
      const samples = yield* store.samples(deviceId, propertyId, range)
      for (const { value } of samples) if (typeof value === "number") return value
      if (samples.length < limit) break
    }
    return null
  })

  const readPoints = Effect.fnUntraced(function*(deviceId: DeviceId, propertyId: string, plot: HistoryPlot) {
    const buckets = yield* store.aggregate(deviceId, propertyId, plot)
    if (plot.fill !== "previous") return pointsOf(buckets, plot, null)
    return pointsOf(buckets, plot, yield* numberBefore(deviceId, propertyId, plot.start))
  })

  const points = Effect.fn("History.points")(
    function*(projectId: ProjectId, deviceId: DeviceId, propertyId: string, plot: HistoryPlot) {
      yield* devices.get(projectId, { deviceId })
      return yield* readPoints(deviceId, propertyId, plot)
    }
  )

  const read = (
    deviceId: DeviceId,
    propertyId: string,
    wanted: HistoryRead
  ): Effect.Effect<HistoryEntries, StoreError> =>
    wanted._tag === "Values"
      ? store.samples(deviceId, propertyId, wanted.range)
      : readPoints(deviceId, propertyId, wanted.plot)

  const find = Effect.fnUntraced(
    function*(projectId: ProjectId, reference: DeviceReference, productKeys?: ReadonlyArray<string>) {
      const { device } = yield* devices.get(projectId, reference)
      return productKeys?.includes(device.productKey) === false ? yield* DeviceNotFound.of(reference) : device
    }
  )

  const query = Effect.fn("History.query")(function*(projectId: ProjectId, wanted: HistoryQuery) {
    const { productKeys, propertyIds } = wanted
    yield* checkSize(wanted)
    const found = yield* Effect.forEach(
      wanted.devices,
      (reference) =>
        find(projectId, reference, productKeys).pipe(
          Effect.map(Result.succeed),
          Effect.catchTag("DeviceNotFound", (error) => Effect.succeed(Result.fail(error)))
        ),
      { concurrency }
    )
    const series = wanted.devices.flatMap((reference, i) =>
      propertyIds.map((propertyId) => ({ reference, propertyId, device: found[i]! }))
    )
    return yield* Effect.forEach(
      series,
      ({ device, propertyId, reference }): Effect.Effect<HistorySeries, StoreError> =>
        Result.isFailure(device)
          ? Effect.succeed({ reference, propertyId, result: Result.fail(device.failure) })
          : Effect.map(read(device.success.deviceId, propertyId, wanted.read), (entries) => ({
            reference,
            propertyId,
            result: Result.succeed({ device: device.success, entries })
          })),
      { concurrency }
    )
  })

  const scanDevice = (device: DeviceHistory["device"], scan: HistoryScan) =>
    Stream.map(store.scan(device.deviceId, scan), (samples): DeviceHistory => ({ device, samples }))

  const exportDevice = Effect.fn("History.exportDevice")(
    function*(projectId: ProjectId, deviceId: DeviceId, scan: HistoryScan) {
      const { device } = yield* devices.get(projectId, { deviceId })
      return scanDevice(device, scan)
    }
  )

  const exportProduct = Effect.fn("History.exportProduct")(
    function*(projectId: ProjectId, productKey: ProductKey, scan: HistoryScan) {
      yield* products.get(projectId, productKey)
      return KeyedPages.stream(devicesPage, ({ id }: Pick<Device, "id">) => id, (page) => ofProduct(productKey, page))
        .pipe(
          Stream.chunks,
          Stream.mapEffect((page) =>
            Effect.map(store.devicesWithin(page.map(({ deviceId }) => deviceId), scan), (found) => {
              const within = new Set(found)
              return page.filter(({ deviceId }) => within.has(deviceId))
            })
          ),
          Stream.flattenIterable,
          Stream.flatMap((device) => scanDevice(device, scan))
        )
    }
  )

  return History.of({ properties, events, points, query, exportDevice, exportProduct })
})

const inBackground = (
  work: Effect.Effect<void, StoreError>,
  every: Duration.Input,
  failure: string
): Effect.Effect<void, never, Scope.Scope> =>
  work.pipe(
    Effect.catch((error) => Effect.logWarning(failure, error)),
    Periodic.every(every)
  )
