/**
 * What all stores share: error translation, array parameters, paged lists.
 */
import { type Page, type PageRequest, StoreError } from "@device-cloud/core"
import { PgTypes } from "@effect/sql-pg"
import { Effect, Predicate, Result } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"

/** SQLSTATE classes and codes of a server that is stopping, starting, or out of resources. */
const passingState = /^(53|57P|58|08)/

const isRetryable = (error: SqlError.SqlError): boolean => {
  if (error.isRetryable) return true
  const { cause } = error.reason
  return Predicate.hasProperty(cause, "code") && typeof cause.code === "string" && passingState.test(cause.code)
}

/** Names the operation of a failed statement and says whether trying again makes sense. */
export const storeError = (operation: string) => (error: SqlError.SqlError): StoreError =>
  new StoreError({ operation, retryable: isRetryable(error), cause: error })

const isViolation = (sqlState: string) => ({ reason: { cause } }: SqlError.SqlError): boolean =>
  Predicate.hasProperty(cause, "code") && cause.code === sqlState

/** Whether a row that the statement refers to does not exist, or is still referred to. */
export const isForeignKeyViolation = isViolation("23503")
/** Whether there is a row already that is to be the only one of its kind. */
export const isUniqueViolation = isViolation("23505")

const array = (elementOid: number) => (values: ReadonlyArray<unknown>): PgTypes.Parameter =>
  Result.getOrThrow(PgTypes.array(values, elementOid))

export const texts = array(PgTypes.OID.text)
/** Whole numbers below 2^53, for a cast to bigint. */
export const wholeNumbers = array(PgTypes.OID.float8)
export const booleans = array(PgTypes.OID.bool)
/** Unix milliseconds, or null. */
export const instants = array(PgTypes.OID.timestamptz)
/** Unix milliseconds, or null. */
export const instant = PgTypes.timestamptz

/**
 * Follows the rows that a statement brings along to look others up by them. A
 * plan that serves all parameters expects one row of a limit that it does not
 * know, and goes through the index. Without it, a plan that was made while the
 * table was small reads the whole table, also when it has grown.
 */
export const eachByIndex = (sql: SqlClient.SqlClient, count: number): Statement.Fragment => sql`LIMIT ${count}`

/**
 * The page of `table` that holds what fits `where`, newest first. It costs as
 * much at the end of the list as at its start: the second half is read backwards.
 */
export const paginate = Effect.fnUntraced(function*<Row extends object>(
  sql: SqlClient.SqlClient,
  options: {
    readonly table: string
    readonly where: Statement.Fragment
    /** The column that breaks ties of `created_at`; unique. */
    readonly tieBreaker: string
    /** From the selected rows, called `page`, to what is answered. */
    readonly select: Statement.Fragment
    readonly page: PageRequest
  }
): Effect.fn.Return<Page<Row>, SqlError.SqlError> {
  const { page: { page, pageSize }, select, where } = options
  const table = sql(options.table)
  const tieBreaker = sql(options.tieBreaker)
  const [{ count }] =
    (yield* sql<{ readonly count: bigint }>`SELECT count(*) AS count FROM ${table} WHERE ${where}`) as [
      { readonly count: bigint }
    ]
  const total = Number(count)
  const offset = (page - 1) * pageSize
  const length = Math.min(pageSize, total - offset)
  if (length <= 0) return { items: [], total }
  const backwards = offset > total / 2
  const skipped = backwards ? total - offset - length : offset
  const order = sql.literal(backwards ? "ASC" : "DESC")
  const rows = yield* sql<Row>`
    WITH page AS (
      SELECT * FROM ${table} WHERE ${where}
      ORDER BY created_at ${order}, ${tieBreaker} ${order} LIMIT ${length} OFFSET ${skipped}
    )
    ${select} ORDER BY page.created_at DESC, page.${tieBreaker} DESC`
  return { items: rows, total }
})
