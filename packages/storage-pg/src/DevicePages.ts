/**
 * Pages of devices, the newest first, by their numbers. What lists are filtered by
 * most is counted in blocks of numbers (migration 0042): a list knows its total, and
 * a page in the middle skips whole blocks.
 */
import type { DeviceFilter, Page, PageRequest, ProjectId } from "@device-cloud/core"
import { Effect } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"
import { matches } from "./DeviceFilter.ts"
import { deviceDetailColumns, type DeviceDetailRow } from "./DeviceRow.ts"
import { inOrder } from "./OrderedReads.ts"
import { countedRows, countRows, type Total } from "./Pagination.ts"

interface Block {
  readonly block: bigint
  readonly devices: bigint
}

/** Where reading begins: below this number, and how many devices are skipped there. */
interface Start {
  readonly below: number
  readonly skipped: number
}

/** How many numbers a block has; `id >> 14` is the block of a device. */
const blockSize = 2 ** 14

export const devicePage = Effect.fnUntraced(function*(
  sql: SqlClient.SqlClient,
  projectId: ProjectId,
  filter: DeviceFilter,
  page: PageRequest
): Effect.fn.Return<Page<DeviceDetailRow>, SqlError.SqlError> {
  const offset = (page.page - 1) * page.pageSize
  const blocks = isCounted(filter) ? yield* countedBlocks(sql, projectId, filter) : undefined
  const where = blocks === undefined ? matches(sql, projectId, filter) : ofBlocks(sql, projectId, filter)
  const { isExact, total }: Total = blocks === undefined
    ? yield* countRows(sql, "device", where, page)
    : { total: blocks.reduce((sum, { devices }) => sum + Number(devices), 0), isExact: true }
  const length = Math.min(page.pageSize, total - offset)
  if (length <= 0) return { items: [], total }
  // Few devices that no index has in order: reading the project in order could find them at its end.
  const isScattered = (blocks === undefined || filter.enabled === false) && isExact && total <= countedRows
  const { below, skipped } = blocks === undefined || isScattered
    ? { below: 2 ** 53, skipped: offset }
    : startOf(blocks, offset)
  const newest = sql`ORDER BY id DESC LIMIT ${length} OFFSET ${skipped}`
  const numbers = isScattered
    ? sql`WITH matching AS MATERIALIZED (SELECT id FROM device WHERE ${where}) SELECT id FROM matching ${newest}`
    : sql`SELECT id FROM device WHERE ${where} AND id < ${below}::bigint ${newest}`
  const read = sql<DeviceDetailRow>`
    SELECT ${sql.literal(deviceDetailColumns)} FROM device JOIN product USING (product_key)
    WHERE device.id = ANY(ARRAY(${numbers})) ORDER BY device.id DESC`
  return { items: yield* isExact ? read : inOrder(sql, read), total }
})

/** Whether triggers count the devices that the filter selects. */
const isCounted = ({ batchId, groupId, keyword, reported, tags }: DeviceFilter): boolean =>
  batchId === undefined && groupId === undefined && keyword === undefined && isEmpty(tags) && isEmpty(reported)

const isEmpty = (conditions: object | undefined) => conditions === undefined || Object.keys(conditions).length === 0

const countedBlocks = (sql: SqlClient.SqlClient, projectId: ProjectId, { enabled, productKey, status }: DeviceFilter) =>
  sql<Block>`SELECT block, sum(devices)::bigint AS devices FROM device_count
    WHERE ${
    sql.and([
      sql`project_id = ${projectId}`,
      ...productKey === undefined ? [] : [sql`product_key = ${productKey}`],
      ...status === undefined ? [] : [sql`status = ${status}`],
      ...enabled === undefined ? [] : [enabled ? sql`enabled` : sql`NOT enabled`]
    ])
  } GROUP BY block ORDER BY block DESC`

/**
 * As `matches`, for what is counted. A product is looked up by its project, so that
 * the index of its devices has all that is asked for.
 */
const ofBlocks = (
  sql: SqlClient.SqlClient,
  projectId: ProjectId,
  { enabled, productKey, status }: DeviceFilter
): Statement.Fragment =>
  sql.and([
    productKey === undefined
      ? sql`project_id = ${projectId}`
      : sql`product_key = (SELECT product_key FROM product
          WHERE product_key = ${productKey} AND project_id = ${projectId})`,
    ...status === undefined ? [] : [sql`status = ${status}`],
    ...enabled === undefined ? [] : [enabled ? sql`enabled` : sql`NOT enabled`]
  ])

/** The block in which the device after the first `offset` is. There is such a device. */
const startOf = (blocks: ReadonlyArray<Block>, offset: number): Start => {
  let skipped = offset
  for (const { block, devices } of blocks) {
    if (skipped < Number(devices)) return { below: (Number(block) + 1) * blockSize, skipped }
    skipped -= Number(devices)
  }
  return { below: 0, skipped: 0 }
}
