/**
 * From errors of PostgreSQL to errors of the stores.
 */
import { KeyRingError, StoreError } from "@device-cloud/core"
import { Predicate, Schema } from "effect"
import type { SqlError } from "effect/sql"

/** The database cannot be reached or brought up to date. */
export class DatabaseError extends Schema.TaggedError<DatabaseError>()("DatabaseError", {
  message: Schema.String,
  cause: Schema.Defect()
}) {}

/**
 * Keeps the sentence of the server or the driver, so that the start of a program
 * says what is wrong. `where` stands before it.
 */
export const databaseError = (cause: SqlError.SqlError, where = ""): DatabaseError => {
  const { message } = cause.reason.cause instanceof Error ? cause.reason.cause : cause
  return new DatabaseError({ message: `The database cannot be used: ${where}${message}`, cause })
}

/** Names the operation that failed and says whether the same call may succeed later. */
export const storeError = (operation: string) => (error: SqlError.SqlError | KeyRingError): StoreError =>
  new StoreError({ operation, retryable: error instanceof KeyRingError || isRetryable(error), cause: error })

/**
 * SQLSTATE classes and codes of a server that stops, starts, is out of resources, takes
 * no writes for now (a standby, or a full disk of some hosts), does not let the client
 * in (a password that is being changed, a right that is missing, a database that takes
 * no connections), does not have the database (it is restored), or has changed a table
 * under a prepared statement of a transaction (a server of a newer version has started).
 */
const passingState = /^(53|57P|58|08|0A000|25006|28|3D000|42501|55000)/

/** Whether the same statement may succeed later. */
export const isRetryable = (error: SqlError.SqlError): boolean => {
  if (error.isRetryable) return true
  const { cause } = error.reason
  return Predicate.hasProperty(cause, "code") && typeof cause.code === "string" && passingState.test(cause.code)
}

const isViolation = (sqlState: string) => (error: SqlError.SqlError | KeyRingError): boolean =>
  error._tag === "SqlError" && Predicate.hasProperty(error.reason.cause, "code") && error.reason.cause.code === sqlState

/** The statement refers to a row that does not exist, or removes one that another row refers to. */
export const isForeignKeyViolation = isViolation("23503")

/** A statement before this one has failed, and its transaction cannot go on. */
export const isAbortedTransaction = isViolation("25P02")

/** A row with the same key exists already. */
export const isUniqueViolation = isViolation("23505")
