/**
 * Presence in memory.
 */
import {
  type Device,
  type DeviceId,
  deviceIdentity,
  type PresenceChange,
  type PresenceOutcome,
  PresenceStore
} from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { deviceDetail, Tables } from "./Tables.ts"

const make = Effect.gen(function*() {
  const tables = yield* Tables
  const { connections, devices, nodes } = tables

  const setStatus = (device: Device, status: "online" | "offline", at: number): number => {
    const statusVersion = device.statusVersion + 1
    devices.set(device.deviceId, { ...device, status, statusVersion, statusChangedAt: at })
    return statusVersion
  }

  const record = (change: PresenceChange): PresenceOutcome => {
    const device = devices.get(change.deviceId)
    if (device === undefined) return { _tag: "Ignored" }
    if (change._tag === "Offline") {
      if (connections.get(change.deviceId)?.connectionId !== change.connectionId) return { _tag: "Ignored" }
      connections.delete(change.deviceId)
      return { _tag: "Changed", version: setStatus(device, "offline", change.at), activated: false }
    }
    if (!device.enabled) return { _tag: "Ignored" }
    connections.set(change.deviceId, { connectionId: change.connectionId, nodeId: change.nodeId })
    const connected: Device = { ...device, ip: change.ip, activatedAt: device.activatedAt ?? change.at }
    if (device.status === "online") {
      devices.set(change.deviceId, connected)
      return { _tag: "Replaced" }
    }
    return {
      _tag: "Changed",
      version: setStatus(connected, "online", change.at),
      activated: device.activatedAt === null
    }
  }

  return PresenceStore.of({
    record: (changes) => Effect.sync(() => changes.map(record)),
    heartbeat: (nodeId, at) => Effect.sync(() => void nodes.set(nodeId, at)),
    release: ({ at, limit, node }) =>
      Effect.sync(() => {
        const gone = (nodeId: string) => "id" in node ? nodeId === node.id : (nodes.get(nodeId) ?? 0) < node.silentSince
        const held: ReadonlyArray<DeviceId> = [...connections]
          .filter(([, connection]) => gone(connection.nodeId))
          .map(([deviceId]) => deviceId)
        const lost = held.slice(0, limit).map((deviceId) => {
          connections.delete(deviceId)
          const device = devices.get(deviceId)!
          return { device: deviceIdentity(deviceDetail(tables, device)), version: setStatus(device, "offline", at) }
        })
        if (held.length <= limit) {
          for (const nodeId of nodes.keys()) {
            if (gone(nodeId)) nodes.delete(nodeId)
          }
        }
        return lost
      })
  })
})

export const layer: Layer.Layer<PresenceStore, never, Tables> = Layer.effect(PresenceStore, make)
