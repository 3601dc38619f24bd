/**
 * Devices in memory.
 */
import {
  type Device,
  type DeviceFilter,
  type DeviceReference,
  DeviceStore,
  maxTags,
  type ProjectId
} from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { deviceDetail, deviceNameKey, paginate, Tables } from "./Tables.ts"

const matches = (filter: DeviceFilter) => (device: Device): boolean =>
  (filter.productKey === undefined || device.productKey === filter.productKey) &&
  (filter.batchId === undefined || device.batchId === filter.batchId) &&
  (filter.enabled === undefined || device.enabled === filter.enabled) &&
  (filter.status === undefined || device.status === filter.status)

const make = Effect.gen(function*() {
  const tables = yield* Tables
  const { connections, deviceNames, devices, histories, ledger, nextId, products, shadows } = tables

  const find = (projectId: ProjectId, reference: DeviceReference): Option.Option<Device> => {
    const deviceId = "deviceId" in reference
      ? reference.deviceId
      : deviceNames.get(deviceNameKey(reference.productKey, reference.deviceName))
    const device = deviceId === undefined ? undefined : devices.get(deviceId)
    return device?.projectId === projectId ? Option.some(device) : Option.none()
  }

  const detail = (device: Device) => deviceDetail(tables, device)

  return DeviceStore.of({
    insertMany: (projectId, productKey, drafts) =>
      Effect.sync(() => {
        if (products.get(productKey)?.projectId !== projectId) return Option.none()
        return Option.some(drafts.map((draft) => {
          const device: Device = {
            ...draft,
            id: nextId(),
            projectId,
            productKey,
            status: "unactive",
            statusVersion: 0,
            statusChangedAt: null,
            enabled: true,
            bound: false,
            ip: "",
            firmwareVersion: "",
            timeZone: "",
            tags: {},
            activatedAt: null,
            updatedAt: draft.createdAt
          }
          devices.set(device.deviceId, device)
          deviceNames.set(deviceNameKey(productKey, device.deviceName), device.deviceId)
          return device
        }))
      }),
    get: (projectId, reference) => Effect.sync(() => Option.map(find(projectId, reference), detail)),
    findByName: (productKey, deviceName) =>
      Effect.sync(() =>
        Option.fromUndefinedOr(deviceNames.get(deviceNameKey(productKey, deviceName))).pipe(
          Option.map((deviceId) => detail(devices.get(deviceId)!))
        )
      ),
    list: (projectId, filter, page) =>
      Effect.sync(() => {
        const matching = [...devices.values()].filter((device) => device.projectId === projectId).filter(
          matches(filter)
        )
        const { items, total } = paginate(matching, page)
        return { items: items.map(detail), total }
      }),
    update: (projectId, deviceId, change) =>
      Effect.sync(() =>
        Option.map(find(projectId, { deviceId }), (device) => {
          const changed: Device = { ...device, ...change }
          devices.set(deviceId, changed)
          return detail(changed)
        })
      ),
    changeTags: (deviceId, { remove, set }) =>
      Effect.sync(() => {
        const device = devices.get(deviceId)
        if (device === undefined) return "no-device"
        const kept = Object.entries(device.tags).filter(([key]) => remove !== "all" && !remove.includes(key))
        const tags = { ...Object.fromEntries(kept), ...set }
        if (Object.keys(tags).length > maxTags) return "full"
        devices.set(deviceId, { ...device, tags })
        return tags
      }),
    remove: (projectId, deviceId) =>
      Effect.sync(() =>
        Option.map(find(projectId, { deviceId }), (device) => {
          devices.delete(deviceId)
          deviceNames.delete(deviceNameKey(device.productKey, device.deviceName))
          shadows.delete(deviceId)
          ledger.remove(deviceId)
          histories.delete(deviceId)
          connections.delete(deviceId)
          return detail(device)
        })
      )
  })
})

export const layer: Layer.Layer<DeviceStore, never, Tables> = Layer.effect(DeviceStore, make)
