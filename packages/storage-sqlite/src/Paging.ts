/**
 * Pages of a table, newest first.
 */
import type { Page, PageRequest } from "@device-cloud/core"
import type { Statements, Value } from "./Sqlite.ts"

/** Returns a page of the rows of `table` for which `where` holds, in the given order. */
export const pageOf = <Row extends object>(
  { all, get }: Statements,
  { columns = "*", order, page: { page, pageSize }, table, values, where }: {
    readonly table: string
    /** Default: all. */
    readonly columns?: string
    readonly where: string
    /** For the `?` of `where`. */
    readonly values: ReadonlyArray<Value>
    /** For example `created_at DESC, id DESC`; an index has it. */
    readonly order: string
    readonly page: PageRequest
  }
): Page<Row> => {
  const { total } = get<{ readonly total: number }>(`SELECT count(*) AS total FROM ${table} WHERE ${where}`, values)!
  const offset = (page - 1) * pageSize
  return {
    items: offset >= total ? [] : all<Row>(
      `SELECT ${columns} FROM ${table} WHERE ${where} ORDER BY ${order} LIMIT ? OFFSET ?`,
      [...values, pageSize, offset]
    ),
    total
  }
}
