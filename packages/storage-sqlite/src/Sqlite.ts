/**
 * One SQLite file, open in this process alone.
 *
 * Statements are synchronous: what runs in one turn of the event loop is one
 * transaction, and nobody sees its middle. A transaction around Effects may take
 * several turns; calls of other fibers wait until it ends.
 */
import type { StoreError } from "@device-cloud/core"
import Database from "libsql"
import { Context, Effect, Exit, Layer, Semaphore } from "effect"
import { statfsSync } from "node:fs"
import { dirname } from "node:path"
import { migrate } from "./Migrator.ts"
import { migrations } from "./Migrations.ts"
import { DatabaseError, isSqliteError, storeError } from "./SqliteErrors.ts"

/** What a statement takes for its `?`. Booleans are stored as 0 and 1. */
export type Value = string | number | boolean | null | Uint8Array

/** The statements of one turn. They throw what SQLite refuses; `read` and `write` make a `StoreError` of it. */
export interface Statements {
  /** Returns all rows. */
  readonly all: <Row extends object>(sql: string, values?: ReadonlyArray<Value>) => ReadonlyArray<Row>
  /** Returns the first row; undefined: there is none. */
  readonly get: <Row extends object>(sql: string, values?: ReadonlyArray<Value>) => Row | undefined
  /** Returns how many rows were inserted, changed or deleted, without those that go by a foreign key. */
  readonly run: (sql: string, values?: ReadonlyArray<Value>) => number
}

export class Sqlite extends Context.Service<
  Sqlite,
  & Statements
  & {
    /** Runs statements that only read. */
    readonly read: <A>(operation: string, work: () => A) => Effect.Effect<A, StoreError>
    /** Runs statements in one transaction, which is on the disk when the effect succeeds. */
    readonly write: <A>(operation: string, work: () => A) => Effect.Effect<A, StoreError>
    /** Runs `work` in one transaction: if it fails, none of its writes has had an effect. */
    readonly within: <A, E, R>(operation: string, work: Effect.Effect<A, E, R>) => Effect.Effect<A, E | StoreError, R>
    /** Returns how many bytes the disk has left for this process. */
    readonly room: () => number
  }
>()("@device-cloud/storage-sqlite/Sqlite") {
  /** Opens the file, makes it if there is none, and brings its tables up to date. */
  static readonly layer = ({ filename }: Options): Layer.Layer<Sqlite, DatabaseError> =>
    Layer.effect(
      Sqlite,
      typeof filename === "string"
        ? Effect.map(
          Effect.acquireRelease(open(filename), ({ close }) => Effect.sync(close)),
          ({ database }) => make(database, dirname(filename))
        )
        : Effect.die(new TypeError(`filename: expected the path of a file, not ${String(filename)}`))
    )
}

/** Where the database is. */
export interface Options {
  /** The path of the file. Its directory exists. Beside it SQLite keeps files of its own, with the same beginning. */
  readonly filename: string
}

const open = (filename: string) =>
  Effect.try({
    try: () => {
      const unlock = lock(filename)
      try {
        const database = new Database(filename)
        // FULL: a commit waits for the disk, so that it survives a power cut, too.
        database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")
        database.exec("PRAGMA cache_size = -32000; PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 67108864")
        migrate(database, migrations)
        return {
          database,
          close: () => {
            try {
              // Into the file itself. The driver would do it when its statements are collected.
              database.exec("PRAGMA wal_checkpoint(TRUNCATE)")
            } catch {
              // The disk is full or read-only. What is committed is in the file `-wal`, from which the next one goes on.
            }
            database.close()
            unlock()
          }
        }
      } catch (cause) {
        unlock()
        throw cause
      }
    },
    catch: (cause) =>
      new DatabaseError({
        message: `The database ${filename} cannot be used: ${cause instanceof Error ? cause.message : String(cause)}`,
        cause
      })
  })

/**
 * Keeps other processes away for as long as this one lives: an open transaction on
 * a file beside the database. The system ends it with the process, however it ends.
 * Returns what unlocks.
 */
const lock = (filename: string): () => void => {
  const guard = new Database(`${filename}-lock`)
  try {
    guard.exec("BEGIN EXCLUSIVE")
  } catch (cause) {
    guard.close()
    throw isSqliteError(cause) && cause.code === "SQLITE_BUSY"
      ? new Error("another process uses it. Stop that one, or give this one another file.", { cause })
      : cause
  }
  return () => guard.close()
}

