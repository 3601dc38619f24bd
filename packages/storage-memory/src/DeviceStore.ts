/**
 * Devices in memory.
 */
import {
  type Device,
  type DeviceDetail,
  deviceIdentity,
  deviceKey,
  DeviceNamesTaken,
  type DeviceReference,
  DeviceStore,
  maxTags,
  type NewDevice,
  type Product,
  type ProductKey,
  type ProjectId
} from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { deviceDetail, matchingDevices, pageOf, paginate, previousAfter, Tables } from "./Tables.ts"

/** Part of the group that is replaced together: everything about a device goes with it. */
export const layer: Layer.Layer<DeviceStore, never, Tables> = Layer.effect(
  DeviceStore,
  Effect.map(Tables, (tables) => make(tables))
)

const make = (tables: Tables["Service"]) => {
  const { addSessions, batches, connections, deviceNames, devices, gateways, histories, ledger, nextId } = tables
  const { ownerships, products, shadows, sightings } = tables

  const find = (projectId: ProjectId, reference: DeviceReference): Option.Option<Device> => {
    const deviceId = "deviceId" in reference
      ? reference.deviceId
      : deviceNames.get(deviceKey(reference))
    const device = deviceId === undefined ? undefined : devices.get(deviceId)
    return device?.projectId === projectId ? Option.some(device) : Option.none()
  }

  const detail = (device: Device) => deviceDetail(tables, device)

  /** Fails if devices of the product have names of the drafts. */
  const namesFree = (productKey: ProductKey, drafts: ReadonlyArray<Pick<NewDevice, "deviceName">>) => {
    const [first, ...rest] = drafts.map(({ deviceName }) => deviceName)
      .filter((deviceName) => deviceNames.has(deviceKey({ productKey, deviceName }))).toSorted()
    return first === undefined
      ? Effect.void
      : Effect.fail(new DeviceNamesTaken({ productKey, deviceNames: [first, ...rest] }))
  }

  const insert = ({ productKey, projectId }: Product, draft: NewDevice, mac: string | null): Device => {
    const device: Device = {
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
      mac,
      previousSecret: null,
      diagnosisEnabled: false,
      tags: {},
      activatedAt: null,
      updatedAt: draft.createdAt,
      // A spread before the other members makes an object that is slow to build and to read.
      ...draft
    }
    devices.set(device.deviceId, device)
    deviceNames.set(deviceKey(device), device.deviceId)
    tables.deviceCounts.set(projectId, (tables.deviceCounts.get(projectId) ?? 0) + 1)
    return device
  }

  const register = (device: Device, mac: string): DeviceDetail | "active" => {
    if (device.activatedAt !== null) return "active"
    const registered = { ...device, mac }
    devices.set(device.deviceId, registered)
    return detail(registered)
  }

  const drop = (device: Device): DeviceDetail => {
    const { deviceId } = device
    devices.delete(deviceId)
    tables.deviceCounts.set(device.projectId, (tables.deviceCounts.get(device.projectId) ?? 1) - 1)
    deviceNames.delete(deviceKey(device))
    shadows.delete(deviceId)
    ledger.remove(deviceId)
    histories.delete(deviceId)
    connections.delete(deviceId)
    ownerships.delete(deviceId)
    sightings.delete(deviceId)
    gateways.delete(deviceId)
    tables.topologyClaims.delete(deviceId)
    gateways.subDevicesOf(deviceId).forEach((subDeviceId) => gateways.delete(subDeviceId))
    for (const [sessionId, { session }] of addSessions) {
      if (session.gatewayId === deviceId) addSessions.delete(sessionId)
    }
    for (const members of tables.groupDevices.values()) members.delete(deviceId)
    tables.bindings.delete(deviceId)
    tables.configurations.delete(deviceId)
    tables.configurationProgress.delete(deviceId)
    tables.moduleVersions.delete(deviceId)
    for (const { due, tasks } of tables.jobs.values()) {
      tasks.delete(deviceId)
      due.delete(deviceId)
    }
    tables.connectRefusals.delete(deviceId)
    tables.traces.delete(deviceId)
    for (const { fingerprint } of tables.certificates.get(deviceId) ?? []) tables.holders.delete(fingerprint)
    tables.certificates.delete(deviceId)
    for (const { nodes } of tables.meshNetworks.values()) nodes.delete(deviceId)
    return detail(device)
  }

  const findBatch = (projectId: ProjectId, productKey: ProductKey, batchId: number) => {
    const known = batches.get(batchId)
    return known?.projectId === projectId && known.batch.productKey === productKey ? known : undefined
  }

  const devicesOf = (batchId: number) => [...devices.values()].filter((device) => device.batchId === batchId)

  return DeviceStore.of({
    insertBatch: (projectId, productKey, { createdAt, description }, drafts) =>
      Effect.suspend(() => {
        const product = products.get(productKey)
        if (product?.projectId !== projectId) return Effect.succeedNone
        return Effect.map(namesFree(productKey, drafts), () => {
          const batchId = nextId()
          const batch = { batchId, productKey, size: drafts.length, description, createdAt }
          batches.set(batchId, { batch, projectId })
          for (const draft of drafts) {
            const { deviceId, deviceName, deviceSecret } = draft
            insert(
              product,
              { deviceId, deviceName, deviceSecret, nickname: "", batchId, cloudGateway: null, createdAt },
              null
            )
          }
          return Option.some(batch)
        })
      }),
    listBatches: (projectId, productKey, page) =>
      Effect.sync(() =>
        paginate(
          [...batches.values()].filter((known) =>
            known.projectId === projectId && known.batch.productKey === productKey
          ).map(({ batch }) => batch),
          page
        )
      ),
    getBatch: (projectId, productKey, batchId) =>
      Effect.sync(() =>
        Option.map(Option.fromUndefinedOr(findBatch(projectId, productKey, batchId)), ({ batch }) => batch)
      ),
    devicesOfBatch: (projectId, batchId, { after, limit }) =>
      Effect.sync(() =>
        devicesOf(batchId)
          .filter((device) => device.projectId === projectId && batchId !== 0 && device.id > (after ?? 0))
          .sort((a, b) => a.id - b.id)
          .slice(0, limit)
          .map(({ deviceId, deviceName, deviceSecret, id }) => ({ id, deviceId, deviceName, deviceSecret }))
      ),
    removeBatch: (projectId, productKey, batchId) =>
      Effect.sync(() => {
        if (findBatch(projectId, productKey, batchId) === undefined) return Option.none()
        batches.delete(batchId)
        return Option.some(devicesOf(batchId).map((device) => deviceIdentity(drop(device))))
      }),
    insertMany: (projectId, productKey, drafts) =>
      Effect.suspend(() => {
        const product = products.get(productKey)
        return product?.projectId === projectId
          ? Effect.map(
            namesFree(productKey, drafts),
            () => Option.some(drafts.map((draft) => insert(product, draft, null)))
          )
          : Effect.succeedNone
      }),
    claimByMac: (productKey, mac) =>
      Effect.sync(() => {
        let free: Device | undefined
        for (const device of devices.values()) {
          if (device.productKey !== productKey) continue
          if (device.mac === mac) return register(device, mac)
          if (device.mac === null && device.activatedAt === null && device.enabled) free ??= device
        }
        return free === undefined ? "none" : register(free, mac)
      }),
    claimByName: (productKey, deviceName, draft) =>
      Effect.sync(() => {
        const product = products.get(productKey)
        const deviceId = deviceNames.get(deviceKey({ productKey, deviceName }))
        const known = deviceId === undefined ? undefined : devices.get(deviceId)
        if (known !== undefined) return register(known, known.mac ?? "")
        return product === undefined || draft === undefined ? "none" : detail(insert(product, draft, ""))
      }),
    get: (projectId, reference) => Effect.sync(() => Option.map(find(projectId, reference), detail)),
    credentials: (productKey, deviceName) =>
      Effect.sync(() =>
        Option.fromUndefinedOr(deviceNames.get(deviceKey({ productKey, deviceName }))).pipe(
          Option.map((deviceId) => {
            const device = devices.get(deviceId)!
            const { deviceSecret, enabled, previousSecret } = device
            const known = detail(device)
            const { authType, nodeType, uplinkSignature } = known.product
            const identity = deviceIdentity(known)
            return { identity, deviceSecret, previousSecret, enabled, authType, nodeType, uplinkSignature }
          })
        )
      ),
    count: (projectId) =>
      Effect.sync(() => {
        const counts = { online: 0, offline: 0, unactive: 0, disabled: 0 }
        for (const device of tables.devices.values()) {
          if (device.projectId !== projectId) continue
          counts[device.status]++
          if (!device.enabled) counts.disabled++
        }
        return counts
      }),
    list: (projectId, filter, page) =>
      Effect.sync(() => {
        const { items, total } = pageOf(
          matchingDevices(tables, projectId, filter).toSorted((a, b) => b.id - a.id),
          page
        )
        return { items: items.map(detail), total }
      }),
    ofProduct: (productKey, { after, limit }) =>
      Effect.sync(() =>
        [...devices.values()]
          .filter((device) => device.productKey === productKey && device.id > (after ?? 0))
          .sort((a, b) => a.id - b.id)
          .slice(0, limit)
      ),
    update: (projectId, deviceId, change) =>
      Effect.sync(() =>
        Option.map(find(projectId, { deviceId }), (device) => {
          const changed: Device = { ...device, ...change }
          devices.set(deviceId, changed)
          return detail(changed)
        })
      ),
    rotateSecret: (projectId, deviceId, rotation) =>
      Effect.sync(() =>
        Option.map(find(projectId, { deviceId }), (device) => {
          const previousSecret = previousAfter(rotation, device.deviceSecret)
          const changed = { ...device, deviceSecret: rotation.secret, previousSecret, updatedAt: rotation.at }
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
    remove: (projectId, deviceId) => Effect.sync(() => Option.map(find(projectId, { deviceId }), drop))
  })
}
