/**
 * Presence in memory.
 */
import {
  type Device,
  type DeviceId,
  deviceIdentity,
  executionsOf,
  type Lapse,
  type PresenceChange,
  type PresenceOutcome,
  PresenceStore,
  type ReactTo,
  type Sighting
} from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { addReactions } from "./ExecutionStore.ts"
import { deviceDetail, Tables } from "./Tables.ts"

/** Part of the group that is replaced together: presence is kept on the device, reads commands and stores executions. */
export const layer: Layer.Layer<PresenceStore, never, Tables> = Layer.effect(
  PresenceStore,
  Effect.suspend(() => make)
)

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
    const waiting = ledger.openOf(change.deviceId).some(({ expiresAt }) => expiresAt > at) ||
      Object.keys(shadows.get(change.deviceId)?.desired ?? {}).length > 0
    return changed
      ? { _tag: "Changed", version, activated: device.activatedAt === null, waiting }
      : { _tag: "Replaced", waiting }
  }

  const markSeen = ({ at, deviceId, ip, until }: Sighting): PresenceOutcome => {
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

  const isConnectedThrough = (deviceId: DeviceId, isGone: (nodeId: string) => boolean): boolean => {
    const connection = connections.get(deviceId)
    return connection !== undefined && isGone(connection.nodeId)
  }

  const isSilent = (since: number) => (nodeId: string): boolean => (nodes.get(nodeId) ?? 0) < since

  const appliesTo = (lapse: Lapse, deviceId: DeviceId): boolean => {
    switch (lapse._tag) {
      case "SeenUntil":
        return (sightings.get(deviceId) ?? Number.POSITIVE_INFINITY) <= lapse.now
      case "NotConnected":
        return sightings.has(deviceId)
      case "NodeStops":
        return isConnectedThrough(deviceId, (nodeId) => nodeId === lapse.nodeId)
      case "NodeSilent":
        return isConnectedThrough(deviceId, isSilent(lapse.since))
    }
  }

  const candidates = (lapse: Lapse): Iterable<DeviceId> => {
    switch (lapse._tag) {
      case "SeenUntil":
        return sightings.keys()
      case "NotConnected":
        return lapse.deviceIds
      case "NodeStops":
      case "NodeSilent":
        return connections.keys()
    }
  }

  const identityOf = (deviceId: DeviceId) => deviceIdentity(deviceDetail(tables, devices.get(deviceId)!))

  /** Stores the reactions to changes with them. */
  const withReactions = <A>(make: () => ReadonlyArray<A>, reactTo: ReactTo<A> | undefined) =>
    Effect.sync(() => {
      const made = make()
      if (reactTo !== undefined) addReactions(tables, executionsOf(reactTo(made)))
      return made
    })

  return PresenceStore.of({
    record: (changes, reactTo) => withReactions(() => changes.map(record), reactTo),
    markSeen: (all, reactTo) => withReactions(() => all.map(markSeen), reactTo),
    lapsed: (lapse, limit) =>
      Effect.sync(() =>
        [...candidates(lapse)].filter((deviceId) => appliesTo(lapse, deviceId)).slice(0, limit).map(identityOf)
      ),
    markOffline: ({ at, deviceIds, lapse, reactTo }) =>
      withReactions(() =>
        deviceIds.flatMap((deviceId) => {
          const device = devices.get(deviceId)
          if (device === undefined || !appliesTo(lapse, deviceId)) return []
          sightings.delete(deviceId)
          return [{ device: identityOf(deviceId), version: setOffline(device, at) }]
        }), reactTo),
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
    forgetNodes: (lapse) =>
      Effect.sync(() => {
        const isGone = lapse._tag === "NodeStops" ? (nodeId: string) => nodeId === lapse.nodeId : isSilent(lapse.since)
        const held = new Set([...connections.values()].map(({ nodeId }) => nodeId))
        for (const nodeId of nodes.keys()) if (isGone(nodeId) && !held.has(nodeId)) nodes.delete(nodeId)
      })
  })
})
