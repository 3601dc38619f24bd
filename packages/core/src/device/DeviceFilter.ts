/**
 * The conditions by which devices are found, in lists and in groups.
 */
import type { Json } from "../kernel/Json.ts"
import type { ProductKey } from "../product/Product.ts"
import type { Device, DeviceStatus } from "./Device.ts"

/** Selects devices for which all given conditions hold. */
export interface DeviceFilter {
  readonly productKey?: ProductKey | undefined
  readonly batchId?: number | undefined
  readonly enabled?: boolean | undefined
  readonly status?: DeviceStatus | undefined
  /** Tags that the device has. */
  readonly tags?: Readonly<Record<string, string>> | undefined
  /** The beginning of the device name or the nickname. */
  readonly keyword?: string | undefined
  /** Values that the device has reported last, by property, as they are stored. */
  readonly reported?: Readonly<Record<string, string | number | boolean>> | undefined
  /** The device was added to this group. */
  readonly groupId?: number | undefined
  /** The `id` of the device is lower. Devices that follow one in a list, whatever happens to those before it. */
  readonly before?: Device["id"] | undefined
}

/**
 * Whether all conditions hold for a device, but for `groupId`, which only a store
 * knows. `reported`: the values that the device has reported last.
 */
export const matchesFilter = (
  filter: Omit<DeviceFilter, "groupId">,
  device: Device,
  reported: Readonly<Record<string, { readonly value: Json }>>
): boolean =>
  (filter.productKey === undefined || device.productKey === filter.productKey) &&
  (filter.batchId === undefined || device.batchId === filter.batchId) &&
  (filter.enabled === undefined || device.enabled === filter.enabled) &&
  (filter.status === undefined || device.status === filter.status) &&
  (filter.before === undefined || device.id < filter.before) &&
  Object.entries(filter.tags ?? {}).every(([key, value]) =>
    Object.hasOwn(device.tags, key) && device.tags[key] === value
  ) &&
  (filter.keyword === undefined || device.deviceName.startsWith(filter.keyword) ||
    device.nickname.startsWith(filter.keyword)) &&
  Object.entries(filter.reported ?? {}).every(([property, value]) =>
    Object.hasOwn(reported, property) && reported[property]!.value === value
  )
