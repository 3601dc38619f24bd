/**
 * Transactions whose connection ends.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Exit, Layer } from "effect"
import { SqlError } from "effect/sql"

/**
 * The same client; a transaction fails as what runs in it when its connection ends.
 * That of the client itself dies then: it cannot roll back what has ended already.
 */
export const failing = (sql: PgClient.PgClient): PgClient.PgClient => {
  const withTransaction = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
    Effect.suspend(() => {
      let outcome: Exit.Exit<A, E> | undefined
      const noted = Effect.onExit(effect, (exit) =>
        Effect.sync(() => {
          outcome = exit
        }))
      return Effect.catchDefect(sql.withTransaction(noted), (defect): Effect.Effect<A, E | SqlError.SqlError> => {
        if (outcome !== undefined && Exit.isFailure(outcome)) return outcome
        return SqlError.isSqlError(defect) ? Effect.fail(defect) : Effect.die(defect)
      })
    })
  return new Proxy(sql, {
    get: (target, key) => key === "withTransaction" ? withTransaction : Reflect.get(target, key)
  })
}

/** The client of the context, as {@link failing} makes it. */
export const layer: Layer.Layer<PgClient.PgClient, never, PgClient.PgClient> = Layer.effect(
  PgClient.PgClient,
  Effect.map(PgClient.PgClient, failing)
)
