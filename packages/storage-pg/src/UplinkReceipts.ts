/**
 * Receipts of transactions, so that one whose answer was lost is not repeated
 * (docs/decisions/0111-receipts-of-the-uplink.md).
 */
import { untilStored } from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Schedule, type Scope } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { randomUUID } from "node:crypto"
import { isRetryable, storeError } from "./PgErrors.ts"

/** How often receipts that nobody asks for any more are removed. */
const pruneEvery = "1 minute"

/** The receipts of one writer. */
export interface UplinkReceipts {
  /**
   * Runs a statement that contains `receipt`, and makes sure of its outcome: if the
   * connection ends before the answer, it waits for the database and asks. Returns
   * `onStored` of the devices in the table `passed_over` of the statement if it was
   * stored after all. Fails as the statement did if it was not, and then never is.
   */
  readonly certainly: <A>(
    statement: (receipt: Statement.Fragment) => Effect.Effect<A, SqlError.SqlError>,
    onStored: (passedOver: ReadonlyArray<string>) => A
  ) => Effect.Effect<A, SqlError.SqlError>
}

/** Its receipts go when they are not needed, while the scope is open. */
export const make = (sql: PgClient.PgClient): Effect.Effect<UplinkReceipts, never, Scope.Scope> =>
  Effect.gen(function*() {
    const writer = randomUUID()
    let last = 0
    /** The statements without an outcome, the oldest first. */
    const open = new Set<number>()

    const prune = Effect.suspend(() => {
      const [oldest = last + 1] = open
      return sql`DELETE FROM uplink_receipt WHERE writer = ${writer}::uuid AND number < ${oldest}::bigint
        OR at < now() - interval '30 days'`
    })
    yield* prune.pipe(
      Effect.catch((error) => Effect.logDebug("Receipts could not be removed", error)),
      Effect.schedule(Schedule.spaced(pruneEvery)),
      Effect.forkScoped
    )

    /**
     * Returns what the receipt has kept; null: there is none, and there never will be
     * one. The number is taken: a statement that still runs with it waits or fails.
     */
    const outcome = (number: number) =>
      Effect.andThen(
        sql`INSERT INTO uplink_receipt (writer, number) VALUES (${writer}::uuid, ${number}::bigint) ON CONFLICT DO NOTHING`,
        // A statement of its own sees what the first one has waited for.
        sql<{ readonly passed_over: ReadonlyArray<string> | null }>`
          SELECT passed_over FROM uplink_receipt WHERE writer = ${writer}::uuid AND number = ${number}::bigint`
      ).pipe(
        Effect.map(([row]) => row!.passed_over),
        Effect.mapError(storeError("UplinkStore.outcome")),
        untilStored,
        Effect.orDie
      )

    return {
      certainly: (statement, onStored) =>
        Effect.suspend(() => {
          const number = ++last
          open.add(number)
          return statement(sql`INSERT INTO uplink_receipt (writer, number, passed_over)
            SELECT ${writer}::uuid, ${number}::bigint, coalesce(array_agg(device_id), '{}') FROM passed_over`).pipe(
            Effect.catchIf(
              isRetryable,
              (error) =>
                Effect.flatMap(
                  outcome(number),
                  (passedOver) => passedOver === null ? Effect.fail(error) : Effect.succeed(onStored(passedOver))
                )
            ),
            Effect.ensuring(Effect.sync(() => open.delete(number)))
          )
        })
    }
  })
