/**
 * The part of `OtaStore` that creates, reads and ends tasks.
 */
import {
  type DeviceId,
  isPushed,
  type NewTask,
  type OtaStore,
  type OtaTask,
  stageSize,
  type TaskCreated,
  type TaskScope,
  verifiable,
  withCounts
} from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Option } from "effect"
import type { SqlError } from "effect/sql"
import { matches } from "./DeviceFilter.ts"
import {
  policyNumber,
  recordNumber,
  scopeNumber,
  taskFromRow,
  taskNumber,
  type TaskRow,
  upgradeTaskFromRow,
  upgradeTaskNumber,
  verificationNumber,
  verifyTaskFromRow
} from "./OtaRow.ts"
import { noteProgress } from "./OtaProgress.ts"
import * as OtaRules from "./OtaRules.ts"
import * as OtaStages from "./OtaStages.ts"
import { clients } from "./LongReads.ts"
import { paginate } from "./Pagination.ts"
import { isUniqueViolation, storeError } from "./PgErrors.ts"
import { instant, texts, wholeNumbers } from "./PgParameters.ts"
import { pruneWithParts } from "./Pruning.ts"
import { noteAdded } from "./Statistics.ts"
import { unknownDevices } from "./UnknownDevices.ts"

/** The devices that a new task has got, in their order, and how many places they are spread over. */
interface Stored {
  readonly device_ids: ReadonlyArray<DeviceId>
  readonly places: number
}

/** Ends a task, within a transaction. Returns it afterwards; none: it has not been ended. */
export const endTask = Effect.fnUntraced(
  function*(
    sql: PgClient.PgClient,
    taskId: number,
    to: "passed" | "failed" | "cancelled",
    cancelled: ReadonlyArray<"pending" | "upgrading">,
    at: number
  ): Effect.fn.Return<Option.Option<OtaTask>, SqlError.SqlError> {
    const [row] = yield* sql<TaskRow>`UPDATE ota_task
      SET status = ${verificationNumber[to]}, updated_at = ${instant(at)}
      WHERE task_id = ${taskId} AND ${sql.literal(OtaRules.isOngoing)} AND (kind = 'verify' OR ${
      to === "cancelled"
    }) RETURNING *`
    if (row === undefined) return Option.none()
    if (row.kind === "verify") {
      yield* sql`UPDATE firmware SET status = ${verificationNumber[to]}, updated_at = ${instant(at)}
        WHERE firmware_id = ${Number(row.firmware_id)}`
    }
    const numbers = wholeNumbers(cancelled.map((status) => recordNumber[status]))
    const [ended] = yield* sql<TaskRow>`
      WITH ended AS (
        SELECT device_id, status FROM ota_record
        WHERE task_id = ${taskId} AND status = ANY(${numbers}::smallint[]) FOR UPDATE
      ), cancelled AS (
        UPDATE ota_record SET ${OtaRules.cancelRecord(sql, at)}
        FROM ended WHERE ota_record.task_id = ${taskId} AND ota_record.device_id = ended.device_id
      ), changed AS (
        UPDATE ota_task SET
          pending = pending - (SELECT count(*) FROM ended WHERE status = ${recordNumber.pending}),
          upgrading = upgrading - (SELECT count(*) FROM ended WHERE status = ${recordNumber.upgrading}),
          cancelled = cancelled + (SELECT count(*) FROM ended)
        WHERE task_id = ${taskId} RETURNING *
      ), noted AS (${noteProgress(sql, at)})
      SELECT * FROM changed`
    return Option.some(taskFromRow(ended!))
  }
)

export const make: Effect.Effect<
  Pick<
    OtaStore["Service"],
    | "createTask"
    | "task"
    | "verifyTask"
    | "listTasks"
    | "underWay"
    | "endTask"
    | "removeTask"
    | "pruneTasks"
    | "confirmTask"
  >,
  never,
  PgClient.PgClient
