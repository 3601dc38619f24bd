/**
 * The part of `OtaStore` that creates, reads and ends tasks.
 */
import {
  advanceUpgrade,
  type DeviceId,
  isOngoing,
  isPushed,
  type NewTask,
  type OtaStore,
  type OtaTask,
  type RecordCounts,
  stageSize,
  type TaskCreated,
  type TaskScope,
  verifiable,
  withCounts
} from "@device-cloud/core"
import { Option } from "effect"
import { matches } from "./DeviceFilter.ts"
import {
  findTask,
  type FirmwareRow,
  insertRecord,
  recordFromRow,
  type RecordRow,
  taskFromRow,
  type TaskRow,
  updateRecord,
  updateTask,
  upgradeTaskFromRow,
  verifyTaskFromRow
} from "./OtaRow.ts"
import { dueAt } from "./OtaStages.ts"
import { pageOf } from "./Paging.ts"
import { pruneWithParts } from "./Pruning.ts"
import type { Sqlite, Statements } from "./Sqlite.ts"
import { unknownDevices } from "./UnknownDevices.ts"

const setFirmwareStatus = (sql: Statements, firmwareId: number, status: FirmwareRow["status"], at: number) =>
  sql.run("UPDATE firmware SET status = ?, updated_at = ? WHERE firmware_id = ?", [status, at, firmwareId])

/** Ends a task, within a transaction. Returns it afterwards; undefined: it has not been ended. */
export const endTask = (
  sql: Statements,
  taskId: number,
  to: "passed" | "failed" | "cancelled",
  cancelled: ReadonlyArray<"pending" | "upgrading">,
  at: number
): OtaTask | undefined => {
  const task = findTask(sql, taskId)
  if (task === undefined || !isOngoing(task)) return undefined
  if (task.kind === "upgrade" && to !== "cancelled") return undefined
  if (task.kind === "verify") setFirmwareStatus(sql, task.firmwareId, to, at)
  const counts: Record<keyof RecordCounts, number> = { ...task.counts }
  const rows = sql.all<RecordRow>(
    `SELECT * FROM ota_record WHERE task_id = ? AND is_open = 1 AND status IN (SELECT value FROM json_each(?))`,
    [taskId, JSON.stringify(cancelled)]
  )
  for (const record of rows.map(recordFromRow)) {
    const after = advanceUpgrade(record, task, { _tag: "Cancelled", at, whole: false })
    updateRecord(sql, after)
    counts[record.status]--
    counts[after.status]++
  }
  const ended = { ...task, status: to, counts, updatedAt: at } as OtaTask
  updateTask(sql, ended)
  return ended
}

