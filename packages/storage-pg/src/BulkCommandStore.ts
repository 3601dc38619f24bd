/**
 * Bulk commands on PostgreSQL.
 */
import {
  BulkCommandStore,
  type BulkCounts,
  type BulkCreated,
  type BulkDevice,
  type BulkDeviceState,
  type BulkScope,
  CommandState,
  type DeviceId,
  type DeviceName,
  maxBulkDevices,
  maxRunningBulkCommands,
  type NewBulkCommand,
  type ProjectId
} from "@device-cloud/core"
import { type PgClient, PgTypes } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { bulkFromRow, type BulkRow } from "./BulkRow.ts"
import * as BulkTurns from "./BulkTurns.ts"
import { matches } from "./DeviceFilter.ts"
import { clients } from "./LongReads.ts"
import { paginate } from "./Pagination.ts"
import { storeError } from "./PgErrors.ts"
import { eachByIndex, instant, texts } from "./PgParameters.ts"
import { pruneWithParts } from "./Pruning.ts"
import { unknownDevices } from "./UnknownDevices.ts"

/** Part of the group that is replaced together: it finds devices and reads commands. */
export const layer: Layer.Layer<BulkCommandStore, never, PgClient.PgClient> = Layer.effect(
  BulkCommandStore,
  Effect.map(clients, ({ reads, sql }) => make(sql, reads))
)

interface DeviceRow {
  readonly device_id: string
  readonly device_name: string
  readonly progress: string
  readonly message_id: bigint | null
  readonly code: bigint | null
  readonly reason: string
}

const deviceFromRow = (row: DeviceRow): BulkDevice => ({
  deviceId: row.device_id as DeviceId,
  deviceName: row.device_name as DeviceName,
  state: row.progress as BulkDeviceState,
  messageId: row.message_id === null ? null : Number(row.message_id),
  code: row.code === null ? null : Number(row.code),
  reason: row.reason
})

/** The state of a device, for the tables `member` and, joined to it, `command`. */
const progress = `CASE member.state WHEN 0 THEN 'pending' WHEN 2 THEN 'failed' WHEN 3 THEN 'cancelled' ELSE
  coalesce((ARRAY[${CommandState.literals.map((state) => `'${state}'`).join(", ")}])[command.state + 1], 'gone') END`

