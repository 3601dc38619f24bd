/**
 * Presence on SQLite.
 */
import {
  type DeviceId,
  executionsOf,
  type Lapse,
  type LostDevice,
  type PresenceChange,
  type PresenceOutcome,
  PresenceStore,
  type ReactTo,
  type Sighting,
  type StoreError
} from "@device-cloud/core"
import { Clock, Effect, Layer } from "effect"
import * as NodeHeartbeats from "./NodeHeartbeats.ts"
import { identityColumns, identityFromRow, type IdentityRow } from "./Rows.ts"
import { addReactions } from "./SceneRow.ts"
import { Sqlite, type Value } from "./Sqlite.ts"

/** Part of the group that is replaced together: presence stands beside the device, reads commands and stores executions. */
export const layer: Layer.Layer<PresenceStore, never, Sqlite> = Layer.effect(
  PresenceStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

interface PresenceRow {
  readonly node_id: string | null
  readonly connection_id: string | null
  readonly epoch: number
  readonly last_command: number
  readonly desired_changes: number
  readonly online_until: number | null
}

/** Of a device without a row. */
const absent: PresenceRow = {
  node_id: null,
  connection_id: null,
  epoch: 0,
  last_command: 0,
  desired_changes: 0,
  online_until: null
}

interface StatusRow {
  readonly enabled: number
  readonly status: string
  readonly status_version: number
  readonly activated_at: number | null
}

type Online = PresenceChange & { readonly _tag: "Online" }

const make = (sql: Sqlite["Service"]) => {
  const statusOf = (deviceId: DeviceId): StatusRow | undefined =>
    sql.get<StatusRow>("SELECT enabled, status, status_version, activated_at FROM device WHERE device_id = ?", [
      deviceId
    ])

  const presenceOf = (deviceId: DeviceId): PresenceRow =>
    sql.get<PresenceRow>("SELECT * FROM presence WHERE device_id = ?", [deviceId]) ?? absent

  /** Stores that the device is offline. Returns the new version of its status. */
  const setOffline = (deviceId: DeviceId, at: number): number => {
    sql.run("UPDATE presence SET node_id = NULL, connection_id = NULL, online_until = NULL WHERE device_id = ?", [
      deviceId
    ])
    return sql.get<{ readonly status_version: number }>(
      `UPDATE device SET status = 'offline', status_version = status_version + 1, status_changed_at = ?
        WHERE device_id = ? RETURNING status_version`,
      [at, deviceId]
    )!.status_version
  }

  /** Stores that the device is online. Returns the new version of its status; undefined: it was online. */
  const setOnline = (
    before: StatusRow,
    { at, deviceId, ip }: Pick<Online, "at" | "deviceId" | "ip">
  ): number | undefined => {
    if (before.status === "online") {
      sql.run("UPDATE device SET ip = ?1 WHERE device_id = ?2 AND ip <> ?1", [ip, deviceId])
      return undefined
    }
    const version = before.status_version + 1
    sql.run(
      `UPDATE device SET status = 'online', status_version = ?1, status_changed_at = ?2, ip = ?3,
        activated_at = coalesce(activated_at, ?2) WHERE device_id = ?4`,
      [version, at, ip, deviceId]
    )
    return version
  }

  /** Whether the device has commands that have not ended, or desired values. */
  const isWaitedFor = (deviceId: DeviceId, now: number): boolean =>
    sql.get("SELECT 1 FROM command WHERE device_id = ? AND is_open = 1 AND expires_at > ? LIMIT 1", [deviceId, now]) !==
      undefined ||
    sql.get("SELECT 1 FROM shadow WHERE device_id = ? AND desired <> '{}'", [deviceId]) !== undefined

  const goOnline = (change: Online): PresenceOutcome => {
    const { at, connectionId, deviceId, nodeId, resumes } = change
    const device = statusOf(deviceId)
    const held = presenceOf(deviceId)
    const isLater = held.connection_id === connectionId || held.epoch <= (resumes ?? held.epoch)
    if (device?.enabled !== 1 || !isLater) return { _tag: "Ignored" }
    const epoch = held.epoch + 1
    sql.run(
      `INSERT INTO presence (device_id, node_id, connection_id, epoch) VALUES (?, ?, ?, ?)
        ON CONFLICT (device_id) DO UPDATE SET node_id = excluded.node_id, connection_id = excluded.connection_id,
          epoch = excluded.epoch, online_until = NULL`,
      [deviceId, nodeId, connectionId, epoch]
    )
    const version = setOnline(device, change)
    const claim = {
      epoch,
      epochBefore: held.epoch,
      lastCommand: held.last_command,
      desiredChanges: held.desired_changes,
      waiting: isWaitedFor(deviceId, at),
      previous: held.node_id === null ? undefined : { nodeId: held.node_id }
    }
    if (held.connection_id === connectionId) return { _tag: "Kept", claim: { ...claim, previous: undefined } }
    return version === undefined
      ? { _tag: "Replaced", claim }
      : { _tag: "Changed", version, activated: device.activated_at === null, claim }
  }

  const record = (change: PresenceChange): PresenceOutcome => {
    if (change._tag === "Online") return goOnline(change)
    const { at, connectionId, deviceId } = change
    return presenceOf(deviceId).connection_id === connectionId
      ? { _tag: "Changed", version: setOffline(deviceId, at), activated: false }
      : { _tag: "Ignored" }
  }

  const markSeen = (sighting: Sighting, now: number): PresenceOutcome => {
    const { deviceId, lasts } = sighting
    const device = statusOf(deviceId)
    if (device?.enabled !== 1) return { _tag: "Ignored" }
    const held = presenceOf(deviceId)
    if (held.node_id !== null) return { _tag: "Replaced" }
    sql.run(
      `INSERT INTO presence (device_id, online_until) VALUES (?, ?)
        ON CONFLICT (device_id) DO UPDATE SET online_until = excluded.online_until`,
      [deviceId, Math.max(now + lasts, held.online_until ?? 0)]
    )
    const version = setOnline(device, sighting)
    return version === undefined
      ? { _tag: "Replaced" }
      : { _tag: "Changed", version, activated: device.activated_at === null }
  }

  /** The condition that a lapse applies to rows of `presence`; undefined: to none. */
  const conditionOf = (
    lapse: Lapse,
    now: number
  ): { readonly where: string; readonly values: ReadonlyArray<Value> } | undefined => {
    switch (lapse._tag) {
      case "SightingEnds":
        return NodeHeartbeats.isSteady(sql, lapse.judge, now)
          ? { where: "presence.online_until <= ?", values: [now] }
          : undefined
      case "NotConnected":
        return { where: "presence.online_until IS NOT NULL", values: [] }
      case "NodeSilent":
        if (!NodeHeartbeats.isSilent(sql, lapse.nodeId, lapse.judge, now)) return undefined
        return { where: "presence.node_id = ?", values: [lapse.nodeId] }
      case "NodeStops":
        return { where: "presence.node_id = ?", values: [lapse.nodeId] }
    }
  }

  const tables = "presence JOIN device USING (device_id) JOIN product USING (product_key)"

  const lapsed = (lapse: Lapse, now: number, limit: number, after = "") => {
    const condition = conditionOf(lapse, now)
    if (condition === undefined) return []
    const [rest, values]: readonly [string, ReadonlyArray<Value>] = "nodeId" in lapse
      ? ["AND presence.device_id > ? ORDER BY presence.device_id", [after]]
      : lapse._tag === "NotConnected"
      ? ["AND presence.device_id IN (SELECT value FROM json_each(?))", [JSON.stringify(lapse.deviceIds)]]
      : ["", []]
    return sql.all<IdentityRow>(
      `SELECT ${identityColumns} FROM ${tables} WHERE ${condition.where} ${rest} LIMIT ?`,
      [...condition.values, ...values, limit]
    ).map(identityFromRow)
  }

  const markOffline = (
    deviceIds: ReadonlyArray<DeviceId>,
    lapse: Lapse,
    at: number,
    now: number
  ): ReadonlyArray<LostDevice> => {
    const condition = conditionOf(lapse, now)
    if (condition === undefined) return []
    const judged = new Set(lapse._tag === "NotConnected" ? lapse.deviceIds : deviceIds)
    return deviceIds.flatMap((deviceId) => {
      const row = !judged.has(deviceId) ? undefined : sql.get<IdentityRow>(
        `SELECT ${identityColumns} FROM ${tables} WHERE presence.device_id = ? AND ${condition.where}`,
        [deviceId, ...condition.values]
      )
      return row === undefined ? [] : [{ device: identityFromRow(row), version: setOffline(deviceId, at) }]
    })
  }

  /** Stores, in one transaction, changes and the reactions to them. `change` gets the time, Unix milliseconds. */
  const withReactions = <A>(
    operation: string,
    change: (now: number) => ReadonlyArray<A>,
    reactTo: ReactTo<A> | undefined
  ): Effect.Effect<ReadonlyArray<A>, StoreError> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      sql.write(operation, () => {
        const made = change(now)
        if (reactTo !== undefined && made.length > 0) addReactions(sql, executionsOf(reactTo(made)))
        return made
      }))

  return PresenceStore.of({
    record: (changes, reactTo) => withReactions("PresenceStore.record", () => changes.map(record), reactTo),
    markSeen: (sightings, reactTo) =>
      withReactions(
        "PresenceStore.markSeen",
        (now) => sightings.map((sighting) => markSeen(sighting, now)),
        reactTo
      ),
    lapsed: (lapse, limit, after) =>
      Effect.flatMap(
        Clock.currentTimeMillis,
        (now) => sql.read("PresenceStore.lapsed", () => lapsed(lapse, now, limit, after))
      ),
    markOffline: ({ at, deviceIds, lapse, reactTo }) =>
      withReactions("PresenceStore.markOffline", (now) => markOffline(deviceIds, lapse, at, now), reactTo),
    connectionsOf: (deviceIds) =>
      sql.read("PresenceStore.connectionsOf", () =>
        new Map(deviceIds.flatMap((deviceId) => {
          const row = sql.get<PresenceRow & { readonly enabled: number }>(
            "SELECT presence.*, device.enabled FROM presence JOIN device USING (device_id) WHERE device_id = ?",
            [deviceId]
          )
          return row === undefined || row.node_id === null ? [] : [[deviceId, {
            nodeId: row.node_id,
            connectionId: row.connection_id!,
            epoch: row.epoch,
            lastCommand: row.last_command,
            desiredChanges: row.desired_changes,
            enabled: row.enabled === 1
          }]]
        }))),
    noteDesired: (deviceId) =>
      sql.write("PresenceStore.noteDesired", () => {
        const row = sql.get<PresenceRow>(
          "UPDATE presence SET desired_changes = desired_changes + 1 WHERE device_id = ? RETURNING *",
          [deviceId]
        )
        return row && { desiredChanges: row.desired_changes, nodeId: row.node_id ?? undefined }
      }),
    heartbeat: (nodeId, limits) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        sql.write(
          "PresenceStore.heartbeat",
          () => ({ wasSilent: NodeHeartbeats.beat(sql, nodeId, limits, now) })
        )),
    report: (nodeId, report) => sql.write("PresenceStore.report", () => NodeHeartbeats.report(sql, nodeId, report)),
    nodes: (limits) =>
      Effect.flatMap(
        Clock.currentTimeMillis,
        (now) => sql.read("PresenceStore.nodes", () => NodeHeartbeats.nodes(sql, limits, now))
      ),
    silentNodes: (judge) =>
      Effect.flatMap(
        Clock.currentTimeMillis,
        (now) => sql.write("PresenceStore.silentNodes", () => NodeHeartbeats.silentNodes(sql, judge, now))
      ),
    forgetNode: (lapse) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        sql.write("PresenceStore.forgetNode", () => {
          const isGone = lapse._tag === "NodeStops" || NodeHeartbeats.isSilent(sql, lapse.nodeId, lapse.judge, now)
          if (isGone) NodeHeartbeats.forget(sql, lapse.nodeId)
        }))
  })
}
