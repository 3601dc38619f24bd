/**
 * Port: where devices are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { Page, PageRequest } from "../kernel/Page.ts"
import type { ProductKey } from "../product/Product.ts"
import type { ProjectId } from "../project/Project.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type {
  Batch,
  Device,
  DeviceDetail,
  DeviceFilter,
  DeviceId,
  DeviceIdentity,
  DeviceName,
  DeviceReference,
  NewDevice,
  StoredCredentials
} from "./Device.ts"

export type DeviceUpdate = Partial<Pick<Device, "enabled" | "bound" | "nickname" | "diagnosisEnabled">> & {
  /** Unix milliseconds. */
  readonly updatedAt: number
}

/**
 * Laws: each call is one transaction. Those that take a project see only its
 * devices. `insertMany` stores all or none, in the given order; none
 * when the product does not exist in the project. `remove` takes with it all
 * that is kept about the device.
 */
export class DeviceStore extends Context.Service<DeviceStore, {
  /** None: no such product. */
  readonly insertMany: (
    projectId: ProjectId,
    productKey: ProductKey,
    devices: ReadonlyArray<NewDevice>
  ) => Effect.Effect<Option.Option<ReadonlyArray<Device>>, StoreError>
  /** A new batch with its devices, which have no nickname. None: no such product. */
  readonly insertBatch: (
    projectId: ProjectId,
    productKey: ProductKey,
    batch: Pick<Batch, "description" | "createdAt">,
    devices: ReadonlyArray<Pick<NewDevice, "deviceId" | "deviceName" | "deviceSecret">>
  ) => Effect.Effect<Option.Option<Batch>, StoreError>
  readonly getBatch: (
    projectId: ProjectId,
    productKey: ProductKey,
    batchId: number
  ) => Effect.Effect<Option.Option<Batch>, StoreError>
  /** Its devices, those that are left, in the order in which they were made. */
  readonly devicesOfBatch: (
    projectId: ProjectId,
    batchId: number
  ) => Effect.Effect<ReadonlyArray<Pick<Device, "deviceId" | "deviceName" | "deviceSecret">>, StoreError>
  /** Removes the batch and its devices, with all that is kept about them; none when there is no such batch. */
  readonly removeBatch: (
    projectId: ProjectId,
    productKey: ProductKey,
    batchId: number
  ) => Effect.Effect<Option.Option<ReadonlyArray<DeviceIdentity>>, StoreError>
  readonly get: (
    projectId: ProjectId,
    reference: DeviceReference
  ) => Effect.Effect<Option.Option<DeviceDetail>, StoreError>
  /** For connecting devices, whose project is not known yet. */
  readonly credentials: (
    productKey: ProductKey,
    deviceName: DeviceName
  ) => Effect.Effect<Option.Option<StoredCredentials>, StoreError>
  /**
   * Gives a device of the product that nobody has registered yet and that has
   * never been active to `mac`, the oldest first, and the same one again when it
   * asks again. Of several callers at the same time, no two get the same device.
   * `active`: the device of `mac` has been active; `none`: no device is left.
   */
  readonly claimByMac: (
    productKey: ProductKey,
    mac: string
  ) => Effect.Effect<DeviceDetail | "active" | "none", StoreError>
  /**
   * Marks the device of this name as registered; stores `draft`, which has this
   * name, when there is none. `active`: it has been active; `none`: no such
   * device or product.
   */
  readonly claimByName: (
    productKey: ProductKey,
    deviceName: DeviceName,
    draft?: NewDevice
  ) => Effect.Effect<DeviceDetail | "active" | "none", StoreError>
  readonly list: (
    projectId: ProjectId,
    filter: DeviceFilter,
    page: PageRequest
  ) => Effect.Effect<Page<DeviceDetail>, StoreError>
  /** The device after the change; none when there is no such device. */
  readonly update: (
    projectId: ProjectId,
    deviceId: DeviceId,
    change: DeviceUpdate
  ) => Effect.Effect<Option.Option<DeviceDetail>, StoreError>
  /** Removes tags, then sets some. Its tags after the change; `full`: it would have more than `maxTags`, nothing was changed. */
  readonly changeTags: (
    deviceId: DeviceId,
    change: { readonly set: Readonly<Record<string, string>>; readonly remove: ReadonlyArray<string> | "all" }
  ) => Effect.Effect<Readonly<Record<string, string>> | "full" | "no-device", StoreError>
  /** The device as it was; none when there is no such device. */
  readonly remove: (
    projectId: ProjectId,
    deviceId: DeviceId
  ) => Effect.Effect<Option.Option<DeviceDetail>, StoreError>
}>()("@device-cloud/core/device/DeviceStore") {}
