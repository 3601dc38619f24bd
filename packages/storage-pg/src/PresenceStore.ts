/**
 * Presence on PostgreSQL.
 */
import {
  type DeviceId,
  executionsOf,
  type Judge,
  type Lapse,
  type NodeState,
  type OwnerClaim,
  type PresenceChange,
  type PresenceOutcome,
  PresenceStore,
  type ReactTo,
  type Sighting,
  sightingMillis,
  type StoreError
} from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { hasNotEnded } from "./CommandRow.ts"
import { identityColumns, identityFromRow, type IdentityRow } from "./DeviceRow.ts"
import { addReactions } from "./SceneRow.ts"
import { storeError } from "./PgErrors.ts"
import { instant, instants, texts, wholeNumbers } from "./PgParameters.ts"

/** Part of the group that is replaced together: presence stands beside the device, reads commands and stores executions. */
export const layer: Layer.Layer<PresenceStore, never, PgClient.PgClient> = Layer.effect(
  PresenceStore,
  Effect.suspend(() => make)
)

interface RecordedRow {
  readonly device_id: string
  readonly epoch: bigint | null
  readonly last_command: bigint
  readonly desired_changes: bigint
  readonly replaced_node_id: string | null
  readonly replaced_epoch: bigint | null
  readonly status_version: bigint | null
  readonly activated: boolean
  readonly waiting: boolean
}

interface SeenRow {
  readonly device_id: string
  readonly status_version: bigint | null
  readonly activated: boolean
}

interface LostRow extends IdentityRow {
  readonly status_version: bigint
}

interface NodeRow {
  readonly id: string
  readonly heartbeat_at: Date
  readonly started_at: Date
  readonly connections: number | null
  readonly draining: boolean
  readonly is_steady: boolean
  readonly is_silent: boolean
}

interface OwnerRow {
  readonly device_id: string
  readonly node_id: string
  readonly connection_id: string
  readonly epoch: bigint
  readonly last_command: bigint
  readonly desired_changes: bigint
  readonly enabled: boolean
}

/** What the statement returns in place of the node that a connection replaces, if that is the connection itself. */
const itself = ""

const previousOf = ({ replaced_node_id: nodeId }: RecordedRow) =>
  nodeId === null || nodeId === itself ? undefined : { nodeId }

/** `status_version` is null if the status is as before. */
const outcomeOf = (row: SeenRow): PresenceOutcome & { readonly _tag: "Replaced" | "Changed" } =>
  row.status_version === null
    ? { _tag: "Replaced" }
    : { _tag: "Changed", version: Number(row.status_version), activated: row.activated }

const recordedOutcome = (row: RecordedRow): PresenceOutcome => {
  const outcome = outcomeOf(row)
  if (row.epoch === null) return outcome
  const claim: OwnerClaim = {
    epoch: Number(row.epoch),
    epochBefore: Number(row.replaced_epoch ?? 0),
    lastCommand: Number(row.last_command),
    desiredChanges: Number(row.desired_changes),
    waiting: row.waiting,
    previous: previousOf(row)
  }
  return outcome._tag === "Replaced" && row.replaced_node_id === itself
    ? { _tag: "Kept", claim }
    : { ...outcome, claim }
}

/** The outcomes of what was stored of devices, in the order of the devices. */
const inOrder = <A extends { readonly device_id: string }>(
  devices: ReadonlyArray<{ readonly deviceId: DeviceId }>,
  rows: ReadonlyArray<A>,
  outcome: (row: A) => PresenceOutcome
): ReadonlyArray<PresenceOutcome> => {
  const byDevice = new Map(rows.map((row) => [row.device_id, row]))
  return devices.map(({ deviceId }) => {
    const row = byDevice.get(deviceId)
    return row === undefined ? { _tag: "Ignored" } : outcome(row)
  })
}

const lostDevices = (rows: ReadonlyArray<LostRow>) =>
  rows.map((row) => ({ device: identityFromRow(row), version: Number(row.status_version) }))

