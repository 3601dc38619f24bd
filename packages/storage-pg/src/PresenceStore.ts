/**
 * Presence on PostgreSQL.
 */
import {
  type DeviceId,
  executionsOf,
  type Lapse,
  type PresenceChange,
  type PresenceOutcome,
  PresenceStore,
  type ReactTo,
  type StoreError
} from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { hasNotEnded } from "./CommandRow.ts"
import { identityColumns, identityFromRow, type IdentityRow } from "./DeviceRow.ts"
import { addReactions } from "./SceneRow.ts"
import { storeError } from "./PgErrors.ts"
import { instant, instants, texts } from "./PgParameters.ts"

/** Part of the group that is replaced together: presence is kept on the device, reads commands and stores executions. */
export const layer: Layer.Layer<PresenceStore, never, PgClient.PgClient> = Layer.effect(
  PresenceStore,
  Effect.suspend(() => make)
)

interface RecordedRow {
  readonly device_id: string
  readonly status_version: bigint
  readonly changed: boolean
  readonly activated: boolean
  readonly waiting: boolean
}

interface LostRow extends IdentityRow {
  readonly status_version: bigint
}

const outcome = (row: RecordedRow | undefined): PresenceOutcome =>
  row === undefined
    ? { _tag: "Ignored" }
    : row.changed
    ? { _tag: "Changed", version: Number(row.status_version), activated: row.activated, waiting: row.waiting }
    : { _tag: "Replaced", waiting: row.waiting }

/** The outcomes of what was recorded of devices, in the order of the devices. */
const inOrder = (devices: ReadonlyArray<{ readonly deviceId: DeviceId }>, rows: ReadonlyArray<RecordedRow>) => {
  const byDevice = new Map(rows.map((row) => [row.device_id, row]))
  return devices.map(({ deviceId }) => outcome(byDevice.get(deviceId)))
}

const lostDevices = (rows: ReadonlyArray<LostRow>) =>
  rows.map((row) => ({ device: identityFromRow(row), version: Number(row.status_version) }))

