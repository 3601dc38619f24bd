/**
 * The clock of a cloud: the time of the database, running by the time that passes
 * on the server (docs/decisions/0093-the-clock-of-the-cloud.md).
 */
import { SteadyClock } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { type DatabaseError, databaseError } from "./PgErrors.ts"

/** How often the database is asked each time. */
const questions = 5

/** Whatever is built on this layer has the time of the database. */
export const layer: Layer.Layer<never, DatabaseError, PgClient.PgClient> = Layer.effect(
  Clock.Clock,
  Effect.gen(function*() {
    return yield* SteadyClock.following(passed, Effect.mapError(ask(yield* PgClient.PgClient), databaseError))
  })
)

/** Milliseconds since the process began. */
const passed = (): number => performance.now()

/** The database read its clock between question and answer: each answer bounds the difference. */
const ask = Effect.fnUntraced(
  function*(sql: PgClient.PgClient): Effect.fn.Return<SteadyClock.ClockBounds, SqlError.SqlError> {
    let bounds: SteadyClock.ClockBounds = { least: -Infinity, most: Infinity }
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
  }
)
