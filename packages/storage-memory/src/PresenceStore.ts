/**
 * Presence in memory.
 */
import {
  type Device,
  type DeviceId,
  deviceIdentity,
  type Fired,
  type PresenceChange,
  type PresenceOutcome,
  PresenceStore,
  type Sighting
} from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { addExecutions } from "./SceneStore.ts"
import { deviceDetail, Tables } from "./Tables.ts"

const make = Effect.gen(function*() {
  const tables = yield* Tables
  const { connections, devices, ledger, nodes, shadows, sightings } = tables

  const setOffline = (device: Device, at: number): number => {
    const statusVersion = device.statusVersion + 1
    connections.delete(device.deviceId)
    devices.set(device.deviceId, { ...device, status: "offline", statusVersion, statusChangedAt: at })
    return statusVersion
  }

  const record = (change: PresenceChange): PresenceOutcome => {
    const device = devices.get(change.deviceId)
    if (device === undefined) return { _tag: "Ignored" }
    if (change._tag === "Offline") {
      if (connections.get(change.deviceId)?.connectionId !== change.connectionId) return { _tag: "Ignored" }
      return { _tag: "Changed", version: setOffline(device, change.at), activated: false, waiting: false }
    }
    if (!device.enabled) return { _tag: "Ignored" }
    const { at, connectionId, ip, nodeId } = change
    const changed = device.status !== "online"
    const version = changed ? device.statusVersion + 1 : device.statusVersion
    connections.set(change.deviceId, { connectionId, nodeId })
    sightings.delete(change.deviceId)
    devices.set(change.deviceId, {
      ...device,
      status: "online",
      statusVersion: version,
      statusChangedAt: changed ? at : device.statusChangedAt,
      activatedAt: device.activatedAt ?? at,
      ip
    })
    const waiting = ledger.openOf(change.deviceId).some(({ expiresAt, state }) =>
      state !== "acked" && expiresAt > at
    ) ||
      Object.keys(shadows.get(change.deviceId)?.desired ?? {}).length > 0
    return changed
      ? { _tag: "Changed", version, activated: device.activatedAt === null, waiting }
      : { _tag: "Replaced", waiting }
  }

  const sight = ({ at, deviceId, ip, until }: Sighting): PresenceOutcome => {
    const device = devices.get(deviceId)
    if (device === undefined || !device.enabled) return { _tag: "Ignored" }
    if (connections.has(deviceId)) return { _tag: "Replaced", waiting: false }
    sightings.set(deviceId, Math.max(until, sightings.get(deviceId) ?? 0))
    const changed = device.status !== "online"
    const version = changed ? device.statusVersion + 1 : device.statusVersion
    devices.set(deviceId, {
      ...device,
      status: "online",
      statusVersion: version,
      statusChangedAt: changed ? at : device.statusChangedAt,
      activatedAt: device.activatedAt ?? at,
      ip
    })
    return changed
      ? { _tag: "Changed", version, activated: device.activatedAt === null, waiting: false }
      : { _tag: "Replaced", waiting: false }
  }

  const lose = (device: Device, at: number) => ({
    device: deviceIdentity(deviceDetail(tables, device)),
    version: setOffline(device, at)
  })

  /** Stores the executions that follow from what has been done. */
  const withFired = <A>(done: Effect.Effect<ReadonlyArray<A>>, fired: Fired<A> | undefined) =>
    fired === undefined ?
      done :
      Effect.tap(done, (changes) => Effect.map(fired(changes), (executions) => addExecutions(tables, executions)))

  return PresenceStore.of({
    sight: (all, fired) => withFired(Effect.sync(() => all.map(sight)), fired),
    expire: ({ fired, limit, now }) =>
      withFired(
        Effect.sync(() =>
          [...sightings].filter(([, until]) => until <= now).slice(0, limit).map(([deviceId]) => {
            sightings.delete(deviceId)
            return lose(devices.get(deviceId)!, now)
          })
        ),
        fired
      ),
    endSightings: ({ at, deviceIds, fired }) =>
      withFired(
        Effect.sync(() =>
          deviceIds.flatMap((deviceId) => sightings.delete(deviceId) ? [lose(devices.get(deviceId)!, at)] : [])
        ),
        fired
      ),
    record: (changes, fired) => withFired(Effect.sync(() => changes.map(record)), fired),
    connectionsOf: (deviceIds) =>
      Effect.sync(() =>
        new Map(deviceIds.flatMap((deviceId) => {
          const connection = connections.get(deviceId)
          return connection === undefined || devices.get(deviceId)?.enabled !== true
            ? []
            : [[deviceId, connection.connectionId] as const]
        }))
      ),
    heartbeat: (nodeId, at) => Effect.sync(() => void nodes.set(nodeId, at)),
    release: ({ at, fired, limit, node }) =>
      withFired(
        Effect.sync(() => {
          const gone = (nodeId: string) =>
            "id" in node ? nodeId === node.id : (nodes.get(nodeId) ?? 0) < node.silentSince
          const held: ReadonlyArray<DeviceId> = [...connections]
            .filter(([, connection]) => gone(connection.nodeId))
            .map(([deviceId]) => deviceId)
          const lost = held.slice(0, limit).map((deviceId) => lose(devices.get(deviceId)!, at))
          if (held.length <= limit) {
            for (const nodeId of nodes.keys()) {
              if (gone(nodeId)) nodes.delete(nodeId)
            }
          }
          return lost
        }),
        fired
      )
  })
})

export const layer: Layer.Layer<PresenceStore, never, Tables> = Layer.effect(PresenceStore, make)
