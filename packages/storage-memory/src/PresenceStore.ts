/**
 * Presence in memory.
 */
import {
  type Device,
  type DeviceId,
  deviceIdentity,
  executionsOf,
  type Judge,
  type Lapse,
  type NodeState,
  type Owner,
  type PresenceChange,
  type PresenceOutcome,
  PresenceStore,
  type ReactTo,
  type Sighting
} from "@device-cloud/core"
import { Clock, Effect, Layer } from "effect"
import { addReactions } from "./ExecutionStore.ts"
import { deviceDetail, neverOwned, Tables } from "./Tables.ts"

/** Part of the group that is replaced together: presence is kept on the device, reads commands and stores executions. */
export const layer: Layer.Layer<PresenceStore, never, Tables> = Layer.effect(
  PresenceStore,
  Effect.suspend(() => make)
)

const make = Effect.gen(function*() {
  const tables = yield* Tables
  const clock = yield* Clock.Clock
  const { connections, devices, heartbeats, ledger, ownerships, shadows, sightings } = tables
  const now = () => clock.currentTimeMillisUnsafe()
  let lastEpoch = 0

  const setOffline = (device: Device, at: number): number => {
    const statusVersion = device.statusVersion + 1
    connections.delete(device.deviceId)
    devices.set(device.deviceId, { ...device, status: "offline", statusVersion, statusChangedAt: at })
    return statusVersion
  }

  /** Stores that the device is online. Returns the new version of its status; undefined: it was online. */
  const setOnline = (device: Device, { at, ip }: { readonly at: number; readonly ip: string }) => {
    const changed = device.status !== "online"
    const statusVersion = changed ? device.statusVersion + 1 : device.statusVersion
    devices.set(device.deviceId, {
      ...device,
      status: "online",
      statusVersion,
      statusChangedAt: changed ? at : device.statusChangedAt,
      activatedAt: device.activatedAt ?? at,
      ip
    })
    return changed ? statusVersion : undefined
  }

  const record = (change: PresenceChange): PresenceOutcome => {
    const device = devices.get(change.deviceId)
    if (device === undefined) return { _tag: "Ignored" }
    if (change._tag === "Offline") {
      if (connections.get(change.deviceId)?.connectionId !== change.connectionId) return { _tag: "Ignored" }
      return { _tag: "Changed", version: setOffline(device, change.at), activated: false }
    }
    const { at, connectionId, deviceId, nodeId, resumes } = change
    const known = ownerships.get(deviceId) ?? neverOwned
    const replaced = connections.get(deviceId)
    const isLater = replaced?.connectionId === connectionId || known.epoch <= (resumes ?? known.epoch)
    if (!device.enabled || !isLater) return { _tag: "Ignored" }
    const epoch = ++lastEpoch
    connections.set(deviceId, { connectionId, nodeId })
    ownerships.set(deviceId, { ...known, epoch })
    sightings.delete(deviceId)
    const version = setOnline(device, change)
    const waiting = ledger.openOf(deviceId).some(({ expiresAt }) => expiresAt > at) ||
      Object.keys(shadows.get(deviceId)?.desired ?? {}).length > 0
    const previous = replaced && { nodeId: replaced.nodeId }
    const claim = { ...known, epoch, epochBefore: known.epoch, waiting, previous }
    if (replaced?.connectionId === connectionId) return { _tag: "Kept", claim: { ...claim, previous: undefined } }
    return version === undefined
      ? { _tag: "Replaced", claim }
      : { _tag: "Changed", version, activated: device.activatedAt === null, claim }
  }

  const markSeen = (sighting: Sighting): PresenceOutcome => {
    const { deviceId, lasts } = sighting
    const device = devices.get(deviceId)
    if (device === undefined || !device.enabled) return { _tag: "Ignored" }
    if (connections.has(deviceId)) return { _tag: "Replaced" }
    sightings.set(deviceId, Math.max(now() + lasts, sightings.get(deviceId) ?? 0))
    const version = setOnline(device, sighting)
    return version === undefined
      ? { _tag: "Replaced" }
      : { _tag: "Changed", version, activated: device.activatedAt === null }
  }

  /** How old the latest heartbeat of the node is; one from the future is as old as it is ahead. */
  const ageOf = (nodeId: string): number => {
    const heartbeat = heartbeats.get(nodeId)
    return heartbeat === undefined ? 0 : Math.abs(now() - heartbeat.at)
  }

  const isSteady = ({ limits: { gap, silence }, nodeId }: Judge): boolean => {
    const heartbeat = heartbeats.get(nodeId)
    return heartbeat !== undefined && ageOf(nodeId) <= gap && heartbeat.at - heartbeat.steadySince >= silence
  }

  const isSilent = (nodeId: string, judge: Judge): boolean => ageOf(nodeId) > judge.limits.silence && isSteady(judge)

  const appliesTo = (lapse: Lapse, deviceId: DeviceId): boolean => {
    switch (lapse._tag) {
      case "SightingEnds":
        return (sightings.get(deviceId) ?? Number.POSITIVE_INFINITY) <= now() && isSteady(lapse.judge)
      case "NotConnected":
        return sightings.has(deviceId)
      case "NodeStops":
        return connections.get(deviceId)?.nodeId === lapse.nodeId
      case "NodeSilent":
        return connections.get(deviceId)?.nodeId === lapse.nodeId && isSilent(lapse.nodeId, lapse.judge)
    }
  }

  const candidates = (lapse: Lapse): Iterable<DeviceId> => {
    switch (lapse._tag) {
      case "SightingEnds":
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
    lapsed: (lapse, limit, after = "" as DeviceId) =>
      Effect.sync(() => {
        const found = [...candidates(lapse)].filter((deviceId) => appliesTo(lapse, deviceId))
        const wanted = "nodeId" in lapse ? found.filter((deviceId) => deviceId > after).toSorted() : found
        return wanted.slice(0, limit).map(identityOf)
      }),
    markOffline: ({ at, deviceIds, lapse, reactTo }) =>
      withReactions(() =>
        deviceIds.flatMap((deviceId) => {
          const device = devices.get(deviceId)
          if (device === undefined || !appliesTo(lapse, deviceId)) return []
          sightings.delete(deviceId)
          return [{ device: identityOf(deviceId), version: setOffline(device, at) }]
        }), reactTo),
    connectionsOf: (deviceIds) =>
      Effect.sync(() => {
        const owners = new Map<DeviceId, Owner>()
        for (const deviceId of deviceIds) {
          const connection = connections.get(deviceId)
          if (connection === undefined) continue
          const { connectionId, nodeId } = connection
          const { desiredChanges, epoch, lastCommand } = ownerships.get(deviceId)!
          const { enabled } = devices.get(deviceId)!
          owners.set(deviceId, { connectionId, nodeId, epoch, lastCommand, desiredChanges, enabled })
        }
        return owners
      }),
    noteDesired: (deviceId) =>
      Effect.sync(() => {
        const known = ownerships.get(deviceId)
        if (known === undefined) return undefined
        const desiredChanges = known.desiredChanges + 1
        ownerships.set(deviceId, { ...known, desiredChanges })
        return { desiredChanges, nodeId: connections.get(deviceId)?.nodeId }
      }),
    heartbeat: (nodeId, { gap, silence }) =>
      Effect.sync(() => {
        const age = ageOf(nodeId)
        const known = heartbeats.get(nodeId)
        heartbeats.set(nodeId, {
          ...known,
          at: now(),
          steadySince: known === undefined || age > gap ? now() : known.steadySince
        })
        return { wasSilent: known === undefined || age > silence }
      }),
    silentNodes: (judge) =>
      Effect.sync(() => {
        for (const nodeId of connections.nodeIds()) {
          if (!heartbeats.has(nodeId)) heartbeats.set(nodeId, { at: now(), steadySince: now() })
        }
        return [...heartbeats.keys()].filter((nodeId) => isSilent(nodeId, judge))
      }),
    report: (nodeId, report) =>
      Effect.sync(() => {
        const known = heartbeats.get(nodeId)
        if (known !== undefined) heartbeats.set(nodeId, { ...known, report })
      }),
    nodes: (limits) =>
      Effect.sync(() =>
        [...heartbeats].map(([nodeId, { at, report }]): NodeState => ({
          nodeId,
          heartbeatAt: at,
          startedAt: report?.startedAt ?? at,
          connections: report?.connections ?? null,
          isDraining: report?.isDraining ?? false,
          isSteady: isSteady({ nodeId, limits }),
          isSilent: ageOf(nodeId) > limits.silence
        })).toSorted((a, b) => a.nodeId < b.nodeId ? -1 : 1)
      ),
    forgetNode: (lapse) =>
      Effect.sync(() => {
        const { nodeId } = lapse
        const isGone = lapse._tag === "NodeStops" || isSilent(nodeId, lapse.judge)
        if (isGone && !connections.isHolder(nodeId)) heartbeats.delete(nodeId)
      })
  })
})
