/**
 * Firmware, tasks and their records as rows of SQLite, and how they are written:
 * what the core says of a status stands beside it, so that indexes can follow it.
 */
import {
  type DeviceId,
  type DeviceName,
  type Firmware,
  isOngoing,
  isUpgradeFinal,
  type OtaTask,
  type ProductKey,
  progressResolution,
  type ProjectId,
  type SigningAlgorithm,
  type StartWindow,
  type UpgradeRecord,
  type UpgradeTask,
  type VerifyTask
} from "@device-cloud/core"
import type { Statements } from "./Sqlite.ts"

export interface FirmwareRow {
  readonly firmware_id: number
  readonly project_id: string
  readonly product_key: string
  readonly name: string
  readonly version: string
  readonly oss_path: string
  readonly hash: string
  readonly sha256: string
  readonly signature: string | null
  readonly signing_key_id: string | null
  readonly signing_algorithm: SigningAlgorithm | null
  readonly size: number
  readonly remark: string
  readonly module: string
  readonly status: Firmware["status"]
  readonly created_at: number
  readonly updated_at: number
}

export const firmwareFromRow = (row: FirmwareRow): Firmware => ({
  firmwareId: row.firmware_id,
  projectId: row.project_id as ProjectId,
  productKey: row.product_key as ProductKey,
  name: row.name,
  version: row.version,
  ossPath: row.oss_path,
  algorithms: "md5",
  hash: row.hash,
  sha256: row.sha256,
  signed: row.signature === null
    ? null
    : { signature: row.signature, keyId: row.signing_key_id!, algorithm: row.signing_algorithm! },
  size: row.size,
  remark: row.remark,
  module: row.module,
  status: row.status,
  createdAt: row.created_at,
  updatedAt: row.updated_at
})

export interface TaskRow {
  readonly task_id: number
  readonly kind: OtaTask["kind"]
  readonly project_id: string
  readonly product_key: string
  readonly firmware_id: number
  readonly module: string
  readonly version: string
  readonly status: OtaTask["status"]
  readonly upgrade_policy: OtaTask["upgradePolicy"]
  readonly scope_mode: OtaTask["scopeMode"]
  readonly is_dynamic: number
  readonly timeout: number
  readonly need_app_confirm: number
  readonly is_app_confirmed: number
  readonly download_protocol: OtaTask["downloadProtocol"]
  readonly maximum_per_minute: number
  readonly retry_count: number
  readonly retry_interval: number
  readonly abort_threshold_percent: number
  readonly abort_min_executed: number
  readonly stages: string
  readonly stage: number
  readonly stage_success_percent: number
  readonly start_window: string
  readonly pending: number
  readonly upgrading: number
  readonly succeeded: number
  readonly failed: number
  readonly cancelled: number
  readonly created_at: number
  readonly updated_at: number
}

const fieldsFromRow = (row: TaskRow) => ({
  taskId: row.task_id,
  projectId: row.project_id as ProjectId,
  productKey: row.product_key as ProductKey,
  firmwareId: row.firmware_id,
  module: row.module,
  version: row.version,
  upgradeType: "static" as const,
  upgradePolicy: row.upgrade_policy,
  scopeMode: row.scope_mode,
  isDynamic: row.is_dynamic === 1,
  timeout: row.timeout,
  needAppConfirm: row.need_app_confirm === 1,
  isAppConfirmed: row.is_app_confirmed === 1,
  downloadProtocol: row.download_protocol,
  maximumPerMinute: row.maximum_per_minute,
  retryCount: row.retry_count,
  retryInterval: row.retry_interval,
  abortThresholdPercent: row.abort_threshold_percent,
  abortMinExecuted: row.abort_min_executed,
  stages: JSON.parse(row.stages) as ReadonlyArray<number>,
  stage: row.stage,
  stageSuccessPercent: row.stage_success_percent,
  startWindow: JSON.parse(row.start_window) as StartWindow | null,
  counts: {
    pending: row.pending,
    upgrading: row.upgrading,
    succeeded: row.succeeded,
    failed: row.failed,
    cancelled: row.cancelled
  },
  createdAt: row.created_at,
  updatedAt: row.updated_at
})

