/**
 * The part of `OtaStore` that remembers how far tasks were, and why devices have
 * failed (docs/decisions/0119-progress-of-upgrade-tasks.md).
 */
import { type OtaStore, progressResolution, type RecordCounts } from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import { clients } from "./LongReads.ts"
import { storeError } from "./PgErrors.ts"
import { wholeNumbers } from "./PgParameters.ts"

/**
 * Remembers the counts of the tasks in `changed`, rows of `ota_task` that the
 * statement has changed at that time, Unix milliseconds. Clocks of nodes differ:
 * the latest counts are always those of the latest tick.
 */
export const noteProgress = (sql: PgClient.PgClient, at: number): Statement.Fragment =>
  sql`INSERT INTO ota_progress (task_id, tick, pending, upgrading, succeeded, failed, cancelled)
    SELECT task_id, greatest(${Math.floor(at / progressResolution)}::int,
      (SELECT max(tick) FROM ota_progress WHERE ota_progress.task_id = changed.task_id)),
      pending, upgrading, succeeded, failed, cancelled
    FROM changed
    ON CONFLICT (task_id, tick) DO UPDATE SET pending = excluded.pending, upgrading = excluded.upgrading,
      succeeded = excluded.succeeded, failed = excluded.failed, cancelled = excluded.cancelled`

export const make: Effect.Effect<
  Pick<OtaStore["Service"], "countsBefore" | "failures">,
  never,
  PgClient.PgClient
> = Effect.gen(function*() {
  const { reads, sql } = yield* clients

  return {
    countsBefore: (taskId, times) =>
      sql<RecordCounts>`
        SELECT coalesce(pending, 0) AS pending, coalesce(upgrading, 0) AS upgrading,
          coalesce(succeeded, 0) AS succeeded, coalesce(failed, 0) AS failed, coalesce(cancelled, 0) AS cancelled
        FROM unnest(${wholeNumbers(times.map((time) => time / progressResolution))}::int[])
          WITH ORDINALITY AS asked (tick, place)
        LEFT JOIN LATERAL (
          SELECT * FROM ota_progress WHERE task_id = ${taskId} AND ota_progress.tick < asked.tick
          ORDER BY ota_progress.tick DESC LIMIT 1
        ) AS known ON true
        ORDER BY place`.pipe(Effect.mapError(storeError("OtaStore.countsBefore"))),
    failures: (taskId, limit) =>
      reads<{ readonly reason: string; readonly devices: number }>`
        SELECT failure AS reason, count(*)::int AS devices FROM ota_record
        WHERE task_id = ${taskId} AND failure IS NOT NULL
        GROUP BY failure ORDER BY devices DESC, failure COLLATE "C" LIMIT ${limit}`.pipe(
        Effect.mapError(storeError("OtaStore.failures"))
      )
  }
})