const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient

  /**
   * All changes in one statement. Rows are locked in the order of their keys, those
   * of devices first, so that two nodes never wait for each other. A node id marks a
   * change to online, null one to offline. The number of an epoch is taken when the
   * device is locked. What was stored while the statement waited for the lock is no
   * row for it yet, a command or a desired value: then the device has other numbers of
   * them than the statement sees.
   */
  const record = (changes: ReadonlyArray<PresenceChange>) =>
    sql<RecordedRow>`
      WITH change AS (
        SELECT * FROM unnest(
          ${texts(changes.map(({ deviceId }) => deviceId))},
          ${texts(changes.map(({ connectionId }) => connectionId))},
          ${texts(changes.map((change) => change._tag === "Online" ? change.nodeId : null))},
          ${texts(changes.map((change) => change._tag === "Online" ? change.ip : null))},
          ${wholeNumbers(changes.map((change) => change._tag === "Online" ? change.resumes ?? null : null))}::bigint[],
          ${instants(changes.map(({ at }) => at))}
        ) AS change (device_id, connection_id, node_id, ip, resumes, at)
      ), before AS (
        SELECT device.device_id, device.status, device.activated_at
        FROM device JOIN change USING (device_id)
        WHERE CASE WHEN change.node_id IS NULL
          THEN EXISTS (
            SELECT FROM presence
            WHERE presence.device_id = change.device_id AND presence.connection_id = change.connection_id
          ) ELSE device.enabled END
        ORDER BY device.device_id COLLATE "C"
        FOR NO KEY UPDATE OF device
      ), owned AS (
        INSERT INTO presence AS held (device_id, node_id, connection_id, epoch)
        SELECT change.device_id, change.node_id, change.connection_id,
          CASE WHEN change.node_id IS NULL THEN 0 ELSE nextval('presence_epoch') END
        FROM change JOIN before USING (device_id)
        ORDER BY change.device_id COLLATE "C"
        ON CONFLICT (device_id) DO UPDATE SET
          node_id = excluded.node_id,
          connection_id = CASE WHEN excluded.node_id IS NOT NULL THEN excluded.connection_id END,
          epoch = greatest(held.epoch, excluded.epoch),
          online_until = NULL,
          replaced_epoch = held.epoch,
          replaced_node_id = CASE WHEN held.connection_id = excluded.connection_id THEN '' ELSE held.node_id END
        WHERE CASE WHEN excluded.node_id IS NULL
          THEN held.connection_id = excluded.connection_id
          ELSE held.connection_id = excluded.connection_id OR held.epoch <= coalesce(
            (SELECT change.resumes FROM change WHERE change.device_id = held.device_id), held.epoch
          ) END
        RETURNING held.device_id, held.node_id, held.epoch, held.last_command, held.desired_changes,
          held.replaced_node_id, held.replaced_epoch
      ), changed AS (
        UPDATE device SET
          ip = coalesce(change.ip, device.ip),
          activated_at = CASE WHEN change.node_id IS NULL
            THEN device.activated_at ELSE coalesce(device.activated_at, change.at) END,
          status = CASE WHEN change.node_id IS NULL THEN 'offline' ELSE 'online' END,
          status_version = device.status_version +
            CASE WHEN change.node_id IS NOT NULL AND before.status = 'online' THEN 0 ELSE 1 END,
          status_changed_at = CASE WHEN change.node_id IS NOT NULL AND before.status = 'online'
            THEN device.status_changed_at ELSE change.at END
        FROM owned JOIN before USING (device_id) JOIN change USING (device_id)
        WHERE device.device_id = owned.device_id
          AND (change.node_id IS NULL OR before.status <> 'online' OR device.ip <> change.ip)
        RETURNING device.device_id, device.status_version
      )
      SELECT owned.device_id, owned.last_command, owned.desired_changes, owned.replaced_node_id,
        owned.replaced_epoch,
        CASE WHEN owned.node_id IS NOT NULL THEN owned.epoch END AS epoch,
        CASE WHEN owned.node_id IS NULL OR before.status <> 'online' THEN changed.status_version END AS status_version,
        owned.node_id IS NOT NULL AND before.activated_at IS NULL AS activated,
        owned.node_id IS NOT NULL AND (
          EXISTS (
            SELECT FROM command WHERE command.device_id = owned.device_id AND ${sql.literal(hasNotEnded)}
              AND command.expires_at > change.at
          ) OR owned.last_command + owned.desired_changes <> coalesce((
            SELECT seen.last_command + seen.desired_changes FROM presence AS seen
            WHERE seen.device_id = owned.device_id
          ), 0) OR EXISTS (
            SELECT FROM shadow WHERE shadow.device_id = owned.device_id AND shadow.desired::text <> '{}'
          )
        ) AS waiting
      FROM owned JOIN before USING (device_id) JOIN change USING (device_id) LEFT JOIN changed USING (device_id)`

  /** As `record`, for devices that hold no connection. */
  const markSeen = (sightings: ReadonlyArray<Sighting>) =>
    sql<SeenRow>`
      WITH sighting AS (
        SELECT * FROM unnest(
          ${texts(sightings.map(({ deviceId }) => deviceId))},
          ${texts(sightings.map(({ ip }) => ip))},
          ${instants(sightings.map(({ at }) => at))},
          ${wholeNumbers(sightings.map(({ lasts }) => lasts))}
        ) AS sighting (device_id, ip, at, lasts)
      ), before AS (
        SELECT device.device_id, device.status, device.activated_at
        FROM device JOIN sighting USING (device_id) WHERE device.enabled
        ORDER BY device.device_id COLLATE "C" FOR NO KEY UPDATE OF device
      ), seen AS (
        INSERT INTO presence AS held (device_id, online_until)
        SELECT sighting.device_id, clock_timestamp() + sighting.lasts * interval '1 millisecond'
        FROM sighting JOIN before USING (device_id)
        ORDER BY sighting.device_id COLLATE "C"
        -- One that is further away was stored while the clock of the database was ahead.
        ON CONFLICT (device_id) DO UPDATE SET online_until = CASE
          WHEN held.online_until <= clock_timestamp() + ${sightingMillis}::float8 * interval '1 millisecond'
          THEN greatest(held.online_until, excluded.online_until) ELSE excluded.online_until END
        WHERE held.node_id IS NULL
        RETURNING held.device_id
      ), changed AS (
        UPDATE device SET
          ip = sighting.ip,
          activated_at = coalesce(device.activated_at, sighting.at),
          status = 'online',
          status_version = device.status_version + CASE WHEN before.status = 'online' THEN 0 ELSE 1 END,
          status_changed_at = CASE WHEN before.status = 'online' THEN device.status_changed_at ELSE sighting.at END
        FROM seen JOIN before USING (device_id) JOIN sighting USING (device_id)
        WHERE device.device_id = seen.device_id
          AND (before.status <> 'online' OR device.ip <> sighting.ip)
        RETURNING device.device_id, device.status_version
      )
      SELECT before.device_id, before.activated_at IS NULL AS activated,
        CASE WHEN before.status <> 'online' THEN changed.status_version END AS status_version
      FROM before LEFT JOIN changed USING (device_id)`

  /** How old a heartbeat is; one from the future is as old as it is ahead. */
  const age = sql.literal("abs(extract(epoch FROM clock_timestamp() - node.heartbeat_at)) * 1000")

  const isSteady = ({ limits: { gap, silence }, nodeId }: Judge) =>
    sql`EXISTS (SELECT FROM node WHERE node.id = ${nodeId} AND ${age} <= ${gap}
      AND extract(epoch FROM node.heartbeat_at - node.steady_since) * 1000 >= ${silence})`

  /** The connection of the latest heartbeat has ended. Of a node without known backend, any connection counts. */
  const hasEnded = sql.literal("NOT EXISTS (SELECT FROM pg_stat_get_activity(node.backend))")

  const isSilentWithin = ({ gap, silence }: Judge["limits"]) =>
    sql`(${age} > ${silence} OR ${age} > ${gap} AND ${hasEnded})`

  const isSilent = ({ judge, nodeId }: Lapse & { readonly _tag: "NodeSilent" }) =>
    sql`node.id = ${nodeId} AND ${isSilentWithin(judge.limits)}`

  /** The online devices to which a lapse applies. */
  const appliesTo = (lapse: Lapse): Statement.Fragment => {
    switch (lapse._tag) {
      case "SightingEnds":
        return sql`presence.online_until <= now() AND ${isSteady(lapse.judge)}`
      case "NotConnected":
        return sql`presence.device_id = ANY(${texts(lapse.deviceIds)}) AND presence.online_until IS NOT NULL`
      case "NodeStops":
        return sql`presence.node_id = ${lapse.nodeId}`
      case "NodeSilent":
        return sql`presence.node_id = ${lapse.nodeId} AND ${isSteady(lapse.judge)}
          AND EXISTS (SELECT FROM node WHERE ${isSilent(lapse)})`
    }
  }

  /** The row of a silent node is locked until its devices are offline: its heartbeat waits. */
  const locked = (lapse: Lapse): Statement.Fragment =>
    lapse._tag === "NodeSilent"
      ? sql`SELECT FROM node WHERE ${isSilent(lapse)} FOR SHARE`
      : sql`SELECT`

  const markOffline = (deviceIds: ReadonlyArray<DeviceId>, lapse: Lapse, at: number) =>
    sql<LostRow>`
      WITH judged AS MATERIALIZED (${locked(lapse)}), named AS (
        SELECT device.device_id FROM device
        WHERE device.device_id = ANY(${texts(deviceIds)}) AND EXISTS (SELECT FROM judged)
        ORDER BY device.device_id COLLATE "C" FOR NO KEY UPDATE OF device SKIP LOCKED
      ), lost AS (
        SELECT presence.device_id FROM presence JOIN named USING (device_id) WHERE ${appliesTo(lapse)}
        ORDER BY presence.device_id FOR NO KEY UPDATE OF presence
      ), released AS (
        UPDATE presence SET connection_id = NULL, node_id = NULL, online_until = NULL
        FROM lost WHERE presence.device_id = lost.device_id
      )
      UPDATE device SET
        status = 'offline', status_version = status_version + 1, status_changed_at = ${instant(at)}
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
      withReactions(
        "PresenceStore.record",
        Effect.map(record(changes), (rows) => inOrder(changes, rows, recordedOutcome)),
        reactTo
      ),
    markSeen: (sightings, reactTo) =>
      withReactions(
        "PresenceStore.markSeen",
        Effect.map(markSeen(sightings), (rows) => inOrder(sightings, rows, outcomeOf)),
        reactTo
      ),
    lapsed: (lapse, limit, after) =>
      // The limit is part of the statement: a plan for any limit reads all devices.
      sql<IdentityRow>`
        WITH lapsed AS MATERIALIZED (
          SELECT device_id FROM presence WHERE ${appliesTo(lapse)} ${
        "nodeId" in lapse ? sql`AND device_id > ${after ?? ""} ORDER BY device_id` : sql``
      } LIMIT ${sql.literal(String(limit))}
        )
        SELECT ${sql.literal(identityColumns)}
        FROM lapsed JOIN device USING (device_id) JOIN product USING (product_key)
        ORDER BY lapsed.device_id`.pipe(
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
      sql<OwnerRow>`
        SELECT presence.device_id, node_id, connection_id, epoch, last_command, desired_changes, device.enabled
        FROM presence JOIN device USING (device_id)
        WHERE presence.device_id = ANY(${texts(deviceIds)}) AND node_id IS NOT NULL`.pipe(
        Effect.map((rows) =>
          new Map(rows.map((row) => [row.device_id as DeviceId, {
            nodeId: row.node_id,
            connectionId: row.connection_id,
            epoch: Number(row.epoch),
            lastCommand: Number(row.last_command),
            desiredChanges: Number(row.desired_changes),
            enabled: row.enabled
          }]))
        ),
        Effect.mapError(storeError("PresenceStore.connectionsOf"))
      ),
    noteDesired: (deviceId) =>
      sql<{ readonly node_id: string | null; readonly desired_changes: bigint }>`
        UPDATE presence SET desired_changes = desired_changes + 1
        WHERE device_id = ${deviceId} RETURNING node_id, desired_changes`.pipe(
        Effect.map(([row]) => row && { nodeId: row.node_id ?? undefined, desiredChanges: Number(row.desired_changes) }),
        Effect.mapError(storeError("PresenceStore.noteDesired"))
      ),
    heartbeat: (nodeId, { gap, silence }) =>
      sql<{ readonly was_silent: boolean }>`
        WITH before AS (
          SELECT * FROM node WHERE id = ${nodeId} FOR NO KEY UPDATE
        ), beat AS (
          -- The time after the wait for the lock.
          SELECT clock_timestamp() AS at, max(heartbeat_at) AS last, max(steady_since) AS steady_since FROM before
        )
        INSERT INTO node (id, heartbeat_at, steady_since, backend)
        SELECT ${nodeId}, at,
          CASE WHEN abs(extract(epoch FROM at - last)) * 1000 <= ${gap} THEN steady_since ELSE at END,
          pg_backend_pid()
        FROM beat
        ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at, steady_since = excluded.steady_since,
          backend = excluded.backend
        RETURNING coalesce((SELECT ${isSilentWithin({ gap, silence })} FROM before AS node), true) AS was_silent`.pipe(
        Effect.map(([row]) => ({ wasSilent: row!.was_silent })),
        Effect.mapError(storeError("PresenceStore.heartbeat"))
      ),
    silentNodes: (judge) =>
      sql<{ readonly id: string }>`
        WITH RECURSIVE holder AS (
          SELECT min(node_id) AS id FROM presence WHERE node_id IS NOT NULL
          UNION ALL
          SELECT (SELECT min(node_id) FROM presence WHERE node_id > holder.id) FROM holder WHERE holder.id IS NOT NULL
        ), heard AS (
          INSERT INTO node (id, heartbeat_at)
          SELECT id, clock_timestamp() FROM holder
          WHERE id IS NOT NULL AND NOT EXISTS (SELECT FROM node WHERE node.id = holder.id)
          ON CONFLICT (id) DO NOTHING
        )
        SELECT id FROM node WHERE ${isSilentWithin(judge.limits)} AND ${isSteady(judge)}`.pipe(
        Effect.map((rows) => rows.map(({ id }) => id)),
        Effect.mapError(storeError("PresenceStore.silentNodes"))
      ),
    report: (nodeId, { connections, isDraining, startedAt }) =>
      sql`UPDATE node SET started_at = ${instant(startedAt)}, connections = ${connections}::int,
          draining = ${isDraining} WHERE id = ${nodeId}`.pipe(
        Effect.asVoid,
        Effect.mapError(storeError("PresenceStore.report"))
      ),
    nodes: (limits) =>
      sql<NodeRow>`SELECT id, heartbeat_at, started_at, connections, draining,
          ${isSilentWithin(limits)} AS is_silent,
          ${age} <= ${limits.gap}
            AND extract(epoch FROM heartbeat_at - steady_since) * 1000 >= ${limits.silence} AS is_steady
        FROM node ORDER BY id COLLATE "C"`.pipe(
        Effect.map((rows) =>
          rows.map((row): NodeState => ({
            nodeId: row.id,
            heartbeatAt: row.heartbeat_at.getTime(),
            startedAt: row.started_at.getTime(),
            connections: row.connections,
            isDraining: row.draining,
            isSteady: row.is_steady,
            isSilent: row.is_silent
          }))
        ),
        Effect.mapError(storeError("PresenceStore.nodes"))
      ),
    forgetNode: (lapse) =>
      sql`DELETE FROM node WHERE ${
        lapse._tag === "NodeStops" ? sql`id = ${lapse.nodeId}` : isSilent(lapse)
      } AND NOT EXISTS (SELECT FROM presence WHERE presence.node_id = node.id)`.pipe(
        Effect.asVoid,
        Effect.mapError(storeError("PresenceStore.forgetNode"))
      )
  })
})
