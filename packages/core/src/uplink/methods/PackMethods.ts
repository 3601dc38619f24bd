/**
 * The methods with which a gateway reports for itself and its sub-devices: packs
 * and histories (docs/protocol/reports.md).
 */
import { Result } from "effect"
import { type DeviceIdentity, DeviceName } from "../../device/Device.ts"
import type { Json } from "../../kernel/Json.ts"
import { isWellFormed } from "../../kernel/Text.ts"
import { ProductKey } from "../../product/Product.ts"
import * as DeviceMethod from "../DeviceMethod.ts"
import { type DeviceReply, fieldError, noTopology, tooManyPacked } from "../DeviceReply.ts"
import { batchOf, isMembers, record, type Reports, reportsOf, withinLimits } from "./PropertyMethods.ts"
import type { SubDeviceName } from "../SubDeviceDirectory.ts"
import { maxValues } from "../UplinkLimits.ts"
import type { UplinkMessage } from "../UplinkMessage.ts"
import * as ValueCount from "./ValueCount.ts"

type Read<A> = Result.Result<A, DeviceReply>

/** Returns the sub-device that an identity names; undefined: the identity is malformed. */
const nameIn = (identity: Json | undefined): SubDeviceName | undefined => {
  if (!isMembers(identity)) return undefined
  const { deviceName, productKey } = identity
  if (typeof productKey !== "string" || typeof deviceName !== "string") return undefined
  if (!isWellFormed(productKey) || !isWellFormed(deviceName)) return undefined
  return { productKey: ProductKey.make(productKey), deviceName: DeviceName.make(deviceName) }
}

/** Returns the sub-devices that the items of a message name. A message that is refused for too many names none. */
const namesIn = (items: unknown, most: number): ReadonlyArray<SubDeviceName> =>
  Array.isArray(items) && items.length <= most
    ? (items as ReadonlyArray<Json>).flatMap((item) => (isMembers(item) ? nameIn(item["identity"]) : undefined) ?? [])
    : []

/** Returns the device that an item of a message is about. */
const deviceOf = (
  speaker: DeviceIdentity,
  identity: Json | undefined,
  find: DeviceMethod.FindSubDevice
): Read<DeviceIdentity> => {
  const name = nameIn(identity)
  if (name === undefined) {
    return Result.fail(fieldError("identity", "expected an object with productKey and deviceName"))
  }
  if (name.productKey === speaker.productKey && name.deviceName === speaker.deviceName) return Result.succeed(speaker)
  const found = find(speaker, name)
  return found === undefined ? Result.fail(noTopology) : Result.succeed(found)
}

const updateOf = (device: DeviceIdentity, reports: Reports, receivedAt: number): DeviceMethod.DeviceUpdate => ({
  device,
  update: (state) => record(reports, state, receivedAt)
})

/** Sub-devices in one message. */
const maxPacked = 20

/** Returns the updates of all items, or the first refusal. */
const planPack = (
  { device, params, receivedAt }: UplinkMessage,
  find: DeviceMethod.FindSubDevice
): Read<ReadonlyArray<DeviceMethod.DeviceUpdate>> =>
  Result.gen(function*() {
    if (!isMembers(params)) {
      return yield* Result.fail(fieldError("params", "expected an object with properties and events"))
    }
    const { subDevices: packed = [] } = params
    if (!Array.isArray(packed)) return yield* Result.fail(fieldError("subDevices", "expected an array"))
    if (packed.length > maxPacked) return yield* Result.fail(tooManyPacked)
    const updates = [updateOf(device, yield* batchOf(params, receivedAt), receivedAt)]
    for (const item of packed as ReadonlyArray<Json>) {
      if (!isMembers(item)) {
        return yield* Result.fail(
          fieldError("subDevices", "expected objects with identity, properties and events")
        )
      }
      const subDevice = yield* deviceOf(device, item["identity"], find)
      updates.push(updateOf(subDevice, yield* batchOf(item, receivedAt), receivedAt))
    }
    return updates
  })

/** A gateway's own values and events with those of its sub-devices. */
const packPost = DeviceMethod.updates({
  name: "thing.event.property.pack.post",
  values: ValueCount.ofPack,
  names: (params) => isMembers(params) ? namesIn(params["subDevices"], maxPacked) : [],
  updates: planPack
})

/** Returns the items of an array, of a single item, or of nothing. */
const itemsOf = (value: Json | undefined): ReadonlyArray<Json> =>
  value === undefined ? [] : Array.isArray(value) ? value as ReadonlyArray<Json> : [value]

const planHistory = (
  { device: speaker, params, receivedAt }: UplinkMessage,
  find: DeviceMethod.FindSubDevice
): Read<ReadonlyArray<DeviceMethod.DeviceUpdate>> =>
  Result.gen(function*() {
    if (!Array.isArray(params)) return yield* Result.fail(fieldError("params", "expected an array", 6301))
    const byDevice = new Map<
      DeviceIdentity,
      { properties: Array<Reports["properties"][number]>; events: Array<Reports["events"][number]> }
    >()
    for (const item of params as ReadonlyArray<Json>) {
      if (!isMembers(item)) {
        return yield* Result.fail(fieldError("params", "expected an array of {identity, properties, events}"))
      }
      const device = item["identity"] === undefined ? speaker : yield* deviceOf(speaker, item["identity"], find)
      const all = byDevice.get(device) ?? { properties: [], events: [] }
      byDevice.set(device, all)
      for (const part of itemsOf(item["properties"])) {
        for (const property of (yield* reportsOf({ properties: part }, receivedAt)).properties) {
          all.properties.push(property)
        }
      }
      for (const part of itemsOf(item["events"])) {
        for (const event of (yield* reportsOf({ events: part }, receivedAt)).events) all.events.push(event)
      }
    }
    const updates: Array<DeviceMethod.DeviceUpdate> = []
    for (const [device, reports] of byDevice) {
      updates.push(updateOf(device, yield* withinLimits(reports), receivedAt))
    }
    return updates
  })

/** Values from a time without connection, of a device or of the sub-devices of a gateway. */
const historyPost = DeviceMethod.updates({
  name: "thing.event.property.history.post",
  values: ValueCount.ofHistory,
  names: (params) => namesIn(params, maxValues),
  updates: planHistory
})

export const methods = [packPost, historyPost]
