/**
 * Presence on PostgreSQL.
 */
import {
  type DeviceId,
  type Fired,
  type PresenceChange,
  type PresenceOutcome,
  PresenceStore,
  type StoreError
} from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { hasNotEnded, stateNumber } from "./CommandRow.ts"
import { identityColumns, identityFromRow, type IdentityRow } from "./DeviceRow.ts"
import { addExecutions } from "./SceneRow.ts"
import { instant, instants, storeError, texts } from "./Sql.ts"

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
              AND command.state < ${stateNumber("acked")} AND command.expires_at > change.at
          ) OR EXISTS (
            SELECT FROM shadow WHERE shadow.device_id = device.device_id AND shadow.desired::text <> '{}'
          )
        ) AS waiting`

  /** Sets at most `limit` of the devices offline. */
  const lose = (which: Statement.Fragment, at: number, limit: number) =>
    sql<LostRow>`
      WITH lost AS (
        SELECT device_id FROM device WHERE ${which} ORDER BY device_id LIMIT ${limit} FOR UPDATE SKIP LOCKED
      )
      UPDATE device SET
        connection_id = NULL, node_id = NULL, online_until = NULL, status = 'offline',
        status_version = status_version + 1, status_changed_at = ${instant(at)}
      FROM lost, product
      WHERE device.device_id = lost.device_id AND product.product_key = device.product_key
      RETURNING ${sql.literal(identityColumns)}, device.status_version`

  /** Stores, in one transaction, what is done and the executions that follow from it. */
  const withFired = <A>(
    operation: string,
    done: Effect.Effect<ReadonlyArray<A>, SqlError.SqlError>,
    fired: Fired<A> | undefined
  ): Effect.Effect<ReadonlyArray<A>, StoreError> =>
    (fired === undefined ? done : sql.withTransaction(
      Effect.tap(
        done,
        Effect.fnUntraced(function*(changes) {
          const executions = changes.length === 0 ? [] : yield* fired(changes)
          if (executions.length > 0) yield* addExecutions(sql, executions)
        })
      )
    )).pipe(Effect.mapError((error) => error._tag === "StoreError" ? error : storeError(operation)(error)))

  return PresenceStore.of({
    record: (changes, fired) =>
      withFired("PresenceStore.record", Effect.map(record(changes), (rows) => inOrder(changes, rows)), fired),
    sight: (sightings, fired) =>
      withFired(
        "PresenceStore.sight",
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
        fired
      ),
    expire: ({ fired, limit, now }) =>
      withFired(
        "PresenceStore.expire",
        Effect.map(lose(sql`device.online_until <= ${instant(now)}`, now, limit), lostDevices),
        fired
      ),
    endSightings: ({ at, deviceIds, fired }) => {
      const which = sql`device_id = ANY(${texts(deviceIds)}) AND online_until IS NOT NULL`
      return withFired(
        "PresenceStore.endSightings",
        Effect.map(lose(which, at, deviceIds.length), lostDevices),
        fired
      )
    },
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
    release: ({ at, fired, limit, node }) => {
      const gone = "id" in node
        ? sql`device.node_id = ${node.id}`
        : sql`device.node_id IS NOT NULL AND NOT EXISTS (
            SELECT FROM node WHERE node.id = device.node_id AND node.heartbeat_at >= ${instant(node.silentSince)})`
      const forgotten = "id" in node ? sql`id = ${node.id}` : sql`heartbeat_at < ${instant(node.silentSince)}`
      const release = Effect.gen(function*() {
        const rows = yield* lose(gone, at, limit)
        if (rows.length < limit) {
          yield* sql`DELETE FROM node WHERE ${forgotten}
            AND NOT EXISTS (SELECT FROM device WHERE device.node_id = node.id)`
        }
        return lostDevices(rows)
      }).pipe(sql.withTransaction)
      return withFired("PresenceStore.release", release, fired)
    }
  })
})

export const layer: Layer.Layer<PresenceStore, never, PgClient.PgClient> = Layer.effect(PresenceStore, make)
