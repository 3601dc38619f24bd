/**
 * The part of `OtaStore` that opens the stages of tasks, and adds devices that
 * come later.
 */
import {
  deviceCount,
  holdsNewcomers,
  isOngoing,
  isPushed,
  isStagePassed,
  type OtaStore,
  type OtaTask,
  rolloutDelay,
  stageSize,
  withCounts
} from "@device-cloud/core"
import { Option } from "effect"
import {
  findTask,
  insertRecord,
  recordFromRow,
  type RecordRow,
  taskFromRow,
  type TaskRow,
  updateRecord,
  updateTask
} from "./OtaRow.ts"
import type { Sqlite, Statements } from "./Sqlite.ts"

/** When the cloud tells the device at `place` of a roll-out that begins at `firstDue`, Unix milliseconds. */
export const dueAt = (
  { maximumPerMinute, taskId }: Pick<OtaTask, "maximumPerMinute" | "taskId">,
  firstDue: number,
  place: number
): number => firstDue + Math.floor(rolloutDelay(taskId, place, maximumPerMinute))

/** Opens a stage, within a transaction. */
const openStage = (sql: Statements, taskId: number, stage: number, firstDue: number): OtaTask | undefined => {
  const before = findTask(sql, taskId)
  if (before?.kind !== "upgrade" || !isOngoing(before) || before.stage !== stage - 1) return undefined
  const task: OtaTask = { ...before, stage, updatedAt: firstDue }
  updateTask(sql, task)
  const held = sql.all<RecordRow>(
    `SELECT * FROM ota_record
      WHERE task_id = ? AND place < ? AND is_open = 1 AND is_held = 1 AND status = 'pending' ORDER BY place`,
    [taskId, stageSize(task, stage)]
  )
  for (const [place, row] of held.entries()) {
    const record = recordFromRow({ ...row, is_held: 0, revision: row.revision + 1 })
    updateRecord(sql, isPushed(task, record) ? { ...record, dueAt: dueAt(task, firstDue, place) } : record)
  }
  return task
}

const hasPassed = (sql: Statements, task: OtaTask): boolean => {
  if (!isStagePassed(task)) return false
  const [open] = sql.all<{ readonly devices: number; readonly succeeded: number }>(
    `SELECT count(*) AS devices, count(*) FILTER (WHERE status = 'succeeded') AS succeeded FROM ota_record
      WHERE task_id = ? AND place < ? AND is_held = 0`,
    [task.taskId, stageSize(task, task.stage)]
  )
  return isStagePassed(task, open)
}

/** Opens the stages of the task that open by themselves, within a transaction. Returns the task afterwards. */
export const openPassed = (sql: Statements, changed: OtaTask): OtaTask => {
  let task = changed
  while (hasPassed(sql, task)) {
    const opened = openStage(sql, task.taskId, task.stage + 1, task.updatedAt)
    if (opened === undefined) return task
    task = opened
  }
  return task
}

export const make = (sql: Sqlite["Service"]): Pick<OtaStore["Service"], "openStage" | "dynamicTasks" | "join"> => {
  const join = (taskId: number, joining: Parameters<OtaStore["Service"]["join"]>[1], at: number) => {
    const task = findTask(sql, taskId)
    if (task === undefined || !isOngoing(task)) return
    const held = { isConfirmed: false, isHeld: holdsNewcomers(task) }
    const dueAt = isPushed(task, held) ? at : null
    const newcomers = sql.all<Pick<RecordRow, "device_id" | "device_name">>(
      `SELECT device_id, device_name FROM device WHERE device_id IN (SELECT value FROM json_each(?)) AND NOT EXISTS (
          SELECT 1 FROM ota_record AS other WHERE other.device_id = device.device_id
            AND (other.task_id = ? OR other.module = ? AND other.is_open = 1)
        ) ORDER BY id`,
      [JSON.stringify(joining.map(({ deviceId }) => deviceId)), taskId, task.module]
    )
    if (newcomers.length === 0) return
    const first = deviceCount(task.counts)
    for (const [i, device] of newcomers.entries()) {
      insertRecord(sql, task, first + i, device, { isHeld: held.isHeld, dueAt, updatedAt: at })
    }
    const counts = { ...task.counts, pending: task.counts.pending + newcomers.length }
    updateTask(sql, { ...withCounts(task, counts), updatedAt: at })
  }

  return {
    openStage: (taskId, stage, firstDue) =>
      sql.write("OtaStore.openStage", () => Option.fromUndefinedOr(openStage(sql, taskId, stage, firstDue))),
    dynamicTasks: (productKeys) =>
      sql.read("OtaStore.dynamicTasks", () =>
        sql.all<TaskRow>(
          `SELECT * FROM ota_task WHERE product_key IN (SELECT value FROM json_each(?)) AND is_dynamic = 1
            AND is_ongoing = 1 ORDER BY task_id`,
          [JSON.stringify(productKeys)]
        ).map(taskFromRow)),
    join: (taskId, joining, at) => sql.write("OtaStore.join", () => join(taskId, joining, at))
  }
}
