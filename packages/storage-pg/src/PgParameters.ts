/**
 * Parameters of statements: arrays for `unnest`, instants, and how plans treat
 * the rows of an array.
 */
import { PgTypes } from "@effect/sql-pg"
import { Result } from "effect"
import type { SqlClient, Statement } from "effect/sql"

const array = (elementOid: number) => (values: ReadonlyArray<unknown>): PgTypes.Parameter =>
  Result.getOrThrow(PgTypes.array(values, elementOid))

/** Strings, or null. */
export const texts = array(PgTypes.OID.text)

/** Whole numbers below 2^53, or null, for a cast to `bigint[]` or `smallint[]`. */
export const wholeNumbers = array(PgTypes.OID.float8)

export const booleans = array(PgTypes.OID.bool)

/** Unix milliseconds, or null. */
export const instants = array(PgTypes.OID.timestamptz)

/** Unix milliseconds, or null. */
export const instant = PgTypes.timestamptz

/**
 * Follows the `unnest` of a statement that looks up rows by what it brings
 * along. A plan for all parameters expects one row of a limit that it does not
 * know, so it uses the index. Without the limit, a plan from the time when the
 * table was small reads the whole table, also after it has grown.
 */
export const eachByIndex = (sql: SqlClient.SqlClient, count: number): Statement.Fragment => sql`LIMIT ${count}`
