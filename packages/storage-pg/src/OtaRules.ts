/**
 * The rules of the core that statements apply to many rows at once. Everything
 * else about upgrades is decided by the core; `test/OtaRules.test.ts` compares
 * each rule here with the core's.
 */
import type { OtaTask } from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import type { Statement } from "effect/sql"
import { recordNumber } from "./OtaRow.ts"
import { instant } from "./PgParameters.ts"

/** `isOngoing` of the core, about the status of a task. */
export const isOngoing = "status < 2"

/** Not `isFinal` of the core, about the status of a record. The index `ota_record_unfinished` has the same words. */
export const isUnfinished = "status < 3"

/**
 * `rolloutDelay` of the core, in whole milliseconds, for the records whose places
 * are in the column `place`. Each step is the same operation on the same numbers.
 */
export const rolloutDelay = (
  sql: PgClient.PgClient,
  { maximumPerMinute, taskId }: Pick<OtaTask, "maximumPerMinute" | "taskId">,
  place: string
): Statement.Fragment => {
  const column = sql.literal(place)
  const turns = sql`((${column} % ${maximumPerMinute}::int)::float8
    * ((1 + ${taskId}::bigint % 997)::float8 * 0.6180339887498949::float8))`
  return sql`floor(60000::float8 * (${column} + (${turns} - floor(${turns}))) / ${maximumPerMinute}::int)`
}

/** When the records at `place`, a column, are due in a roll-out that begins at `firstDue`, Unix milliseconds. */
export const dueAt = (
  sql: PgClient.PgClient,
  firstDue: number,
  task: Pick<OtaTask, "maximumPerMinute" | "taskId">,
  place: string
): Statement.Fragment =>
  sql`${instant(firstDue)}::timestamptz + ${rolloutDelay(sql, task, place)} * interval '1 millisecond'`

/** The assignments that cancel a record, as `advance` of the core does it. */
export const cancelRecord = (sql: PgClient.PgClient, at: number): Statement.Fragment =>
  sql`status = ${recordNumber.cancelled}, due_at = NULL, reason = 'cancelled', updated_at = ${instant(at)},
    revision = ota_record.revision + 1`
