/**
 * Groups of devices on SQLite.
 */
import {
  type DeviceGroup,
  DeviceGroupStore,
  type DeviceQuery,
  type GroupAddition,
  maxGroupDevices,
  type ProjectId
} from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { pageOf } from "./Paging.ts"
import { Sqlite } from "./Sqlite.ts"
import { unknownDevices } from "./UnknownDevices.ts"

/** Part of the group that is replaced together: devices are found by their group. */
export const layer: Layer.Layer<DeviceGroupStore, never, Sqlite> = Layer.effect(
  DeviceGroupStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

interface Row {
  readonly group_id: number
  readonly project_id: string
  readonly name: string
  readonly description: string
  readonly query: string | null
  readonly created_at: number
  readonly updated_at: number
}

const fromRow = (row: Row): DeviceGroup => ({
  groupId: row.group_id,
  projectId: row.project_id as ProjectId,
  name: row.name,
  desc: row.description,
  query: row.query === null ? null : JSON.parse(row.query) as DeviceQuery,
  createdAt: row.created_at,
  updatedAt: row.updated_at
})

const json = (query: DeviceQuery | null): string | null => query === null ? null : JSON.stringify(query)

const make = (sql: Sqlite["Service"]) => {
  const find = (projectId: ProjectId, groupId: number): DeviceGroup | undefined => {
    const row = sql.get<Row>("SELECT * FROM device_group WHERE group_id = ? AND project_id = ?", [groupId, projectId])
    return row === undefined ? undefined : fromRow(row)
  }

  const isTaken = (projectId: ProjectId, name: string): boolean =>
    sql.get("SELECT 1 FROM device_group WHERE project_id = ? AND name = ?", [projectId, name]) !== undefined

  return DeviceGroupStore.of({
    insert: ({ createdAt, desc, name, projectId, query, updatedAt }) =>
      sql.write("DeviceGroupStore.insert", () => {
        if (isTaken(projectId, name)) return "taken"
        const row = sql.get<Row>(
          `INSERT INTO device_group (project_id, name, description, query, created_at, updated_at)
            SELECT id, ?, ?, ?, ?, ? FROM project WHERE id = ? RETURNING *`,
          [name, desc, json(query), createdAt, updatedAt, projectId]
        )
        return row === undefined ? "no-project" : fromRow(row)
      }),
    get: (projectId, groupId) =>
      sql.read("DeviceGroupStore.get", () => Option.fromUndefinedOr(find(projectId, groupId))),
    list: (projectId, page) =>
      sql.read("DeviceGroupStore.list", () => {
        const { items, total } = pageOf<Row>(sql, {
          table: "device_group",
          where: "project_id = ?",
          values: [projectId],
          order: "created_at DESC, group_id DESC",
          page
        })
        return { items: items.map(fromRow), total }
      }),
    update: (projectId, groupId, { desc, name, query, updatedAt }) =>
      sql.write("DeviceGroupStore.update", () => {
        const before = find(projectId, groupId)
        if (before === undefined) return Option.none()
        if (name !== undefined && name !== before.name && isTaken(projectId, name)) return "taken"
        const after: DeviceGroup = {
          ...before,
          name: name ?? before.name,
          desc: desc ?? before.desc,
          query: query ?? before.query,
          updatedAt
        }
        sql.run("UPDATE device_group SET name = ?, description = ?, query = ?, updated_at = ? WHERE group_id = ?", [
          after.name,
          after.desc,
          json(after.query),
          updatedAt,
          groupId
        ])
        return Option.some(after)
      }),
    remove: (projectId, groupId) =>
      sql.write(
        "DeviceGroupStore.remove",
        () => sql.run("DELETE FROM device_group WHERE group_id = ? AND project_id = ?", [groupId, projectId]) > 0
      ),
    add: (projectId, groupId, deviceIds) =>
      sql.write("DeviceGroupStore.add", (): GroupAddition => {
        if (find(projectId, groupId) === undefined) return { _tag: "NoGroup" }
        const unknown = unknownDevices(sql, { projectId }, deviceIds)
        if (unknown.length > 0) return { _tag: "Unknown", deviceIds: unknown }
        const ids = JSON.stringify(deviceIds)
        const { added, members } = sql.get<{ readonly added: number; readonly members: number }>(
          `SELECT (SELECT count(*) FROM device_group_member WHERE group_id = ?1) AS members, (
              SELECT count(DISTINCT value) FROM json_each(?2) WHERE value NOT IN (
                SELECT device_id FROM device_group_member WHERE group_id = ?1
              )
            ) AS added`,
          [groupId, ids]
        )!
        if (members + added > maxGroupDevices) return { _tag: "Full" }
        sql.run("INSERT OR IGNORE INTO device_group_member (group_id, device_id) SELECT ?, value FROM json_each(?)", [
          groupId,
          ids
        ])
        return { _tag: "Added", added }
      }),
    take: (projectId, groupId, deviceIds) =>
      sql.write(
        "DeviceGroupStore.take",
        () =>
          find(projectId, groupId) === undefined
            ? 0
            : sql.run(
              `DELETE FROM device_group_member WHERE group_id = ? AND device_id IN (SELECT value FROM json_each(?))`,
              [groupId, JSON.stringify(deviceIds)]
            )
      ),
    possible: (projectId, deviceId) =>
      sql.read(
        "DeviceGroupStore.possible",
        () =>
          sql.all<Row>(
            `SELECT * FROM device_group WHERE project_id = ? AND (query IS NOT NULL OR EXISTS (
              SELECT 1 FROM device_group_member AS member
              WHERE member.group_id = device_group.group_id AND member.device_id = ?
            ))
            ORDER BY created_at DESC, group_id DESC`,
            [projectId, deviceId]
          ).map(fromRow)
      )
  })
}
