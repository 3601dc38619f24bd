/**
 * The clock of a cloud: the time of the database, running by the time that passes
 * on the server (docs/decisions/0093-the-clock-of-the-cloud.md).
 */
import { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Layer, Schedule } from "effect"
import type { SqlError } from "effect/sql"
import { type DatabaseError, databaseError } from "./PgErrors.ts"
import { type Bounds, SteadyClock } from "./SteadyClock.ts"

const followEvery = "10 seconds"
/** How often the database is asked each time. */
const questions = 5

/** Whatever is built on this layer has the time of the database. */
export const layer: Layer.Layer<never, DatabaseError, PgClient.PgClient> = Layer.effect(
  Clock.Clock,
  Effect.gen(function*() {
    const sql = yield* PgClient.PgClient
    const clock = new SteadyClock(passed, yield* Effect.mapError(ask(sql), databaseError))
    yield* ask(sql).pipe(
      Effect.map((bounds) => clock.follow(bounds)),
      // It goes on by the time that passes.
      Effect.catch((error) => Effect.logWarning("The time of the database is not known", error)),
      Effect.schedule(Schedule.spaced(followEvery)),
      Effect.forkScoped
    )
    return clock
  })
)

/** Milliseconds since the process began. No change of the system's clock changes it. */
const passed = (): number => performance.now()

/** The database read its clock between question and answer: each answer bounds the difference. */
const ask = Effect.fnUntraced(function*(sql: PgClient.PgClient): Effect.fn.Return<Bounds, SqlError.SqlError> {
  let bounds: Bounds = { least: -Infinity, most: Infinity }
  for (let i = 0; i < questions; i++) {
    const asked = passed()
    const [{ now }] = (yield* sql<{ readonly now: number }>`
      SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now`) as [{ readonly now: number }]
    const [least, most] = [now - passed(), now - asked]
    // Both are true, unless the clock of the database was set in between.
    bounds = least > bounds.most || most < bounds.least
      ? { least, most }
      : { least: Math.max(least, bounds.least), most: Math.min(most, bounds.most) }
  }
  return bounds
})