/** The transaction around Effects that the current fiber takes part in. */
const CurrentTransaction = Context.Reference<object | undefined>("@device-cloud/storage-sqlite/CurrentTransaction", {
  defaultValue: () => undefined
})

/** The driver takes no booleans, and every number as one with a fraction. */
const bindable = (value: Value) => {
  if (typeof value === "boolean") return value ? 1n : 0n
  return typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : value
}

const make = (database: Database.Database, directory: string): Sqlite["Service"] => {
  const prepared = new Map<string, Database.Statement<[ReadonlyArray<unknown>]>>()
  const turns = Semaphore.makeUnsafe(1)
  /** The transaction around Effects that is open. */
  let current: object | undefined

  const prepare = (sql: string) => {
    const known = prepared.get(sql)
    if (known !== undefined) return known
    const statement = database.prepare<[ReadonlyArray<unknown>]>(sql)
    prepared.set(sql, statement)
    return statement
  }

  /** Begins a transaction, or a part of the open one that can be undone by itself. */
  const begin = (isPart: boolean) => prepare(isPart ? "SAVEPOINT part" : "BEGIN IMMEDIATE").run([])

  const undo = (isPart: boolean) => {
    // After some failures, such as a full disk, SQLite has undone the transaction already.
    if (!database.inTransaction) return
    if (isPart) prepare("ROLLBACK TO part").run([])
    prepare(isPart ? "RELEASE part" : "ROLLBACK").run([])
  }

  /** Ends what `begin` has begun. If that fails, nothing has happened. */
  const end = (isPart: boolean) => {
    try {
      prepare(isPart ? "RELEASE part" : "COMMIT").run([])
    } catch (cause) {
      undo(isPart)
      throw cause
    }
  }

  const inTransaction = <A>(work: () => A) => (): A => {
    const isPart = current !== undefined
    begin(isPart)
    let result: A
    try {
      result = work()
    } catch (cause) {
      undo(isPart)
      throw cause
    }
    end(isPart)
    return result
  }

  /** Runs the work now. */
  const settle = <A>(operation: string, work: () => A): Effect.Effect<A, StoreError> => {
    try {
      return Effect.succeed(work())
    } catch (cause) {
      return isSqliteError(cause) ? Effect.fail(storeError(operation, cause)) : Effect.die(cause)
    }
  }

  const attempt = <A>(operation: string, work: () => A): Effect.Effect<A, StoreError> =>
    Effect.suspend(() => settle(operation, work))

  /**
   * Runs at once, unless another fiber has a transaction open: in the step that finds
   * this out, since another fiber may begin one before the next step.
   */
  const inTurn = <A>(operation: string, work: () => A): Effect.Effect<A, StoreError> =>
    Effect.withFiber((fiber) =>
      current === undefined || Context.get(fiber.context, CurrentTransaction) === current
        ? settle(operation, work)
        : turns.withPermit(attempt(operation, work))
    )

  /** The transaction is open from the turn in which it begins to the turn in which it ends. */
  const around = <A, E, R>(operation: string, isPart: boolean, work: Effect.Effect<A, E, R>) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function*() {
        const transaction = yield* attempt(operation, () => {
          begin(isPart)
          return current ??= {}
        })
        const exit = yield* Effect.exit(restore(Effect.provideService(work, CurrentTransaction, transaction)))
        yield* attempt(operation, () => {
          if (!isPart) current = undefined
          if (Exit.isSuccess(exit)) end(isPart)
          else undo(isPart)
        })
        return yield* exit
      })
    )

  return Sqlite.of({
    all: <Row extends object>(sql: string, values: ReadonlyArray<Value> = []) =>
      prepare(sql).all(values.map(bindable)) as ReadonlyArray<Row>,
    get: <Row extends object>(sql: string, values: ReadonlyArray<Value> = []) => {
      try {
        return prepare(sql).get(values.map(bindable)) as Row | undefined
      } catch (cause) {
        // A statement of the driver whose `get` has failed fails for ever.
        prepared.delete(sql)
        throw cause
      }
    },
    run: (sql, values = []) => prepare(sql).run(values.map(bindable)).changes,
    read: inTurn,
    write: (operation, work) => inTurn(operation, inTransaction(work)),
    within: (operation, work) =>
      Effect.withFiber((fiber) =>
        current !== undefined && Context.get(fiber.context, CurrentTransaction) === current
          ? around(operation, true, work)
          : turns.withPermit(around(operation, false, work))
      ),
    room: () => {
      const { bavail, bsize } = statfsSync(directory)
      return bavail * bsize
    }
  })
}
