/**
 * Batches: devices that are created together (docs/api/devices.md).
 */
import { Clock, Context, Effect, Layer, Option, Stream } from "effect"
import { Identifiers } from "../kernel/Identifiers.ts"
import { decodeInput, type InvalidInput } from "../kernel/InvalidInput.ts"
import * as KeyedPages from "../kernel/KeyedPages.ts"
import { type Page, paged, type PageRequest } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { type ProductKey, ProductNotFound } from "../product/Product.ts"
import { Products } from "../product/Products.ts"
import type { ProjectId } from "../project/Project.ts"
import type { QuotaExceeded } from "../project/Quota.ts"
import { Quotas } from "../project/Quotas.ts"
import {
  type Batch,
  BatchDraft,
  BatchNotFound,
  type Device,
  DeviceId,
  DeviceName,
  type DeviceNamesTaken,
  NotACloudGateway
} from "./Device.ts"
import { DeviceLifecycle } from "./DeviceLifecycle.ts"
import { DeviceStore } from "./DeviceStore.ts"

/** A device of a batch, with what it signs with. */
export type BatchMember = Pick<Device, "deviceId" | "deviceName" | "deviceSecret">

/** Devices that an export reads at once. */
const exportPage = 500

export class Batches extends Context.Service<Batches, {
  /**
   * Creates a batch of 1 to 10,000 devices, each as `Devices.create` does: all or
   * none. Fails with `DeviceNamesTaken`, which tells all of them, if devices of the
   * product have names of the draft, and with `NotACloudGateway` for a
   * cloud-gateway product, whose devices each need an account.
   */
  readonly create: (
    projectId: ProjectId,
    productKey: ProductKey,
    draft: BatchDraft
  ) => Effect.Effect<
    Batch,
    InvalidInput | ProductNotFound | NotACloudGateway | DeviceNamesTaken | QuotaExceeded | StoreError
  >
  /** Returns a page of the batches of the product. */
  readonly list: (
    projectId: ProjectId,
    productKey: ProductKey,
    page: PageRequest
  ) => Effect.Effect<Page<Batch>, InvalidInput | ProductNotFound | StoreError>
  /** Returns the batch. */
  readonly get: (
    projectId: ProjectId,
    productKey: ProductKey,
    batchId: number
  ) => Effect.Effect<Batch, BatchNotFound | StoreError>
  /** Returns the devices of the batch that still exist, in the order in which they were created. */
  readonly devices: (
    projectId: ProjectId,
    productKey: ProductKey,
    batchId: number
  ) => Effect.Effect<ReadonlyArray<BatchMember>, BatchNotFound | StoreError>
  /** The same as a stream that reads 500 devices at a time; others have their turns in between. */
  readonly export: (
    projectId: ProjectId,
    productKey: ProductKey,
    batchId: number
  ) => Effect.Effect<Stream.Stream<BatchMember, StoreError>, BatchNotFound | StoreError>
  /** Removes the batch and its devices, and ends their connections. */
  readonly remove: (
    projectId: ProjectId,
    productKey: ProductKey,
    batchId: number
  ) => Effect.Effect<void, BatchNotFound | StoreError>
}>()("@device-cloud/core/device/Batches") {
  static readonly layer: Layer.Layer<
    Batches,
    never,
    DeviceStore | DeviceLifecycle | Products | Identifiers | Quotas
  > = Layer
    .effect(Batches, Effect.suspend(() => make))
}

const decodeDraft = decodeInput(BatchDraft)

const make = Effect.gen(function*() {
  const store = yield* DeviceStore
  const products = yield* Products
  const quotas = yield* Quotas
  const identifiers = yield* Identifiers
  const lifecycle = yield* DeviceLifecycle

  const create = Effect.fn("Batches.create")(
    function*(projectId: ProjectId, productKey: ProductKey, input: BatchDraft) {
      const { desc = "", deviceNames, num = deviceNames?.length ?? 0 } = yield* decodeDraft(input)
      const { dataSource, validateType } = yield* products.get(projectId, productKey)
      // Each device of a cloud gateway needs an account of its own.
      if (dataSource === 3) {
        return yield* new NotACloudGateway({ productKey, fields: [deviceNames === undefined ? "num" : "deviceNames"] })
      }
      const createdAt = yield* Clock.currentTimeMillis
      const triples = (yield* identifiers.triples(num)).map(({ deviceId, deviceName, deviceSecret }, i) => ({
        deviceId: DeviceId.make(deviceId),
        deviceName: DeviceName.make(deviceNames?.[i] ?? deviceName),
        deviceSecret
      }))
      const insert = store.insertBatch(projectId, productKey, { description: desc, createdAt }, triples)
      const batch = yield* lifecycle.commit(
        projectId,
        quotas.within(projectId, "devices", num, insert),
        (batch) =>
          Option.isSome(batch)
            ? {
              change: "created",
              devices: triples.map(({ deviceId, deviceName }) => ({
                deviceId,
                projectId,
                productKey,
                deviceName,
                validateType
              })),
              at: createdAt
            }
            : undefined
      )
      return yield* Effect.fromOption(batch, () => new ProductNotFound({ productKey }))
    }
  )

  const list = Effect.fn("Batches.list")(function*(projectId: ProjectId, productKey: ProductKey, page: PageRequest) {
    yield* products.get(projectId, productKey)
    return yield* paged(store.listBatches)(projectId, productKey, page)
  })

  const get = Effect.fn("Batches.get")(function*(projectId: ProjectId, productKey: ProductKey, batchId: number) {
    const batch = yield* store.getBatch(projectId, productKey, batchId)
    return yield* Effect.fromOption(batch, () => new BatchNotFound({ productKey, batchId }))
  })

  const exportDevices = Effect.fn("Batches.export")(
    function*(projectId: ProjectId, productKey: ProductKey, batchId: number) {
      yield* get(projectId, productKey, batchId)
      return KeyedPages.stream(
        exportPage,
        ({ id }: Pick<Device, "id">) => id,
        (page) => store.devicesOfBatch(projectId, batchId, page)
      )
    }
  )

  const devices = Effect.fn("Batches.devices")(
    function*(projectId: ProjectId, productKey: ProductKey, batchId: number) {
      return yield* Stream.runCollect(yield* exportDevices(projectId, productKey, batchId))
    }
  )

  const remove = Effect.fn("Batches.remove")(
    function*(projectId: ProjectId, productKey: ProductKey, batchId: number) {
      const noBatch = new BatchNotFound({ productKey, batchId })
      const { validateType } = yield* products.get(projectId, productKey).pipe(
        Effect.catchTag("ProductNotFound", () => noBatch)
      )
      const members = yield* devices(projectId, productKey, batchId)
      const removed = yield* lifecycle.remove(
        projectId,
        members.map(({ deviceId, deviceName }) => ({ deviceId, projectId, productKey, deviceName, validateType })),
        store.removeBatch(projectId, productKey, batchId),
        yield* Clock.currentTimeMillis
      )
      if (Option.isNone(removed)) return yield* noBatch
    }
  )

  return Batches.of({ create, list, get, devices, export: exportDevices, remove })
})
