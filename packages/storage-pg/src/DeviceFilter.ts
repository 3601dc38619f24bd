/**
 * The conditions by which devices are listed. Each has an index in the order of
 * the list.
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
    ...filter.status === undefined ? [] : [sql`status = ${filter.status}`],
    ...filter.tag === undefined
      ? []
      : [sql`tags <> '{}' AND tags @> ${JSON.stringify(Object.fromEntries([filter.tag]))}::jsonb`],
    ...filter.keyword === undefined ? [] : [beginsWith(sql, filter.keyword)]
  ])

/** Comes after every other character, also in UTF-8. */
const lastCharacter = "\u{10ffff}"

/** Ranges, because indexes can follow them. */
const beginsWith = (sql: SqlClient.SqlClient, keyword: string): Statement.Fragment => {
  const end = keyword + lastCharacter
  return sql`(device_name >= ${keyword} AND device_name <= ${end}
    OR nickname <> '' AND nickname COLLATE "C" >= ${keyword} AND nickname COLLATE "C" <= ${end})`
}
