/**
 * Removes what has ended, with its many parts, in slices: no transaction takes long.
 */
import type { StoreError } from "@device-cloud/core"
import { Effect } from "effect"
import type { Sqlite, Value } from "./Sqlite.ts"

/** A table, another one with the parts of its rows, and which rows have ended, now and for ever. */
export interface Ended {
  readonly table: string
  readonly parts: string
  /** A column of both. */
  readonly id: string
  readonly where: string
  /** For the `?` of `where`. */
  readonly values: ReadonlyArray<Value>
}

/** Parts that one transaction removes: some milliseconds. */
const sliceSize = 1000

/** Removes at most `limit` of the rows, after their parts. Returns how many rows. */
export const pruneWithParts = (
  sql: Sqlite["Service"],
  operation: string,
  { id, parts, table, values, where }: Ended,
  limit: number
): Effect.Effect<number, StoreError> =>
  Effect.gen(function*() {
    const ended = yield* sql.read(operation, () =>
      sql.all<{ readonly id: number }>(`SELECT ${id} AS id FROM ${table} WHERE ${where} LIMIT ?`, [...values, limit]))
    for (const row of ended) {
      const removeParts = sql.write(operation, () =>
        sql.run(`DELETE FROM ${parts} WHERE rowid IN (SELECT rowid FROM ${parts} WHERE ${id} = ? LIMIT ?)`, [
          row.id,
          sliceSize
        ]))
      while ((yield* removeParts) === sliceSize) {
        yield* Effect.yieldNow
      }
      yield* sql.write(operation, () =>
        sql.run(`DELETE FROM ${table} WHERE ${id} = ?`, [row.id]))
    }
    return ended.length
  })
