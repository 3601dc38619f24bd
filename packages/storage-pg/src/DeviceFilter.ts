/**
 * The conditions by which devices are found. Each has an index in the order of
 * the list, but for the status, and reported values: these are read for each device
 * that fits else.
 */
import type { DeviceFilter, ProjectId } from "@device-cloud/core"
import type { SqlClient, Statement } from "effect/sql"

/** The condition that a row of `device` matches all fields of the filter. */
export const matches = (
  sql: SqlClient.SqlClient,
  projectId: ProjectId,
  filter: DeviceFilter
): Statement.Fragment =>
  sql.and([
    sql`project_id = ${projectId}`,
    ...filter.productKey === undefined ? [] : [sql`product_key = ${filter.productKey}`],
    // 0: the device is in no batch. The index of batches leaves these out.
    ...filter.batchId === undefined
      ? []
      : [filter.batchId === 0 ? sql`batch_id = 0` : sql`batch_id = ${filter.batchId} AND batch_id <> 0`],
    ...filter.enabled === undefined ? [] : [filter.enabled ? sql`enabled` : sql`NOT enabled`],
    ...filter.status === undefined ? [] : [hasStatus(sql, projectId, filter.status)],
    ...filter.before === undefined ? [] : [sql`id < ${filter.before}`],
    ...filter.tags === undefined || Object.keys(filter.tags).length === 0
      ? []
      : [sql`tags <> '{}' AND tags @> ${JSON.stringify(filter.tags)}::jsonb`],
    ...filter.keyword === undefined ? [] : [beginsWith(sql, filter.keyword)],
    ...filter.reported === undefined || Object.keys(filter.reported).length === 0
      ? []
      : [hasReported(sql, filter.reported)],
    ...filter.groupId === undefined
      ? []
      : [sql`device_id IN (SELECT device_id FROM device_group_member WHERE group_id = ${filter.groupId})`]
  ])

/** No index has the status of devices: the few of a status are found by the short blocks of numbers that have some. */
const hasStatus = (
  sql: SqlClient.SqlClient,
  projectId: ProjectId,
  status: NonNullable<DeviceFilter["status"]>
): Statement.Fragment =>
  sql`status = ${status} AND id >> 7 IN (SELECT block FROM device_status_block
    WHERE project_id = ${projectId} AND status = ${status} AND devices > 0)`

/**
 * Compares the text of values, which is as `JSON.stringify` writes it. PostgreSQL
 * cannot look into JSON with NUL characters or unpaired surrogates, so their escapes
 * are replaced by that of another character: no text that is asked for has an escape
 * for it, and nothing equals them.
 */
const hasReported = (sql: SqlClient.SqlClient, values: NonNullable<DeviceFilter["reported"]>): Statement.Fragment =>
  sql`EXISTS (SELECT FROM shadow, LATERAL (SELECT CASE WHEN shadow.reported::text ~ ${unreadable}
      THEN regexp_replace(shadow.reported::text, ${unreadableAlone}, ${replacement}, 'g')::json
      ELSE shadow.reported END AS reported) AS readable
    WHERE shadow.device_id = device.device_id AND ${
    sql.and(
      Object.entries(values).map(([property, value]) =>
        sql`(readable.reported -> ${property}::text -> 'value')::text = ${JSON.stringify(value)}`
      )
    )
  })`

/** An escaped NUL character or unpaired surrogate: pairs stand in JSON as they are. */
const unreadable = "\\\\u(0000|d[89a-f])"

/** The same whole, after an even number of backslashes: after an odd one it is text about an escape. */
const unreadableAlone = String.raw`(?<!\\)((?:\\\\)*)\\u(?:0000|d[89a-f][0-9a-f]{2})`

const replacement = String.raw`\1\\ufffd`

/** Comes after every other character, also in UTF-8. */
const lastCharacter = "\u{10ffff}"

/** Ranges, because indexes can follow them. */
const beginsWith = (sql: SqlClient.SqlClient, keyword: string): Statement.Fragment => {
  const end = keyword + lastCharacter
  return sql`(device_name >= ${keyword} AND device_name <= ${end}
    OR nickname <> '' AND nickname COLLATE "C" >= ${keyword} AND nickname COLLATE "C" <= ${end})`
}
