/**
 * Port: where devices are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { Page, PageRequest } from "../kernel/Page.ts"
import type { Rotation } from "../kernel/RotatedSecret.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProductKey } from "../product/Product.ts"
import type { ProjectId } from "../project/Project.ts"
import type {
  Batch,
  Device,
  DeviceDetail,
  DeviceId,
  DeviceIdentity,
  DeviceName,
  DeviceNamesTaken,
  DeviceReference,
  DeviceStatus,
  NewDevice,
  StoredCredentials
} from "./Device.ts"
import type { DeviceFilter } from "./DeviceFilter.ts"

/** The fields of a device that change. */
export type DeviceUpdate = Partial<Pick<Device, "enabled" | "bound" | "nickname" | "diagnosisEnabled">> & {
  /** Unix milliseconds. */
  readonly updatedAt: number
}

/** How many devices a project has in each status, and how many of all are disabled. */
export interface DeviceCounts extends Readonly<Record<DeviceStatus, number>> {
  readonly disabled: number
}

/** Laws: each call is one transaction. A call that takes a project sees only the devices of that project. */
export class DeviceStore extends Context.Service<DeviceStore, {
  /**
   * Stores devices in the given order, all or none of them. Returns none if the
   * project has no such product; fails if the product has devices of these names.
   */
  readonly insertMany: (
    projectId: ProjectId,
    productKey: ProductKey,
    devices: ReadonlyArray<NewDevice>
  ) => Effect.Effect<Option.Option<ReadonlyArray<Device>>, DeviceNamesTaken | StoreError>
  /**
   * Stores a batch with its devices, without nicknames. Returns none if the project
   * has no such product; fails if the product has devices of these names.
   */
  readonly insertBatch: (
    projectId: ProjectId,
    productKey: ProductKey,
    batch: Pick<Batch, "description" | "createdAt">,
    devices: ReadonlyArray<Pick<NewDevice, "deviceId" | "deviceName" | "deviceSecret">>
  ) => Effect.Effect<Option.Option<Batch>, DeviceNamesTaken | StoreError>
  /** Returns a page of the batches of the product. */
  readonly listBatches: (
    projectId: ProjectId,
    productKey: ProductKey,
    page: PageRequest
  ) => Effect.Effect<Page<Batch>, StoreError>
  /** Returns the batch; none if the product has no such batch. */
  readonly getBatch: (
    projectId: ProjectId,
    productKey: ProductKey,
    batchId: number
  ) => Effect.Effect<Option.Option<Batch>, StoreError>
  /**
   * Returns devices of the batch that still exist, in the order of their `id`, in which they were created: at most
   * `limit`, those after `after`.
   */
  readonly devicesOfBatch: (
    projectId: ProjectId,
    batchId: number,
    options: { readonly after: Device["id"] | undefined; readonly limit: number }
  ) => Effect.Effect<ReadonlyArray<Pick<Device, "id" | "deviceId" | "deviceName" | "deviceSecret">>, StoreError>
  /**
   * Removes the batch and its devices with everything that is stored about them.
   * Returns the removed devices; none if there is no such batch.
   */
  readonly removeBatch: (
    projectId: ProjectId,
    productKey: ProductKey,
    batchId: number
  ) => Effect.Effect<Option.Option<ReadonlyArray<DeviceIdentity>>, StoreError>
  /** Returns the device with its product; none if the project has no such device. */
  readonly get: (
    projectId: ProjectId,
    reference: DeviceReference
  ) => Effect.Effect<Option.Option<DeviceDetail>, StoreError>
  /** Finds a device in all projects, for devices that connect: their project is not known yet. */
  readonly credentials: (
    productKey: ProductKey,
    deviceName: DeviceName
  ) => Effect.Effect<Option.Option<StoredCredentials>, StoreError>
  /**
   * Assigns to `mac` the oldest device of the product that is not registered and
   * has never been active. Returns the same device again for the same `mac`.
   * Concurrent calls for different `mac`s get different devices. Returns `active`
   * if the device of `mac` has been active, `none` if no device is left.
   */
  readonly claimByMac: (
    productKey: ProductKey,
    mac: string
  ) => Effect.Effect<DeviceDetail | "active" | "none", StoreError>
  /**
   * Marks the device with this name as registered. Stores `draft` (with the same
   * name) first if there is no such device. Returns `active` if the device has
   * been active, `none` if there is no such product, or no device and no draft.
   */
  readonly claimByName: (
    productKey: ProductKey,
    deviceName: DeviceName,
    draft?: NewDevice
  ) => Effect.Effect<DeviceDetail | "active" | "none", StoreError>
  /** Returns a page of the devices of the project that `filter` selects, those with the highest `id` first. */
  readonly list: (
    projectId: ProjectId,
    filter: DeviceFilter,
    page: PageRequest
  ) => Effect.Effect<Page<DeviceDetail>, StoreError>
  /** Counts the devices of the project. Costs the same however many there are, or little for each. */
  readonly count: (projectId: ProjectId) => Effect.Effect<DeviceCounts, StoreError>
  /** Returns devices of the product in the order of their `id`, at most `limit`, those after `after`. */
  readonly ofProduct: (
    productKey: ProductKey,
    options: { readonly after: Device["id"] | undefined; readonly limit: number }
  ) => Effect.Effect<ReadonlyArray<Pick<Device, "id" | "deviceId" | "deviceName" | "createdAt">>, StoreError>
  /** Changes the given fields. Returns the device after the change; none if there is no such device. */
  readonly update: (
    projectId: ProjectId,
    deviceId: DeviceId,
    change: DeviceUpdate
  ) => Effect.Effect<Option.Option<DeviceDetail>, StoreError>
  /**
   * Replaces the secret of the device; the one before becomes its previous secret
   * in place of an older one. Returns the device after the change; none if there is
   * no such device.
   */
  readonly rotateSecret: (
    projectId: ProjectId,
    deviceId: DeviceId,
    rotation: Rotation
  ) => Effect.Effect<Option.Option<DeviceDetail>, StoreError>
  /**
   * Removes tags, then sets some. Returns the tags after the change. Returns
   * `full` and changes nothing if the device would have more than `maxTags`.
   */
  readonly changeTags: (
    deviceId: DeviceId,
    change: { readonly set: Readonly<Record<string, string>>; readonly remove: ReadonlyArray<string> | "all" }
  ) => Effect.Effect<Readonly<Record<string, string>> | "full" | "no-device", StoreError>
  /**
   * Removes the device with everything that is stored about it. Returns the
   * removed device; none if there is no such device.
   */
  readonly remove: (
    projectId: ProjectId,
    deviceId: DeviceId
  ) => Effect.Effect<Option.Option<DeviceDetail>, StoreError>
}>()("@device-cloud/core/device/DeviceStore") {}