> = Effect.gen(function*() {
  const { reads, sql } = yield* clients
  const isOngoing = sql.literal(OtaRules.isOngoing)
  const isUnfinished = sql.literal(OtaRules.isUnfinished)
  const verifiableNumbers = wholeNumbers(verifiable.map((status) => verificationNumber[status]))

  const busy = (deviceIds: ReadonlyArray<DeviceId>, module: string) =>
    Effect.map(
      sql<{ readonly device_id: string }>`SELECT device_id FROM ota_record
        WHERE device_id = ANY(${texts(deviceIds)}) AND module = ${module} AND ${isUnfinished} LIMIT 1`,
      ([row]): TaskCreated | undefined =>
        row === undefined ? undefined : { _tag: "Busy", deviceId: row.device_id as DeviceId }
    )

  const insertTask = (task: NewTask) => {
    const status = taskNumber(
      task.kind === "verify" ? { kind: "verify", status: "verifying" } : { kind: "upgrade", status: "pending" }
    )
    return sql<TaskRow>`INSERT INTO ota_task (kind, project_id, product_key, firmware_id, module, version, status,
        is_dynamic, upgrade_policy, scope_mode, timeout, need_app_confirm, is_app_confirmed, download_protocol, maximum_per_minute,
        retry_count, retry_interval, abort_threshold_percent, abort_min_executed, stages, stage,
        stage_success_percent, start_window, created_at, updated_at)
      VALUES (${task.kind}, ${task.projectId}, ${task.productKey}, ${task.firmwareId}, ${task.module},
        ${task.version}, ${status}, ${task.isDynamic}, ${policyNumber[task.upgradePolicy]}, ${
      scopeNumber[task.scopeMode]
    },
        ${task.timeout}, ${task.needAppConfirm}, ${task.isAppConfirmed}, ${task.downloadProtocol}, ${task.maximumPerMinute},
        ${task.retryCount}, ${task.retryInterval}, ${task.abortThresholdPercent}, ${task.abortMinExecuted},
        ${JSON.stringify(task.stages)}::json, ${task.stage}, ${task.stageSuccessPercent},
        ${task.startWindow === null ? null : JSON.stringify(task.startWindow)}::json,
        ${instant(task.createdAt)}, ${instant(task.updatedAt)})
      RETURNING *`
  }

  /** Returns the devices as one row: hundreds of thousands of rows would hold up the process. */
  const insertRecords = (task: OtaTask, scope: TaskScope, firstDue: number) =>
    sql<Stored>`
      WITH chosen AS MATERIALIZED (
        -- Locked: who removes one of them afterwards finds its record, and ends it.
        SELECT device.id, device.device_id, device.device_name
        FROM device LEFT JOIN device_module ON device_module.device_id = device.device_id
          AND device_module.module = ${task.module}
        WHERE device.project_id = ${task.projectId} AND device.product_key = ${task.productKey}
          AND coalesce(device_module.version, '') <> ${task.version}
          AND ${
      scope._tag === "Named"
        ? sql`device.device_id = ANY(${texts(scope.deviceIds)})`
        : sql`NOT EXISTS (SELECT FROM ota_record AS other WHERE other.device_id = device.device_id
                AND other.module = ${task.module} AND other.${isUnfinished})
            AND ${
          scope.filter === undefined
            ? sql`true`
            : sql`device.device_id IN (SELECT device_id FROM device WHERE ${
              matches(sql, task.projectId, scope.filter)
            })`
        }`
    }
        ORDER BY device.device_id FOR KEY SHARE OF device
      ), stored AS (
        INSERT INTO ota_record (task_id, place, device_id, device_name, module, due_at, created_at, updated_at)
        SELECT ${task.taskId}::bigint, place, device_id, device_name, ${task.module},
          ${
      isPushed(task, { isConfirmed: false, isHeld: false })
        ? OtaRules.dueAt(sql, firstDue, task, "place")
        : sql`NULL::timestamptz`
    },
          ${instant(task.createdAt)}, ${instant(task.createdAt)}
        FROM (
          SELECT device_id, device_name, row_number() OVER (ORDER BY id) - 1 AS place FROM chosen
        ) AS candidate
        -- The sort finds all devices before the first record is stored. Otherwise each device is looked up among
        -- ever more new records.
        ORDER BY place
        ${scope._tag === "Named" ? sql`` : sql`ON CONFLICT (device_id, module) WHERE ${isUnfinished} DO NOTHING`}
        RETURNING device_id, place
      )
      SELECT coalesce(array_agg(device_id ORDER BY place), '{}') AS device_ids, coalesce(max(place) + 1, 0)::int AS places
      FROM stored`

  /** Holds the devices of later stages. */
  const hold = (task: OtaTask) =>
    sql`UPDATE ota_record SET is_held = true, due_at = NULL
      WHERE task_id = ${task.taskId} AND place >= ${stageSize(task, task.stage)}`

  const createTask = Effect.fnUntraced(
    function*(draft: NewTask, scope: TaskScope, firstDue: number) {
      if (scope._tag === "Named") {
        const missing = yield* unknownDevices(sql, draft, scope.deviceIds)
        if (missing.length > 0) return { _tag: "Unknown", deviceIds: missing } satisfies TaskCreated
        const taken = yield* busy(scope.deviceIds, draft.module)
        if (taken !== undefined) return taken
      }
      const [known] = yield* sql`SELECT firmware_id FROM firmware WHERE firmware_id = ${draft.firmwareId} FOR KEY SHARE`
      if (known === undefined) return { _tag: "NoFirmware" } satisfies TaskCreated
      if (draft.kind === "verify") {
        const [moved] = yield* sql`UPDATE firmware SET status = ${verificationNumber.verifying},
            updated_at = ${instant(draft.createdAt)}
          WHERE firmware_id = ${draft.firmwareId} AND status = ANY(${verifiableNumbers}::smallint[])
          RETURNING firmware_id`
        if (moved === undefined) {
          // A task that was created at the same moment may have the devices, too.
          const taken = scope._tag === "Named" ? yield* busy(scope.deviceIds, draft.module) : undefined
          return taken ?? ({ _tag: "NotVerifiable" } satisfies TaskCreated)
        }
      }
      const [row] = yield* insertTask(draft)
      const inserted = taskFromRow(row!)
      const [{ device_ids: deviceIds, places }] = (yield* insertRecords(inserted, scope, firstDue)) as [Stored]
      yield* noteAdded(sql, "ota_record", deviceIds.length)
      if (places > deviceIds.length) yield* OtaStages.closeRanks(sql, inserted.taskId)
      const task = withCounts(inserted, { ...inserted.counts, pending: deviceIds.length })
      yield* sql`
        WITH changed AS (
          UPDATE ota_task SET pending = ${deviceIds.length}, status = ${taskNumber(task)}
          WHERE task_id = ${task.taskId} RETURNING *
        ) ${noteProgress(sql, task.createdAt)}`
      if (task.stages.length > 0) yield* hold(task)
      return { _tag: "Created", task, deviceIds } satisfies TaskCreated
    },
    sql.withTransaction
  )

  const task = (rows: ReadonlyArray<TaskRow>) => Option.map(Option.fromUndefinedOr(rows[0]), taskFromRow)

  return {
    createTask: (draft, scope, firstDue) =>
      createTask(draft, scope, firstDue).pipe(
        // A task that was created at the same moment has one of the devices. The next attempt sees it.
        Effect.retry({ while: isUniqueViolation, times: 3 }),
        Effect.mapError(storeError("OtaStore.createTask"))
      ),
    task: (projectId, taskId) =>
      sql<TaskRow>`SELECT * FROM ota_task WHERE task_id = ${taskId} AND project_id = ${projectId}`.pipe(
        Effect.map(task),
        Effect.mapError(storeError("OtaStore.task"))
      ),
    verifyTask: (firmwareId) =>
      sql<TaskRow>`SELECT * FROM ota_task WHERE firmware_id = ${firmwareId} AND kind = 'verify'
        ORDER BY task_id DESC LIMIT 1`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), verifyTaskFromRow)),
        Effect.mapError(storeError("OtaStore.verifyTask"))
      ),
    listTasks: (projectId, { firmwareId, status, taskId }, page) =>
      paginate<TaskRow>(reads, {
        table: "ota_task",
        where: sql.and([
          sql`project_id = ${projectId} AND firmware_id = ${firmwareId} AND kind = 'upgrade'`,
          ...status === undefined ? [] : [sql`status = ${upgradeTaskNumber[status]}`],
          ...taskId === undefined ? [] : [sql`task_id = ${taskId}`]
        ]),
        tieBreaker: "task_id",
        select: sql`SELECT * FROM page`,
        page
      }).pipe(
        Effect.map(({ items, total }) => ({ items: items.map(upgradeTaskFromRow), total })),
        Effect.mapError(storeError("OtaStore.listTasks"))
      ),
    underWay: (projectId, limit) =>
      sql<TaskRow & { readonly total: number }>`SELECT *, count(*) OVER ()::int AS total FROM ota_task
        WHERE project_id = ${projectId} AND ${isOngoing} AND kind = 'upgrade'
        ORDER BY task_id DESC LIMIT ${limit}`.pipe(
        Effect.map((rows) => ({ items: rows.map(upgradeTaskFromRow), total: rows[0]?.total ?? 0 })),
        Effect.mapError(storeError("OtaStore.underWay"))
      ),
    endTask: (taskId, to, cancelled, at) =>
      endTask(sql, taskId, to, cancelled, at).pipe(
        sql.withTransaction,
        Effect.mapBoth({ onFailure: storeError("OtaStore.endTask"), onSuccess: Option.isSome })
      ),
    removeTask: (taskId) =>
      Effect.gen(function*() {
        // Locked: a record of an ended task can only end.
        const [row] = yield* sql`SELECT task_id FROM ota_task WHERE task_id = ${taskId} AND ${isOngoing} FOR UPDATE`
        if (row !== undefined) return false
        const open = yield* sql`SELECT device_id FROM ota_record
          WHERE task_id = ${taskId} AND ${isUnfinished} LIMIT 1`
        if (open.length > 0) return false
        const removed = yield* sql`DELETE FROM ota_task WHERE task_id = ${taskId} RETURNING task_id`
        return removed.length > 0
      }).pipe(sql.withTransaction, Effect.mapError(storeError("OtaStore.removeTask"))),
    pruneTasks: ({ before, limit }) =>
      pruneWithParts(
        reads,
        { table: "ota_task", parts: "ota_record", id: "task_id" },
        sql`ota_task.kind = 'upgrade' AND ota_task.created_at < ${instant(before)}
          AND ota_task.updated_at < ${instant(before)} AND NOT ota_task.${isOngoing} AND NOT EXISTS (
            SELECT FROM ota_record WHERE ota_record.task_id = ota_task.task_id AND ota_record.${isUnfinished}
          )`,
        limit
      ).pipe(Effect.mapError(storeError("OtaStore.pruneTasks"))),
    confirmTask: (taskId, firstDue) =>
      Effect.gen(function*() {
        const [row] = yield* sql<TaskRow>`UPDATE ota_task SET is_app_confirmed = true, updated_at = ${instant(firstDue)}
          WHERE task_id = ${taskId} AND NOT is_app_confirmed RETURNING *`
        if (row === undefined) return false
        const confirmed = taskFromRow(row)
        if (confirmed.upgradePolicy === "push") {
          yield* sql`
            UPDATE ota_record SET revision = revision + 1, due_at = ${
            OtaRules.dueAt(sql, firstDue, confirmed, "pending.place")
          }
            FROM (
              SELECT device_id, row_number() OVER (ORDER BY ota_record.place) - 1 AS place FROM ota_record
              WHERE task_id = ${taskId} AND status = ${recordNumber.pending} AND NOT is_held AND NOT is_confirmed
            ) AS pending
            WHERE ota_record.task_id = ${taskId} AND ota_record.device_id = pending.device_id`
        }
        return true
      }).pipe(sql.withTransaction, Effect.mapError(storeError("OtaStore.confirmTask")))
  }
})
