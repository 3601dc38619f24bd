/**
 * From errors of SQLite to errors of the stores.
 */
import { StoreError } from "@device-cloud/core"
import Database from "libsql"
import { Schema } from "effect"

/** The file cannot be opened or brought up to date. */
export class DatabaseError extends Schema.TaggedError<DatabaseError>()("DatabaseError", {
  /** Names the file and what is wrong with it. */
  message: Schema.String,
  cause: Schema.Defect()
}) {}

/** Of a store that fails while the storage is built. */
export const databaseError = (cause: StoreError): DatabaseError => new DatabaseError({ message: cause.message, cause })

/** What the driver throws. */
export interface SqliteError extends Error {
  /** For example `SQLITE_FULL`. */
  readonly code: string
}

export const isSqliteError = (cause: unknown): cause is SqliteError => cause instanceof Database.SqliteError

/** The disk is full or fails, memory is short, another program holds the file: what may pass. */
const passing = /^SQLITE_(BUSY|CANTOPEN|FULL|IOERR|LOCKED|NOMEM)/

/** Names the operation of a failed statement and says whether the same call may succeed later. */
export const storeError = (operation: string, cause: SqliteError): StoreError =>
  new StoreError({ operation, retryable: passing.test(cause.code), cause })
