/**
 * Pages of a table, newest first.
 */
import type { Page, PageRequest } from "@device-cloud/core"
import { Effect } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"

/** How many rows of a list are counted. Counting more would cost by what is merely stored. */
export const countedRows = 10_000

/** How many rows a list has. */
export interface Total {
  /** At least so many. */
  readonly total: number
  /** And not more. */
  readonly isExact: boolean
}

/**
 * Counts the rows of `table` for which `where` holds: all of them up to {@link countedRows}
 * and up to the end of the page, or else one more. So whoever turns the pages gets to the end.
 */
export const countRows = Effect.fnUntraced(function*(
  sql: SqlClient.SqlClient,
  table: string,
  where: Statement.Fragment,
  { page, pageSize }: PageRequest
): Effect.fn.Return<Total, SqlError.SqlError> {
  const most = Math.max(countedRows, page * pageSize) + 1
  // No parameter where it can be: a plan for all limits expects that most of the table is read.
  const limit = most === countedRows + 1 ? sql.literal(String(most)) : sql`${most}::bigint`
  const [{ count }] = (yield* sql<{ readonly count: bigint }>`SELECT count(*) AS count
    FROM (SELECT FROM ${sql(table)} WHERE ${where} LIMIT ${limit}) AS counted`) as [{ readonly count: bigint }]
  const total = Number(count)
  return { total, isExact: total < most }
})

/**
 * The page of the rows of `table` for which `where` holds, newest first. The
 * last page costs as much as the first: the second half of the list is read
 * backwards.
 */
export const paginate = Effect.fnUntraced(function*<Row extends object>(
  sql: SqlClient.SqlClient,
  options: {
    readonly table: string
    readonly where: Statement.Fragment
    /** The column that breaks ties of `created_at`; unique. */
    readonly tieBreaker: string
    /** Whether that column alone says what is newer. Default: `created_at` does. */
    readonly isOrder?: true
    /** Reads the rows to return from the selected rows, which it finds under the name `page`. */
    readonly select: Statement.Fragment
    readonly page: PageRequest
  }
): Effect.fn.Return<Page<Row>, SqlError.SqlError> {
  const { page: { page, pageSize }, select, where } = options
  const table = sql(options.table)
  const tieBreaker = sql(options.tieBreaker)
  const { isExact, total } = yield* countRows(sql, options.table, where, options.page)
  const offset = (page - 1) * pageSize
  const length = Math.min(pageSize, total - offset)
  if (length <= 0) return { items: [], total }
  const backwards = isExact && offset > total / 2
  const skipped = backwards ? total - offset - length : offset
  const order = sql.literal(backwards ? "ASC" : "DESC")
  const isByTime = options.isOrder === undefined
  const rows = yield* sql<Row>`
    WITH page AS (
      SELECT * FROM ${table} WHERE ${where}
      ORDER BY ${isByTime ? sql`created_at ${order},` : sql``} ${tieBreaker} ${order} LIMIT ${length} OFFSET ${skipped}
    )
    ${select} ORDER BY ${isByTime ? sql`page.created_at DESC,` : sql``} page.${tieBreaker} DESC`
  return { items: rows, total }
})