export const make = (
  sql: Sqlite["Service"]
): Pick<
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
> => {
  const busy = (deviceIds: ReadonlyArray<DeviceId>, module: string): DeviceId | undefined =>
    deviceIds.find((deviceId) =>
      sql.get("SELECT 1 FROM ota_record WHERE device_id = ? AND module = ? AND is_open = 1", [deviceId, module]) !==
        undefined
    )

  const insertTask = (task: NewTask): OtaTask => {
    const status = task.kind === "verify" ? "verifying" : "pending"
    const row = sql.get<TaskRow>(
      `INSERT INTO ota_task (kind, project_id, product_key, firmware_id, module, version, status, is_ongoing,
          upgrade_policy, scope_mode, is_dynamic, timeout, need_app_confirm, is_app_confirmed, download_protocol,
          maximum_per_minute, retry_count, retry_interval, abort_threshold_percent, abort_min_executed, stages, stage,
          stage_success_percent, start_window, created_at, updated_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING *`,
      [
        task.kind,
        task.projectId,
        task.productKey,
        task.firmwareId,
        task.module,
        task.version,
        status,
        isOngoing({ status }),
        task.upgradePolicy,
        task.scopeMode,
        task.isDynamic,
        task.timeout,
        task.needAppConfirm,
        task.isAppConfirmed,
        task.downloadProtocol,
        task.maximumPerMinute,
        task.retryCount,
        task.retryInterval,
        task.abortThresholdPercent,
        task.abortMinExecuted,
        JSON.stringify(task.stages),
        task.stage,
        task.stageSuccessPercent,
        JSON.stringify(task.startWindow),
        task.createdAt,
        task.updatedAt
      ]
    )
    return taskFromRow(row!)
  }

  /** The devices of a new task that do not run the version yet, the oldest first. */
  const candidates = ({ module, productKey, projectId, version }: NewTask, scope: TaskScope) => {
    const { values, where } = scope._tag === "Named"
      ? { where: "device_id IN (SELECT value FROM json_each(?))", values: [JSON.stringify(scope.deviceIds)] }
      : matches(projectId, scope.filter ?? {})
    return sql.all<Pick<RecordRow, "device_id" | "device_name">>(
      `SELECT device_id, device_name FROM device WHERE ${where} AND product_key = ?
          AND NOT EXISTS (
            SELECT 1 FROM device_module AS known
            WHERE known.device_id = device.device_id AND known.module = ? AND known.version = ?
          ) AND NOT EXISTS (
            SELECT 1 FROM ota_record AS other
            WHERE other.device_id = device.device_id AND other.module = ? AND other.is_open = 1
          )
        ORDER BY id`,
      [...values, productKey, module, version, module]
    )
  }

  const createTask = (draft: NewTask, scope: TaskScope, firstDue: number): TaskCreated => {
    if (scope._tag === "Named") {
      const unknown = unknownDevices(sql, draft, scope.deviceIds)
      if (unknown.length > 0) return { _tag: "Unknown", deviceIds: unknown }
      const taken = busy(scope.deviceIds, draft.module)
      if (taken !== undefined) return { _tag: "Busy", deviceId: taken }
    }
    const firmware = sql.get<FirmwareRow>("SELECT * FROM firmware WHERE firmware_id = ?", [draft.firmwareId])
    if (firmware === undefined) return { _tag: "NoFirmware" }
    if (draft.kind === "verify") {
      if (!verifiable.includes(firmware.status)) return { _tag: "NotVerifiable" }
      setFirmwareStatus(sql, draft.firmwareId, "verifying", draft.createdAt)
    }
    const chosen = candidates(draft, scope)
    const inserted = insertTask(draft)
    const task = withCounts(inserted, { ...inserted.counts, pending: chosen.length })
    updateTask(sql, task)
    const open = stageSize(task, task.stage)
    for (const [place, device] of chosen.entries()) {
      const held = { isConfirmed: false, isHeld: place >= open }
      insertRecord(sql, task, place, device, {
        isHeld: held.isHeld,
        dueAt: isPushed(task, held) ? dueAt(task, firstDue, place) : null,
        updatedAt: task.createdAt
      })
    }
    return { _tag: "Created", task, deviceIds: chosen.map(({ device_id }) => device_id as DeviceId) }
  }

  const confirmTask = (taskId: number, firstDue: number): boolean => {
    const before = findTask(sql, taskId)
    if (before === undefined || before.isAppConfirmed) return false
    const task: OtaTask = { ...before, isAppConfirmed: true, updatedAt: firstDue }
    updateTask(sql, task)
    if (task.upgradePolicy !== "push") return true
    const pending = sql.all<RecordRow>(
      `SELECT * FROM ota_record
        WHERE task_id = ? AND is_open = 1 AND status = 'pending' AND is_held = 0 AND is_confirmed = 0 ORDER BY place`,
      [taskId]
    )
    for (const [place, record] of pending.map(recordFromRow).entries()) {
      updateRecord(sql, { ...record, dueAt: dueAt(task, firstDue, place), revision: record.revision + 1 })
    }
    return true
  }

  return {
    createTask: (draft, scope, firstDue) => sql.write("OtaStore.createTask", () => createTask(draft, scope, firstDue)),
    task: (projectId, taskId) =>
      sql.read(
        "OtaStore.task",
        () => Option.filter(Option.fromUndefinedOr(findTask(sql, taskId)), (task) => task.projectId === projectId)
      ),
    verifyTask: (firmwareId) =>
      sql.read("OtaStore.verifyTask", () => {
        const row = sql.get<TaskRow>(
          "SELECT * FROM ota_task WHERE firmware_id = ? AND kind = 'verify' ORDER BY task_id DESC LIMIT 1",
          [firmwareId]
        )
        return Option.map(Option.fromUndefinedOr(row), verifyTaskFromRow)
      }),
    listTasks: (projectId, { firmwareId, status, taskId }, page) =>
      sql.read("OtaStore.listTasks", () => {
        const { items, total } = pageOf<TaskRow>(sql, {
          table: "ota_task",
          where: `project_id = ? AND firmware_id = ? AND kind = 'upgrade' ${
            status === undefined ? "" : "AND status = ?"
          } ${taskId === undefined ? "" : "AND task_id = ?"}`,
          values: [
            projectId,
            firmwareId,
            ...status === undefined ? [] : [status],
            ...taskId === undefined ? [] : [taskId]
          ],
          order: "created_at DESC, task_id DESC",
          page
        })
        return { items: items.map(upgradeTaskFromRow), total }
      }),
    underWay: (projectId, limit) =>
      sql.read("OtaStore.underWay", () => {
        const rows = sql.all<TaskRow & { readonly total: number }>(
          `SELECT *, count(*) OVER () AS total FROM ota_task
            WHERE project_id = ? AND is_ongoing = 1 AND kind = 'upgrade' ORDER BY task_id DESC LIMIT ?`,
          [projectId, limit]
        )
        return { items: rows.map(upgradeTaskFromRow), total: rows[0]?.total ?? 0 }
      }),
    endTask: (taskId, to, cancelled, at) =>
      sql.write("OtaStore.endTask", () => endTask(sql, taskId, to, cancelled, at) !== undefined),
    removeTask: (taskId) =>
      sql.write("OtaStore.removeTask", () => {
        const task = findTask(sql, taskId)
        if (task === undefined || isOngoing(task)) return false
        const open = sql.get("SELECT 1 FROM ota_record WHERE task_id = ? AND is_open = 1 LIMIT 1", [taskId])
        if (open !== undefined) return false
        sql.run("DELETE FROM ota_task WHERE task_id = ?", [taskId])
        return true
      }),
    pruneTasks: ({ before, limit }) =>
      pruneWithParts(sql, "OtaStore.pruneTasks", {
        table: "ota_task",
        parts: "ota_record",
        id: "task_id",
        where: `kind = 'upgrade' AND created_at < ?1 AND updated_at < ?1 AND is_ongoing = 0 AND NOT EXISTS (
          SELECT 1 FROM ota_record WHERE ota_record.task_id = ota_task.task_id AND is_open = 1
        )`,
        values: [before]
      }, limit),
    confirmTask: (taskId, firstDue) => sql.write("OtaStore.confirmTask", () => confirmTask(taskId, firstDue))
  }
}
