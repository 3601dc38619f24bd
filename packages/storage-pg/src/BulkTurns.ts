/**
 * The part of `BulkCommandStore` about turns: what is left to do for each device.
 */
import type { BulkCommandStore, BulkOutcome, DeviceId } from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { bulkFromRow, type BulkRow } from "./BulkRow.ts"
import { storeError } from "./PgErrors.ts"
import { instant, texts, wholeNumbers } from "./PgParameters.ts"

interface TurnRow extends BulkRow {
  readonly place: number
  readonly device_id: string
  readonly message_id: bigint | null
}

export const make = (sql: PgClient.PgClient): Pick<BulkCommandStore["Service"], "cancel" | "claim" | "settle"> => {
  const cancel = Effect.fnUntraced(function*(bulkId: number, at: number) {
    const [row] = yield* sql`UPDATE bulk_command SET is_cancelled = true, updated_at = ${instant(at)}
      WHERE bulk_id = ${bulkId} AND NOT is_cancelled RETURNING bulk_id`
    if (row === undefined) return false
    yield* sql`
      WITH changed AS (
        UPDATE bulk_command_device SET state = CASE state WHEN 0 THEN 3 ELSE 4 END, claimed_until = NULL
        WHERE bulk_id = ${bulkId} AND state IN (0, 1) RETURNING state
      )
      UPDATE bulk_command SET turns = (SELECT count(*) FROM changed WHERE state = 4) WHERE bulk_id = ${bulkId}`
    return true
  }, sql.withTransaction)

  /** Stores the outcomes of turns of one bulk command. */
  const settleOf = Effect.fnUntraced(function*(bulkId: number, outcomes: ReadonlyArray<BulkOutcome>, at: number) {
    // Locked: a cancellation comes before or after all of them.
    const [row] = yield* sql`SELECT bulk_id FROM bulk_command WHERE bulk_id = ${bulkId} FOR UPDATE`
    if (row === undefined) return
    yield* sql`
      WITH outcome AS (
        SELECT * FROM unnest(
          ${wholeNumbers(outcomes.map(({ turn }) => turn.place))}::int[],
          ${wholeNumbers(outcomes.map(({ turn }) => turn.cancels === null ? 0 : 4))}::smallint[],
          ${wholeNumbers(outcomes.map(({ messageId }) => messageId))}::bigint[],
          ${texts(outcomes.map(({ reason }) => reason))}
        ) AS outcome (place, state, message_id, reason)
      ), changed AS (
        UPDATE bulk_command_device AS member SET
          -- 3: the bulk command was cancelled while the device was asked.
          state = CASE WHEN outcome.message_id IS NULL THEN 2 WHEN member.state = 3 THEN 4 ELSE 1 END,
          claimed_until = NULL, message_id = outcome.message_id, reason = outcome.reason
        FROM outcome
        WHERE member.bulk_id = ${bulkId} AND member.place = outcome.place
          AND (member.state = outcome.state
            OR member.state = 3 AND outcome.state = 0 AND outcome.message_id IS NOT NULL)
        RETURNING member.state, outcome.state = 0 AND member.state = 4 AS is_late
      )
      UPDATE bulk_command SET updated_at = ${instant(at)}, turns = turns
        - (SELECT count(*) FROM changed WHERE state <> 4)
        + (SELECT count(*) FROM changed WHERE is_late)
      WHERE bulk_id = ${bulkId}`
  }, sql.withTransaction)

  return {
    cancel: (bulkId, at) => Effect.mapError(cancel(bulkId, at), storeError("BulkCommandStore.cancel")),
    claim: ({ again, bulks, now, perBulk }) =>
      sql<TurnRow>`
        WITH waiting AS (
          SELECT * FROM bulk_command WHERE turns > 0 ORDER BY served_at LIMIT ${bulks} FOR UPDATE SKIP LOCKED
        ), served AS (
          UPDATE bulk_command SET served_at = ${instant(now)} FROM waiting
          WHERE bulk_command.bulk_id = waiting.bulk_id
        ), due AS (
          SELECT waiting.bulk_id, member.place FROM waiting, LATERAL (
            SELECT place FROM bulk_command_device AS member
            WHERE member.bulk_id = waiting.bulk_id AND member.state IN (0, 4)
              AND (claimed_until IS NULL OR claimed_until <= ${instant(now)})
            ORDER BY place LIMIT ${perBulk}
          ) AS member
        ), claimed AS (
          UPDATE bulk_command_device AS member SET claimed_until = ${instant(again)} FROM due
          WHERE member.bulk_id = due.bulk_id AND member.place = due.place AND member.state IN (0, 4)
          RETURNING member.bulk_id, member.place, member.device_id, member.message_id
        )
        SELECT waiting.*, claimed.place, claimed.device_id, claimed.message_id
        FROM claimed JOIN waiting USING (bulk_id) ORDER BY place, bulk_id`.pipe(
        Effect.map((rows) =>
          rows.map((row) => ({
            bulk: bulkFromRow(row),
            place: row.place,
            deviceId: row.device_id as DeviceId,
            cancels: row.message_id === null ? null : Number(row.message_id)
          }))
        ),
        Effect.mapError(storeError("BulkCommandStore.claim"))
      ),
    settle: (outcomes, at) =>
      Effect.forEach(
        new Set(outcomes.map(({ turn }) => turn.bulk.bulkId)),
        (bulkId) => settleOf(bulkId, outcomes.filter(({ turn }) => turn.bulk.bulkId === bulkId), at),
        { discard: true }
      ).pipe(Effect.mapError(storeError("BulkCommandStore.settle")))
  }
}