/** The row is of an upgrade task. */
export const upgradeTaskFromRow = (row: TaskRow): UpgradeTask => ({
  ...fieldsFromRow(row),
  kind: "upgrade",
  status: row.status as UpgradeTask["status"]
})

/** The row is of a verify task. */
export const verifyTaskFromRow = (row: TaskRow): VerifyTask => ({
  ...fieldsFromRow(row),
  kind: "verify",
  status: row.status as VerifyTask["status"]
})

export const taskFromRow = (row: TaskRow): OtaTask =>
  row.kind === "verify" ? verifyTaskFromRow(row) : upgradeTaskFromRow(row)

export const findTask = (sql: Statements, taskId: number): OtaTask | undefined => {
  const row = sql.get<TaskRow>("SELECT * FROM ota_task WHERE task_id = ?", [taskId])
  return row === undefined ? undefined : taskFromRow(row)
}

/** Stores what changes of a task, and remembers its counts. */
export const updateTask = (sql: Statements, task: OtaTask): void => {
  const { cancelled, failed, pending, succeeded, upgrading } = task.counts
  sql.run(
    `INSERT OR REPLACE INTO ota_progress (task_id, tick, pending, upgrading, succeeded, failed, cancelled)
      VALUES (?1, max(?2, coalesce((SELECT max(tick) FROM ota_progress WHERE task_id = ?1), 0)), ?3, ?4, ?5, ?6, ?7)`,
    [task.taskId, Math.floor(task.updatedAt / progressResolution), pending, upgrading, succeeded, failed, cancelled]
  )
  sql.run(
    `UPDATE ota_task SET status = ?, is_ongoing = ?, is_app_confirmed = ?, stage = ?, pending = ?, upgrading = ?,
        succeeded = ?, failed = ?, cancelled = ?, updated_at = ?
      WHERE task_id = ?`,
    [
      task.status,
      isOngoing(task),
      task.isAppConfirmed,
      task.stage,
      pending,
      upgrading,
      succeeded,
      failed,
      cancelled,
      task.updatedAt,
      task.taskId
    ]
  )
}

export interface RecordRow {
  readonly task_id: number
  readonly device_id: string
  readonly device_name: string
  readonly status: UpgradeRecord["status"]
  readonly step: number
  readonly is_confirmed: number
  readonly is_held: number
  readonly failures: number
  readonly reason: string
  readonly due_at: number | null
  readonly updated_at: number
  readonly revision: number
}

export const recordFromRow = (row: RecordRow): UpgradeRecord => ({
  taskId: row.task_id,
  deviceId: row.device_id as DeviceId,
  deviceName: row.device_name as DeviceName,
  status: row.status,
  step: row.step,
  isConfirmed: row.is_confirmed === 1,
  isHeld: row.is_held === 1,
  failures: row.failures,
  reason: row.reason,
  dueAt: row.due_at,
  updatedAt: row.updated_at,
  revision: row.revision
})

/** Adds a pending record of a device to the task, at this place. */
export const insertRecord = (
  sql: Statements,
  { module, taskId }: Pick<OtaTask, "module" | "taskId">,
  place: number,
  { device_id, device_name }: Pick<RecordRow, "device_id" | "device_name">,
  { dueAt, isHeld, updatedAt }: Pick<UpgradeRecord, "isHeld" | "dueAt" | "updatedAt">
): void => {
  sql.run(
    `INSERT INTO ota_record (task_id, place, device_id, device_name, module, is_held, due_at, updated_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    [taskId, place, device_id, device_name, module, isHeld, dueAt, updatedAt]
  )
}

/** Stores what changes of a record. */
export const updateRecord = (sql: Statements, record: UpgradeRecord): void => {
  sql.run(
    `UPDATE ota_record SET status = ?, is_open = ?, step = ?, is_confirmed = ?, is_held = ?, failures = ?, reason = ?,
        due_at = ?, updated_at = ?, revision = ?
      WHERE task_id = ? AND device_id = ?`,
    [
      record.status,
      !isUpgradeFinal(record.status),
      record.step,
      record.isConfirmed,
      record.isHeld,
      record.failures,
      record.reason,
      record.dueAt,
      record.updatedAt,
      record.revision,
      record.taskId,
      record.deviceId
    ]
  )
}