const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient

  /**
   * All changes in one statement. The rows are locked in the order of their
   * keys, so that two nodes never wait for each other. A node id marks a change
   * to online, null one to offline.
   */
  const record = (changes: ReadonlyArray<PresenceChange>) =>
    sql<RecordedRow>`
      WITH change AS (
        SELECT * FROM unnest(
          ${texts(changes.map(({ deviceId }) => deviceId))},
          ${texts(changes.map(({ connectionId }) => connectionId))},
          ${texts(changes.map((change) => change._tag === "Online" ? change.nodeId : null))},
          ${texts(changes.map((change) => change._tag === "Online" ? change.ip : null))},
          ${instants(changes.map(({ at }) => at))}
        ) AS change (device_id, connection_id, node_id, ip, at)
      ), before AS (
        SELECT device.device_id, device.status, device.activated_at
        FROM device JOIN change USING (device_id)
        WHERE CASE WHEN change.node_id IS NULL
          THEN device.connection_id = change.connection_id ELSE device.enabled END
        ORDER BY device.device_id COLLATE "C"
        FOR UPDATE OF device
      )
      UPDATE device SET
        connection_id = CASE WHEN change.node_id IS NOT NULL THEN change.connection_id END,
        online_until = NULL,
        node_id = change.node_id,
        ip = coalesce(change.ip, device.ip),
        activated_at = CASE WHEN change.node_id IS NULL
          THEN device.activated_at ELSE coalesce(device.activated_at, change.at) END,
        status = CASE WHEN change.node_id IS NULL THEN 'offline' ELSE 'online' END,
        status_version = device.status_version +
          CASE WHEN change.node_id IS NOT NULL AND before.status = 'online' THEN 0 ELSE 1 END,
        status_changed_at = CASE WHEN change.node_id IS NOT NULL AND before.status = 'online'
          THEN device.status_changed_at ELSE change.at END
      FROM change JOIN before USING (device_id)
      WHERE device.device_id = change.device_id
      RETURNING device.device_id, device.status_version,
        NOT (change.node_id IS NOT NULL AND before.status = 'online') AS changed,
        change.node_id IS NOT NULL AND before.activated_at IS NULL AS activated,
        change.node_id IS NOT NULL AND (
          EXISTS (
            SELECT FROM command WHERE command.device_id = device.device_id AND ${sql.literal(hasNotEnded)}
              AND command.expires_at > change.at
          ) OR EXISTS (
            SELECT FROM shadow WHERE shadow.device_id = device.device_id AND shadow.desired::text <> '{}'
          )
        ) AS waiting`

  /** The devices to which a lapse applies. */
  const appliesTo = (lapse: Lapse): Statement.Fragment => {
    switch (lapse._tag) {
      case "SeenUntil":
        return sql`device.online_until <= ${instant(lapse.now)}`
      case "NotConnected":
        return sql`device.device_id = ANY(${texts(lapse.deviceIds)}) AND device.online_until IS NOT NULL`
      case "NodeStops":
        return sql`device.node_id = ${lapse.nodeId}`
      case "NodeSilent":
        return sql`device.node_id IS NOT NULL AND NOT EXISTS (
          SELECT FROM node WHERE node.id = device.node_id AND node.heartbeat_at >= ${instant(lapse.since)})`
    }
  }

  const markOffline = (deviceIds: ReadonlyArray<DeviceId>, lapse: Lapse, at: number) =>
    sql<LostRow>`
      WITH lost AS (
        SELECT device_id FROM device WHERE device_id = ANY(${texts(deviceIds)}) AND ${appliesTo(lapse)}
        ORDER BY device_id FOR UPDATE SKIP LOCKED
      )
      UPDATE device SET
        connection_id = NULL, node_id = NULL, online_until = NULL, status = 'offline',
        status_version = status_version + 1, status_changed_at = ${instant(at)}
      FROM lost, product
      WHERE device.device_id = lost.device_id AND product.product_key = device.product_key
      RETURNING ${sql.literal(identityColumns)}, device.status_version`

  /** Stores, in one transaction, changes and the reactions to them. */
  const withReactions = <A>(
    operation: string,
    changes: Effect.Effect<ReadonlyArray<A>, SqlError.SqlError>,
    reactTo: ReactTo<A> | undefined
  ): Effect.Effect<ReadonlyArray<A>, StoreError> =>
    (reactTo === undefined ? changes : sql.withTransaction(
      Effect.tap(
        changes,
        Effect.fnUntraced(function*(made) {
          const reactions = made.length === 0 ? [] : reactTo(made)
          if (reactions.length > 0) yield* addReactions(sql, executionsOf(reactions))
        })
      )
    )).pipe(Effect.mapError(storeError(operation)))

  return PresenceStore.of({
    record: (changes, reactTo) =>
      withReactions("PresenceStore.record", Effect.map(record(changes), (rows) => inOrder(changes, rows)), reactTo),
    markSeen: (sightings, reactTo) =>
      withReactions(
        "PresenceStore.markSeen",
        sql<RecordedRow>`
        WITH sighting AS (
          SELECT * FROM unnest(
            ${texts(sightings.map(({ deviceId }) => deviceId))},
            ${texts(sightings.map(({ ip }) => ip))},
            ${instants(sightings.map(({ at }) => at))},
            ${instants(sightings.map(({ until }) => until))}
          ) AS sighting (device_id, ip, at, until)
        ), before AS (
          SELECT device.device_id, device.status, device.activated_at, device.connection_id, device.status_version
          FROM device JOIN sighting USING (device_id) WHERE device.enabled
          ORDER BY device.device_id COLLATE "C" FOR UPDATE OF device
        ), changed AS (
          UPDATE device SET
            online_until = greatest(device.online_until, sighting.until),
            ip = sighting.ip,
            activated_at = coalesce(device.activated_at, sighting.at),
            status = 'online',
            status_version = device.status_version + CASE WHEN before.status = 'online' THEN 0 ELSE 1 END,
            status_changed_at = CASE WHEN before.status = 'online' THEN device.status_changed_at ELSE sighting.at END
          FROM sighting JOIN before USING (device_id)
          WHERE device.device_id = sighting.device_id AND before.connection_id IS NULL
          RETURNING device.device_id, device.status_version, before.status <> 'online' AS changed,
            before.activated_at IS NULL AS activated, false AS waiting
        )
        SELECT * FROM changed
        UNION ALL
        SELECT device_id, status_version, false, false, false FROM before WHERE connection_id IS NOT NULL`.pipe(
          Effect.map((rows) => inOrder(sightings, rows))
        ),
        reactTo
      ),
    lapsed: (lapse, limit) =>
      sql<IdentityRow>`
        SELECT ${sql.literal(identityColumns)} FROM device JOIN product USING (product_key)
        WHERE ${appliesTo(lapse)} ORDER BY device.device_id LIMIT ${limit}`.pipe(
        Effect.map((rows) => rows.map(identityFromRow)),
        Effect.mapError(storeError("PresenceStore.lapsed"))
      ),
    markOffline: ({ at, deviceIds, lapse, reactTo }) =>
      withReactions(
        "PresenceStore.markOffline",
        Effect.map(markOffline(deviceIds, lapse, at), lostDevices),
        reactTo
      ),
    connectionsOf: (deviceIds) =>
      sql<{ readonly device_id: string; readonly connection_id: string }>`
        SELECT device_id, connection_id FROM device
        WHERE device_id = ANY(${texts(deviceIds)}) AND enabled AND connection_id IS NOT NULL`.pipe(
        Effect.map((rows) => new Map(rows.map((row) => [row.device_id as DeviceId, row.connection_id]))),
        Effect.mapError(storeError("PresenceStore.connectionsOf"))
      ),
    heartbeat: (nodeId, at) =>
      sql`INSERT INTO node (id, heartbeat_at) VALUES (${nodeId}, ${instant(at)})
          ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at`.pipe(
        Effect.asVoid,
        Effect.mapError(storeError("PresenceStore.heartbeat"))
      ),
    forgetNodes: (lapse) =>
      sql`DELETE FROM node WHERE ${
        lapse._tag === "NodeStops" ? sql`id = ${lapse.nodeId}` : sql`heartbeat_at < ${instant(lapse.since)}`
      } AND NOT EXISTS (SELECT FROM device WHERE device.node_id = node.id)`.pipe(
        Effect.asVoid,
        Effect.mapError(storeError("PresenceStore.forgetNodes"))
      )
  })
})
