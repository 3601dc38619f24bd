/**
 * The part of `BulkCommandStore` about turns: what is left to do for each device.
 */
import {
  type BulkCommand,
  type BulkCommandStore,
  bulkOrigin,
  type BulkOutcome,
  type BulkTurn,
  type DeviceId
} from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { bulkFromRow, type BulkRow } from "./BulkRow.ts"
import { storeError } from "./PgErrors.ts"
import { eachByIndex, instant, texts, wholeNumbers } from "./PgParameters.ts"

interface TurnRow {
  readonly place: number
  readonly device_id: string
  readonly message_id: bigint | null
}

export const make = (sql: PgClient.PgClient): Pick<BulkCommandStore["Service"], "cancel" | "claim" | "settle"> => {
  const cancel = Effect.fnUntraced(function*(bulkId: number, at: number) {
    const [row] = yield* sql`UPDATE bulk_command SET is_cancelled = true, updated_at = ${instant(at)}
      WHERE bulk_id = ${bulkId} AND NOT is_cancelled RETURNING bulk_id`
    if (row === undefined) return false
    // Whoever has the turns may have ended before it stored what came of them.
    yield* sql`UPDATE bulk_command_device AS member SET state = 1, message_id = command.message_id
      FROM command
      WHERE member.bulk_id = ${bulkId} AND member.state = 0 AND member.claimed_until IS NOT NULL
        AND command.device_id = member.device_id AND command.origin = ${bulkOrigin(bulkId)}`
    yield* sql`
      WITH changed AS (
        UPDATE bulk_command_device SET state = CASE state WHEN 0 THEN 3 ELSE 4 END, claimed_until = NULL
        WHERE bulk_id = ${bulkId} AND state IN (0, 1) RETURNING state
      )
      UPDATE bulk_command SET turns = (SELECT count(*) FROM changed WHERE state = 4) WHERE bulk_id = ${bulkId}`
    return true
  }, sql.withTransaction)

  /**
   * Places as an array: a join of turns with devices, in a plan from the time when
   * there were few, compares each with each.
   */
  const claimOf = (bulk: BulkCommand, now: number, again: number, limit: number) =>
    Effect.map(
      sql<TurnRow>`
        UPDATE bulk_command_device SET claimed_until = ${instant(again)}
        WHERE bulk_id = ${bulk.bulkId} AND state IN (0, 4) AND place = ANY(ARRAY(
          SELECT place FROM bulk_command_device
          WHERE bulk_id = ${bulk.bulkId} AND state IN (0, 4)
            AND (claimed_until IS NULL OR claimed_until <= ${instant(now)}
              OR claimed_until > ${instant(now + 2 * (again - now))})
          ORDER BY place LIMIT ${limit}
        ))
        RETURNING place, device_id, message_id`,
      (rows) =>
        rows.map(({ device_id, message_id, place }): BulkTurn => ({
          bulk,
          place,
          deviceId: device_id as DeviceId,
          cancels: message_id === null ? null : Number(message_id)
        }))
    )

  const claim = Effect.fnUntraced(
    function*({ again, bulks, now, perBulk }: Parameters<BulkCommandStore["Service"]["claim"]>[0]) {
      // Locked: another node takes turns of others meanwhile.
      const waiting = yield* sql<BulkRow>`SELECT * FROM bulk_command WHERE turns > 0
        ORDER BY served_at LIMIT ${bulks} FOR UPDATE SKIP LOCKED`
      if (waiting.length === 0) return []
      const served = wholeNumbers(waiting.map(({ bulk_id }) => Number(bulk_id)))
      yield* sql`UPDATE bulk_command SET served_at = ${instant(now)} WHERE bulk_id = ANY(${served}::bigint[])`
      const turns = yield* Effect.forEach(waiting, (row) => claimOf(bulkFromRow(row), now, again, perBulk))
      return turns.flat().toSorted((a, b) => a.place - b.place || a.bulk.bulkId - b.bulk.bulkId)
    },
    sql.withTransaction
  )

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
        ) AS outcome (place, state, message_id, reason) ${eachByIndex(sql, outcomes.length)}
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
    claim: (options) => Effect.mapError(claim(options), storeError("BulkCommandStore.claim")),
    settle: (outcomes, at) =>
      Effect.forEach(
        new Set(outcomes.map(({ turn }) => turn.bulk.bulkId)),
        (bulkId) => settleOf(bulkId, outcomes.filter(({ turn }) => turn.bulk.bulkId === bulkId), at),
        { discard: true }
      ).pipe(Effect.mapError(storeError("BulkCommandStore.settle")))
  }
}
