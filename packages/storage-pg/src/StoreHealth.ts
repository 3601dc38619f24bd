/**
 * The health of the database: it answers, and it can write.
 */
import { abandonable, StoreError, StoreHealth } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Layer, Semaphore } from "effect"
import { storeError } from "./PgErrors.ts"

/** How long a database counts as one that can write, milliseconds. */
const writableMillis = 2000

const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const inTurn = yield* Semaphore.make(1)
  let writableUntil = 0

  /**
   * To sort 200 kB in less memory, PostgreSQL writes them to a file where new tables
   * come. That fails when there is no room, and leaves nothing behind.
   */
  const write = sql.withTransaction(Effect.gen(function*() {
    yield* sql`SELECT set_config('work_mem', '64kB', true),
      set_config('temp_tablespaces', current_setting('default_tablespace'), true)`
    const [found] = yield* sql<{ readonly is_read_only: boolean }>`
      SELECT count(DISTINCT repeat('x', 1000) || n), current_setting('transaction_read_only')::boolean AS is_read_only
      FROM generate_series(1, 200) AS n`
    return found?.is_read_only === false
  }))

  const check = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    if (now < writableUntil) {
      yield* sql`SELECT 1`
      return
    }
    if (!(yield* write)) {
      return yield* new StoreError({
        operation: "StoreHealth.check",
        retryable: true,
        cause: new Error("The database is read-only")
      })
    }
    writableUntil = now + writableMillis
  }).pipe(inTurn.withPermit, Effect.catchTag("SqlError", (error) => storeError("StoreHealth.check")(error)))

  const migration = sql<{ readonly migration: string }>`
    SELECT lpad(migration_id::text, 4, '0') || '_' || name AS migration FROM device_cloud_migration
    ORDER BY migration_id DESC LIMIT 1`.pipe(
    Effect.map(([row]) => row?.migration ?? ""),
    Effect.mapError(storeError("StoreHealth.migration"))
  )

  // On a connection whose statements get no answer, a transaction waits for its turn even when it is interrupted.
  return StoreHealth.of({ check: abandonable(check), migration })
})

/** Each check asks the database; one in two seconds finds out whether it can write. */
export const layer: Layer.Layer<StoreHealth, never, PgClient.PgClient> = Layer.effect(StoreHealth, make)