const make = (sql: PgClient.PgClient, reads: PgClient.PgClient) => {
  const joined = sql.literal(
    "bulk_command_device AS member LEFT JOIN command USING (device_id, message_id)"
  )

  const insertDevices = (bulkId: number, projectId: ProjectId, scope: BulkScope) =>
    scope._tag === "Named"
      ? sql`INSERT INTO bulk_command_device (bulk_id, place, device_id, device_name)
          SELECT ${bulkId}::bigint, named.place, device.device_id, device.device_name
          FROM (
            SELECT * FROM unnest(${texts(scope.deviceIds)}) WITH ORDINALITY ${eachByIndex(sql, scope.deviceIds.length)}
          ) AS named (device_id, place)
          JOIN device ON device.device_id = named.device_id WHERE device.project_id = ${projectId}`
      : sql`INSERT INTO bulk_command_device (bulk_id, place, device_id, device_name)
          SELECT ${bulkId}::bigint, row_number() OVER (ORDER BY id), device_id, device_name
          FROM device WHERE ${matches(sql, projectId, scope.filter)} LIMIT ${maxBulkDevices + 1}`

  const insert = Effect.fnUntraced(
    function*({ createdAt, params, projectId, serviceId, ttl }: NewBulkCommand, scope: BulkScope) {
      if (scope._tag === "Named") {
        const missing = yield* unknownDevices(sql, { projectId }, scope.deviceIds)
        if (missing.length > 0) return { _tag: "Unknown", deviceIds: missing } satisfies BulkCreated
      }
      // Locked: those that are created at the same moment take turns.
      const [project] = yield* sql`SELECT id FROM project WHERE id = ${projectId} FOR NO KEY UPDATE`
      // It was deleted after its last device.
      if (project === undefined) return empty
      const [row] = yield* sql<BulkRow>`INSERT INTO bulk_command (project_id, service_id, params, ttl, total, turns,
          served_at, created_at, updated_at)
        SELECT ${projectId}, ${PgTypes.text(serviceId)}, ${JSON.stringify(params)}::json, ${ttl}::int, 0, 0,
          ${instant(createdAt)}, ${instant(createdAt)}, ${instant(createdAt)}
        WHERE (SELECT count(*) FROM bulk_command WHERE project_id = ${projectId} AND turns > 0) < ${maxRunningBulkCommands}
        RETURNING *`
      if (row === undefined) return { _tag: "Busy" } satisfies BulkCreated
      const bulkId = Number(row.bulk_id)
      yield* insertDevices(bulkId, projectId, scope)
      const [stored] = yield* sql<BulkRow>`
        WITH devices AS (SELECT count(*) AS count FROM bulk_command_device WHERE bulk_id = ${bulkId})
        UPDATE bulk_command SET total = devices.count, turns = devices.count
        FROM devices WHERE bulk_id = ${bulkId} RETURNING bulk_command.*`
      if (stored!.total === 0) return yield* Effect.fail(empty)
      if (stored!.total > maxBulkDevices) return yield* Effect.fail(tooLarge)
      return { _tag: "Created", bulk: bulkFromRow(stored!) } satisfies BulkCreated
    },
    sql.withTransaction
  )

  const get = Effect.fnUntraced(function*(projectId: ProjectId, bulkId: number) {
    const [row] = yield* sql<BulkRow>`SELECT * FROM bulk_command
      WHERE bulk_id = ${bulkId} AND project_id = ${projectId}`
    if (row === undefined) return Option.none()
    const counts = yield* reads<{ readonly progress: BulkDeviceState; readonly count: bigint }>`
      SELECT ${sql.literal(progress)} AS progress, count(*) AS count FROM ${joined}
      WHERE member.bulk_id = ${bulkId} GROUP BY 1`
    return Option.some({
      bulk: bulkFromRow(row),
      counts: Object.fromEntries(counts.map(({ count, progress }) => [progress, Number(count)])) as BulkCounts
    })
  })

  return BulkCommandStore.of({
    insert: (bulk, scope) =>
      insert(bulk, scope).pipe(
        Effect.catchTag(["Empty", "TooLarge"], Effect.succeed<BulkCreated>),
        Effect.mapError(storeError("BulkCommandStore.insert"))
      ),
    get: (projectId, bulkId) => Effect.mapError(get(projectId, bulkId), storeError("BulkCommandStore.get")),
    list: (projectId, page) =>
      paginate<BulkRow>(reads, {
        table: "bulk_command",
        where: sql`project_id = ${projectId}`,
        tieBreaker: "bulk_id",
        select: sql`SELECT * FROM page`,
        page
      }).pipe(
        Effect.map(({ items, total }) => ({ items: items.map(bulkFromRow), total })),
        Effect.mapError(storeError("BulkCommandStore.list"))
      ),
    countUnderWay: (projectId) =>
      sql<{ readonly found: number }>`SELECT count(*)::int AS found FROM bulk_command
        WHERE project_id = ${projectId} AND turns > 0`.pipe(
        Effect.map(([row]) => row!.found),
        Effect.mapError(storeError("BulkCommandStore.countUnderWay"))
      ),
    devices: (bulkId, state, { page, pageSize }) => {
      const where = sql.and([
        sql`member.bulk_id = ${bulkId}`,
        ...state === undefined ? [] : [sql`${sql.literal(progress)} = ${state}`]
      ])
      return Effect.gen(function*() {
        const [{ count }] = (yield* reads<{ readonly count: bigint }>`SELECT count(*) AS count FROM ${joined}
          WHERE ${where}`) as [{ readonly count: bigint }]
        const rows = yield* reads<DeviceRow>`
          SELECT member.device_id, member.device_name, ${sql.literal(progress)} AS progress, member.message_id,
            command.code, CASE WHEN member.state = 2 THEN member.reason ELSE coalesce(command.message, '') END AS reason
          FROM ${joined} WHERE ${where}
          ORDER BY member.place LIMIT ${pageSize} OFFSET ${(page - 1) * pageSize}`
        return { items: rows.map(deviceFromRow), total: Number(count) }
      }).pipe(Effect.mapError(storeError("BulkCommandStore.devices")))
    },
    prune: ({ before, limit }) =>
      pruneWithParts(
        reads,
        { table: "bulk_command", parts: "bulk_command_device", id: "bulk_id" },
        // The first comparison with the time has an index.
        sql`turns = 0 AND updated_at < ${instant(before)}
          AND updated_at + ttl * interval '1 second' < ${instant(before)}`,
        limit
      ).pipe(Effect.mapError(storeError("BulkCommandStore.prune"))),
    ...BulkTurns.make(sql)
  })
}

/** Ends the transaction of an insert. */
const empty = { _tag: "Empty" } as const satisfies BulkCreated
const tooLarge = { _tag: "TooLarge" } as const satisfies BulkCreated
