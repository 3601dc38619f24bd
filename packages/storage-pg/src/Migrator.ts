/**
 * Runs migrations. Other than the migrator of Effect it runs each one that the
 * database lacks, wherever it stands in the order, and refuses a database that a
 * newer version has changed too much (docs/decisions/0085-migrations.md).
 */
import { Effect } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { DatabaseError, databaseError } from "./PgErrors.ts"

/** By name: a number of four digits and words. */
export type Migrations = Readonly<Record<string, Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient>>>

interface Applied {
  readonly migration_id: number
  readonly name: string
}

const split = (migration: string) => ({ id: Number(migration.slice(0, 4)), name: migration.slice(5) })

const refuse = (message: string) =>
  new DatabaseError({ message: `The database cannot be used: ${message}`, cause: message })

/**
 * Runs the migrations that the database lacks, in order and in one transaction.
 * Other processes that do the same wait. Servers of an earlier version work
 * meanwhile: the transaction runs again if PostgreSQL ends it in a deadlock with one
 * of theirs. `contracting`: those of them after which a version that does not know
 * them cannot use the database.
 */
export const migrate = <A extends Migrations>(
  migrations: A,
  contracting: ReadonlyArray<keyof A & string> = []
): Effect.Effect<void, DatabaseError, SqlClient.SqlClient> =>
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    // Taken by the first of several processes; a lock of a table needs the table.
    yield* sql`SELECT pg_advisory_xact_lock(${lock}::bigint)`
    yield* sql`CREATE TABLE IF NOT EXISTS device_cloud_migration (
      migration_id integer PRIMARY KEY,
      created_at timestamptz NOT NULL DEFAULT now(),
      name text NOT NULL
    )`
    yield* sql`CREATE TABLE IF NOT EXISTS device_cloud_schema (needs integer NOT NULL)`
    const applied = yield* sql<Applied>`SELECT migration_id, name FROM device_cloud_migration ORDER BY migration_id`
    const [schema] = yield* sql<{ readonly needs: number }>`SELECT needs FROM device_cloud_schema`
    const names = new Map(applied.map(({ migration_id, name }) => [migration_id, name]))
    const known = Object.keys(migrations).toSorted().map((migration) => ({ ...split(migration), migration }))

    const newest = known.at(-1)?.id ?? 0
    if (schema !== undefined && schema.needs > newest) {
      return yield* refuse(
        `a newer version has changed it (migration ${schema.needs}), and this one knows migrations up to ${newest}. ` +
          "Start the newer version, or restore a backup from before its first start."
      )
    }
    for (const { id, name } of known) {
      const found = names.get(id)
      if (found !== undefined && found !== name) {
        return yield* refuse(
          `its migration ${id} is "${found}", and here it is "${name}". It belongs to another program.`
        )
      }
    }

    for (const { id, migration, name } of known) {
      if (names.has(id)) continue
      yield* Effect.mapError(migrations[migration]!, (error) => databaseError(error, `migration ${migration}: `))
      yield* sql`INSERT INTO device_cloud_migration (migration_id, name) VALUES (${id}, ${name})`
    }
    const needs = Math.max(0, ...contracting.map((migration) => split(migration).id))
    if (schema === undefined) yield* sql`INSERT INTO device_cloud_schema (needs) VALUES (${needs})`
    else if (needs > schema.needs) yield* sql`UPDATE device_cloud_schema SET needs = ${needs}`
  }).pipe(
    (run) => Effect.flatMap(SqlClient.SqlClient, (sql) => sql.withTransaction(run)),
    Effect.mapError((error) => error instanceof DatabaseError ? error : databaseError(error)),
    Effect.tapError((error) =>
      isDeadlock(error) ? Effect.logInfo("The migrations run again", { reason: error.message }) : Effect.void
    ),
    Effect.retry({ while: isDeadlock, times: attempts })
  )

const isDeadlock = ({ cause }: DatabaseError) => SqlError.isSqlError(cause) && cause.reason._tag === "DeadlockError"

/** PostgreSQL sees a deadlock after a second, so that this is more than a minute. */
const attempts = 60

/** The number of the advisory lock; nothing else here takes one of a transaction. */
const lock = 0x64_63_6c_64
