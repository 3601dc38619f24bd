/**
 * Groups of devices on PostgreSQL.
 */
import {
  type DeviceGroup,
  DeviceGroupStore,
  type DeviceId,
  type DeviceQuery,
  type GroupAddition,
  maxGroupDevices,
  type ProjectId
} from "@device-cloud/core"
import { type PgClient, PgTypes } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { clients } from "./LongReads.ts"
import { paginate } from "./Pagination.ts"
import { isForeignKeyViolation, isUniqueViolation, storeError } from "./PgErrors.ts"
import { instant, texts } from "./PgParameters.ts"
import { unknownDevices } from "./UnknownDevices.ts"

/** Part of the group that is replaced together: devices are found by their group. */
export const layer: Layer.Layer<DeviceGroupStore, never, PgClient.PgClient> = Layer.effect(
  DeviceGroupStore,
  Effect.map(clients, ({ reads, sql }) => make(sql, reads))
)

interface Row {
  readonly group_id: bigint
  readonly project_id: string
  readonly name: string
  readonly description: string
  readonly query: DeviceQuery | null
  readonly created_at: Date
  readonly updated_at: Date
}

const fromRow = (row: Row): DeviceGroup => ({
  groupId: Number(row.group_id),
  projectId: row.project_id as ProjectId,
  name: row.name,
  desc: row.description,
  query: row.query,
  createdAt: row.created_at.getTime(),
  updatedAt: row.updated_at.getTime()
})

const json = (query: DeviceQuery | null | undefined): string | null =>
  query === undefined || query === null ? null : JSON.stringify(query)

const make = (sql: PgClient.PgClient, reads: PgClient.PgClient) => {
  const add = Effect.fnUntraced(
    function*(projectId: ProjectId, groupId: number, deviceIds: ReadonlyArray<DeviceId>) {
      // Locked: additions at the same moment take turns, and none passes the limit.
      const [group] = yield* sql`SELECT group_id FROM device_group
        WHERE group_id = ${groupId} AND project_id = ${projectId} FOR UPDATE`
      if (group === undefined) return { _tag: "NoGroup" } satisfies GroupAddition
      const missing = yield* unknownDevices(sql, { projectId }, deviceIds)
      if (missing.length > 0) return { _tag: "Unknown", deviceIds: missing } satisfies GroupAddition
      const added = yield* sql`INSERT INTO device_group_member (group_id, device_id)
        SELECT ${groupId}::bigint, device_id FROM unnest(${texts(deviceIds)}) AS new (device_id) ORDER BY device_id
        ON CONFLICT DO NOTHING RETURNING device_id`
      const [{ count }] = (yield* sql<{ readonly count: bigint }>`SELECT count(*) AS count FROM device_group_member
        WHERE group_id = ${groupId}`) as [{ readonly count: bigint }]
      if (Number(count) > maxGroupDevices) return yield* Effect.fail(full)
      return { _tag: "Added", added: added.length } satisfies GroupAddition
    },
    sql.withTransaction
  )

  return DeviceGroupStore.of({
    insert: ({ createdAt, desc, name, projectId, query, updatedAt }) =>
      sql<Row>`INSERT INTO device_group (project_id, name, description, query, created_at, updated_at)
        VALUES (${projectId}, ${name}, ${desc}, ${text(json(query))}::json, ${instant(createdAt)}, ${
        instant(updatedAt)
      })
        RETURNING *`.pipe(
        Effect.map(([row]) => fromRow(row!)),
        Effect.catchIf(isUniqueViolation, () => Effect.succeed("taken" as const)),
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeed("no-project" as const)),
        Effect.mapError(storeError("DeviceGroupStore.insert"))
      ),
    get: (projectId, groupId) =>
      sql<Row>`SELECT * FROM device_group WHERE group_id = ${groupId} AND project_id = ${projectId}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), fromRow)),
        Effect.mapError(storeError("DeviceGroupStore.get"))
      ),
    list: (projectId, page) =>
      paginate<Row>(reads, {
        table: "device_group",
        where: sql`project_id = ${projectId}`,
        tieBreaker: "group_id",
        select: sql`SELECT * FROM page`,
        page
      }).pipe(
        Effect.map(({ items, total }) => ({ items: items.map(fromRow), total })),
        Effect.mapError(storeError("DeviceGroupStore.list"))
      ),
    update: (projectId, groupId, { desc, name, query, updatedAt }) =>
      sql<Row>`UPDATE device_group SET
          name = coalesce(${text(name)}, name),
          description = coalesce(${text(desc)}, description),
          query = coalesce(${text(json(query))}::json, query),
          updated_at = ${instant(updatedAt)}
        WHERE group_id = ${groupId} AND project_id = ${projectId}
        RETURNING *`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), fromRow)),
        Effect.catchIf(isUniqueViolation, () => Effect.succeed("taken" as const)),
        Effect.mapError(storeError("DeviceGroupStore.update"))
      ),
    remove: (projectId, groupId) =>
      sql`DELETE FROM device_group WHERE group_id = ${groupId} AND project_id = ${projectId} RETURNING group_id`.pipe(
        Effect.map(({ length }) => length > 0),
        Effect.mapError(storeError("DeviceGroupStore.remove"))
      ),
    add: (projectId, groupId, deviceIds) =>
      add(projectId, groupId, deviceIds).pipe(
        Effect.catchTag("Full", Effect.succeed),
        // A device was removed at the same moment.
        Effect.retry({ while: isForeignKeyViolation, times: 1 }),
        Effect.mapError(storeError("DeviceGroupStore.add"))
      ),
    take: (projectId, groupId, deviceIds) =>
      sql`DELETE FROM device_group_member WHERE group_id = ${groupId} AND device_id = ANY(${texts(deviceIds)})
          AND EXISTS (SELECT FROM device_group WHERE group_id = ${groupId} AND project_id = ${projectId})
        RETURNING device_id`.pipe(
        Effect.map(({ length }) => length),
        Effect.mapError(storeError("DeviceGroupStore.take"))
      ),
    possible: (projectId, deviceId) =>
      sql<Row>`SELECT * FROM device_group WHERE project_id = ${projectId} AND (query IS NOT NULL OR EXISTS (
          SELECT FROM device_group_member AS member
          WHERE member.group_id = device_group.group_id AND member.device_id = ${deviceId}
        ))
        ORDER BY created_at DESC, group_id DESC`.pipe(
        Effect.map((rows) => rows.map(fromRow)),
        Effect.mapError(storeError("DeviceGroupStore.possible"))
      )
  })
}

/** Ends the transaction of an addition. */
const full = { _tag: "Full" } as const satisfies GroupAddition

const text = (value: string | null | undefined) => PgTypes.text(value ?? null)
