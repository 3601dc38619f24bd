/**
 * The part of `OtaStore` that opens the stages of tasks, and adds devices that
 * come later.
 */
import {
  deviceCount,
  holdsNewcomers,
  isPushed,
  isStagePassed,
  type OtaStore,
  type OtaTask,
  stageSize,
  withCounts
} from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Option } from "effect"
import type { SqlError } from "effect/sql"
import { recordNumber, taskFromRow, taskNumber, type TaskRow } from "./OtaRow.ts"
import { noteProgress } from "./OtaProgress.ts"
import * as OtaRules from "./OtaRules.ts"
import { storeError } from "./PgErrors.ts"
import { instant, texts } from "./PgParameters.ts"

/** Closes the gaps of devices that another task has taken at the same moment. */
export const closeRanks = (sql: PgClient.PgClient, taskId: number): Effect.Effect<unknown, SqlError.SqlError> =>
  sql`UPDATE ota_record SET place = rank.place
    FROM (
      SELECT device_id, row_number() OVER (ORDER BY place) - 1 AS place FROM ota_record WHERE task_id = ${taskId}
    ) AS rank
    WHERE ota_record.task_id = ${taskId} AND ota_record.device_id = rank.device_id`

/** Opens a stage, within a transaction. */
const openStage = Effect.fnUntraced(
  function*(
    sql: PgClient.PgClient,
    taskId: number,
    stage: number,
    firstDue: number
  ): Effect.fn.Return<Option.Option<OtaTask>, SqlError.SqlError> {
    const [row] = yield* sql<TaskRow>`UPDATE ota_task SET stage = ${stage}::int, updated_at = ${instant(firstDue)}
      WHERE task_id = ${taskId} AND kind = 'upgrade' AND ${sql.literal(OtaRules.isOngoing)} AND stage = ${
      stage - 1
    }::int RETURNING *`
    if (row === undefined) return Option.none()
    const task = taskFromRow(row)
    const isTold = (isConfirmed: boolean) => isPushed(task, { isConfirmed, isHeld: false })
    const told = isTold(false) ? sql`true` : isTold(true) ? sql`is_confirmed` : sql`false`
    yield* sql`
      UPDATE ota_record SET is_held = false, revision = revision + 1,
        due_at = CASE WHEN ${told} THEN ${OtaRules.dueAt(sql, firstDue, task, "opened.place")} ELSE due_at END
      FROM (
        SELECT device_id, row_number() OVER (ORDER BY ota_record.place) - 1 AS place FROM ota_record
        WHERE task_id = ${taskId} AND is_held AND status = ${recordNumber.pending}
          AND ota_record.place < ${stageSize(task, stage)}
      ) AS opened
      WHERE ota_record.task_id = ${taskId} AND ota_record.device_id = opened.device_id`
    return Option.some(task)
  }
)

const hasPassed = Effect.fnUntraced(function*(
  sql: PgClient.PgClient,
  task: OtaTask
): Effect.fn.Return<boolean, SqlError.SqlError> {
  if (!isStagePassed(task)) return false
  const [open] = yield* sql<{ readonly devices: number; readonly succeeded: number }>`
    SELECT count(*)::int AS devices, count(*) FILTER (WHERE status = ${recordNumber.succeeded})::int AS succeeded
    FROM ota_record
    WHERE task_id = ${task.taskId} AND place < ${stageSize(task, task.stage)} AND NOT is_held`
  return isStagePassed(task, open)
})

/** Opens the stages of the task that open by themselves, within a transaction. Returns the task afterwards. */
export const openPassed = Effect.fnUntraced(function*(
  sql: PgClient.PgClient,
  changed: OtaTask
): Effect.fn.Return<OtaTask, SqlError.SqlError> {
  let task = changed
  while (yield* hasPassed(sql, task)) {
    const opened = yield* openStage(sql, task.taskId, task.stage + 1, task.updatedAt)
    if (Option.isNone(opened)) return task
    task = opened.value
  }
  return task
})

export const make: Effect.Effect<
  Pick<OtaStore["Service"], "openStage" | "dynamicTasks" | "join">,
  never,
  PgClient.PgClient
> = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const isOngoing = sql.literal(OtaRules.isOngoing)
  const isUnfinished = sql.literal(OtaRules.isUnfinished)

  const join = Effect.fnUntraced(
    function*(taskId: number, joining: Parameters<OtaStore["Service"]["join"]>[1], at: number) {
      const deviceIds = texts(joining.map(({ deviceId }) => deviceId))
      // Locked: who removes one of them afterwards finds its record, and ends it.
      yield* sql`SELECT device_id FROM device WHERE device_id = ANY(${deviceIds}) ORDER BY device_id FOR KEY SHARE`
      const [row] = yield* sql<TaskRow>`SELECT * FROM ota_task WHERE task_id = ${taskId} AND ${isOngoing} FOR UPDATE`
      if (row === undefined) return
      const task = taskFromRow(row)
      const count = deviceCount(task.counts)
      const held = { isConfirmed: false, isHeld: holdsNewcomers(task) }
      const records = yield* sql<{ readonly place: number }>`
        INSERT INTO ota_record
          (task_id, place, device_id, device_name, module, is_held, due_at, created_at, updated_at)
        SELECT ${taskId}::bigint, ${count}::int + row_number() OVER (ORDER BY device.id) - 1, device_id,
          device.device_name, ${task.module}, ${held.isHeld}::boolean,
          ${isPushed(task, held) ? instant(at) : null}::timestamptz, ${instant(at)}, ${instant(at)}
        FROM device WHERE device_id = ANY(${deviceIds})
          AND NOT EXISTS (SELECT FROM ota_record AS other WHERE other.device_id = device.device_id
            AND (other.task_id = ${taskId} OR other.module = ${task.module} AND other.${isUnfinished}))
        ON CONFLICT DO NOTHING
        RETURNING place`
      if (records.length === 0) return
      if (records.some(({ place }) => place >= count + records.length)) yield* closeRanks(sql, taskId)
      const after = withCounts(task, { ...task.counts, pending: task.counts.pending + records.length })
      yield* sql`
        WITH changed AS (
          UPDATE ota_task SET pending = ${after.counts.pending}, status = ${taskNumber(after)},
            updated_at = ${instant(at)}
          WHERE task_id = ${taskId} RETURNING *
        ) ${noteProgress(sql, at)}`
    },
    sql.withTransaction
  )

  return {
    openStage: (taskId, stage, firstDue) =>
      Effect.mapError(sql.withTransaction(openStage(sql, taskId, stage, firstDue)), storeError("OtaStore.openStage")),
    dynamicTasks: (productKeys) =>
      sql<TaskRow>`SELECT * FROM ota_task
        WHERE product_key = ANY(${texts(productKeys)}) AND is_dynamic AND ${isOngoing}
        ORDER BY task_id`.pipe(
        Effect.map((rows) => rows.map(taskFromRow)),
        Effect.mapError(storeError("OtaStore.dynamicTasks"))
      ),
    join: (taskId, joining, at) => Effect.mapError(join(taskId, joining, at), storeError("OtaStore.join"))
  }
})
