/**
 * Pages of devices, the newest first, by their numbers. What lists are filtered by
 * most is counted in blocks of numbers (migration 0042): a list knows its total, and
 * a page in the middle skips whole blocks. No index has the devices of a status: a
 * page of them is read from the short blocks that have some (migration 0053).
 */
import type { DeviceFilter, Page, PageRequest, ProjectId } from "@device-cloud/core"
import { Effect } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"
import { matches } from "./DeviceFilter.ts"
import { deviceDetailColumns, type DeviceDetailRow } from "./DeviceRow.ts"
import { inOrder } from "./OrderedReads.ts"
import { countedRows, countRows, type Total } from "./Pagination.ts"
import { wholeNumbers } from "./PgParameters.ts"

interface Block {
  readonly block: bigint
  readonly devices: bigint
}

/** The short blocks of a page, and how many devices are skipped in the newest of them. */
interface ShortBlocks {
  readonly short: ReadonlyArray<number>
  readonly skipped: number
}

/** Where reading begins: below this number, and how many devices are skipped there. */
interface Start {
  readonly below: number
  readonly skipped: number
}

/** How many numbers a block has; `id >> 14` is the block of a device. */
const blockSize = 2 ** 14
/** How many numbers a short block has; `id >> 7` is that of a device. */
const shortSize = 2 ** 7

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
  const newest = (skipped: number) => sql`ORDER BY id DESC LIMIT ${length} OFFSET ${skipped}`
  /** Collects and sorts them, whatever the planner expects. */
  const collected = (where: Statement.Fragment, skipped: number) =>
    sql`WITH matching AS MATERIALIZED (SELECT id FROM device WHERE ${where}) SELECT id FROM matching ${newest(skipped)}`
  const numbers = blocks !== undefined && filter.status !== undefined
    ? yield* Effect.map(
      shortBlocks(sql, projectId, filter, startOf(blocks, offset), length),
      ({ short, skipped }) =>
        collected(
          sql`${countedAs(sql, projectId, filter)} AND id >> 7 = ANY(${wholeNumbers(short)}::bigint[])`,
          skipped
        )
    )
    : isScattered
    ? collected(where, skipped)
    : sql`SELECT id FROM device WHERE ${where} AND id < ${below}::bigint ${newest(skipped)}`
  const read = sql<DeviceDetailRow>`
    SELECT ${sql.literal(deviceDetailColumns)} FROM device JOIN product USING (product_key)
    WHERE device.id = ANY(ARRAY(${numbers})) ORDER BY device.id DESC`
  return { items: yield* isExact ? read : inOrder(sql, read), total }
})

/** Whether triggers count the devices that the filter selects. */
const isCounted = ({ batchId, before, groupId, keyword, reported, tags }: DeviceFilter): boolean =>
  [batchId, before, groupId, keyword].every((condition) => condition === undefined) && isEmpty(tags) &&
  isEmpty(reported)

const isEmpty = (conditions: object | undefined) => conditions === undefined || Object.keys(conditions).length === 0

const countedBlocks = (sql: SqlClient.SqlClient, projectId: ProjectId, filter: DeviceFilter) =>
  sql<Block>`SELECT block, sum(devices)::bigint AS devices FROM device_count
    WHERE ${countedAs(sql, projectId, filter)} GROUP BY block ORDER BY block DESC`

/** The condition that a count, or a device, is of those that the filter selects. */
const countedAs = (
  sql: SqlClient.SqlClient,
  projectId: ProjectId,
  { enabled, productKey, status }: DeviceFilter
): Statement.Fragment =>
  sql.and([
    sql`project_id = ${projectId}`,
    ...productKey === undefined ? [] : [sql`product_key = ${productKey}`],
    ...status === undefined ? [] : [sql`status = ${status}`],
    ...enabled === undefined ? [] : [enabled ? sql`enabled` : sql`NOT enabled`]
  ])

/** The short blocks that have the devices of a page. Each that is read has one at least. */
const shortBlocks = (
  sql: SqlClient.SqlClient,
  projectId: ProjectId,
  filter: DeviceFilter,
  { below, skipped }: Start,
  length: number
) =>
  Effect.map(
    sql<Block>`SELECT block, sum(devices)::bigint AS devices FROM device_status_block
      WHERE ${countedAs(sql, projectId, filter)} AND devices > 0 AND block < ${below / shortSize}::bigint
      GROUP BY block ORDER BY block DESC LIMIT ${blockSize / shortSize + length}`,
    (rows): ShortBlocks => {
      const short: Array<number> = []
      let left = skipped
      let devices = 0
      for (const row of rows) {
        if (short.length === 0 && left >= Number(row.devices)) left -= Number(row.devices)
        else if (devices < left + length) {
          short.push(Number(row.block))
          devices += Number(row.devices)
        } else break
      }
      return { short, skipped: left }
    }
  )

/**
 * As `matches`, for what is counted, but for the status. A product is looked up by its
 * project, so that the index of its devices has all that is asked for.
 */
const ofBlocks = (
  sql: SqlClient.SqlClient,
  projectId: ProjectId,
  { enabled, productKey }: DeviceFilter
): Statement.Fragment =>
  sql.and([
    productKey === undefined
      ? sql`project_id = ${projectId}`
      : sql`product_key = (SELECT product_key FROM product
          WHERE product_key = ${productKey} AND project_id = ${projectId})`,
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
