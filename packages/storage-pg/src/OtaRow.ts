/**
 * The rows in which firmware and upgrade tasks come from PostgreSQL.
 */
import type {
  DeviceId,
  DeviceName,
  DownloadProtocol,
  Firmware,
  FirmwareStatus,
  ProductKey,
  ProjectId,
  RecordStatus,
  TaskKind,
  TaskStatus,
  UpgradeRecord,
  UpgradeTask
} from "@device-cloud/core"

export interface FirmwareRow {
  readonly firmware_id: bigint
  readonly project_id: string
  readonly product_key: string
  readonly name: string
  readonly version: string
  readonly oss_path: string
  readonly hash: string
  readonly size: number
  readonly remark: string
  readonly module: string
  readonly status: number
  readonly created_at: Date
  readonly updated_at: Date
}

export const firmwareFromRow = (row: FirmwareRow): Firmware => ({
  firmwareId: Number(row.firmware_id),
  projectId: row.project_id as ProjectId,
  productKey: row.product_key as ProductKey,
  name: row.name,
  version: row.version,
  ossPath: row.oss_path,
  algorithms: 1,
  hash: row.hash,
  size: row.size,
  remark: row.remark,
  module: row.module,
  status: row.status as FirmwareStatus,
  createdAt: row.created_at.getTime(),
  updatedAt: row.updated_at.getTime()
})

export interface TaskRow {
  readonly task_id: bigint
  readonly kind: string
  readonly project_id: string
  readonly product_key: string
  readonly firmware_id: bigint
  readonly module: string
  readonly version: string
  readonly status: number
  readonly upgrade_policy: number
  readonly scope_mode: number
  readonly timeout: number
  readonly need_app_confirm: boolean
  readonly is_app_confirmed: boolean
  readonly download_protocol: string
  readonly maximum_per_minute: number
  readonly retry_count: number
  readonly retry_interval: number
  readonly abort_threshold_percent: number
  readonly abort_min_executed: number
  readonly pending: number
  readonly upgrading: number
  readonly succeeded: number
  readonly failed: number
  readonly cancelled: number
  readonly created_at: Date
  readonly updated_at: Date
}

export const taskFromRow = (row: TaskRow): UpgradeTask => ({
  taskId: Number(row.task_id),
  kind: row.kind as TaskKind,
  projectId: row.project_id as ProjectId,
  productKey: row.product_key as ProductKey,
  firmwareId: Number(row.firmware_id),
  module: row.module,
  version: row.version,
  status: row.status as TaskStatus,
  upgradeType: 1,
  upgradePolicy: row.upgrade_policy as 0 | 1,
  scopeMode: row.scope_mode as 0 | 1,
  timeout: row.timeout,
  needAppConfirm: row.need_app_confirm,
  isAppConfirmed: row.is_app_confirmed,
  downloadProtocol: row.download_protocol as DownloadProtocol,
  maximumPerMinute: row.maximum_per_minute,
  retryCount: row.retry_count,
  retryInterval: row.retry_interval,
  abortThresholdPercent: row.abort_threshold_percent,
  abortMinExecuted: row.abort_min_executed,
  counts: {
    pending: row.pending,
    upgrading: row.upgrading,
    succeeded: row.succeeded,
    failed: row.failed,
    cancelled: row.cancelled
  },
  createdAt: row.created_at.getTime(),
  updatedAt: row.updated_at.getTime()
})

export interface RecordRow {
  readonly task_id: bigint
  readonly device_id: string
  readonly device_name: string
  readonly status: number
  readonly step: number
  readonly is_confirmed: boolean
  readonly failures: number
  readonly reason: string
  readonly due_at: Date | null
  readonly updated_at: Date
  readonly revision: bigint
}

export const recordFromRow = (row: RecordRow): UpgradeRecord => ({
  taskId: Number(row.task_id),
  deviceId: row.device_id as DeviceId,
  deviceName: row.device_name as DeviceName,
  status: row.status as RecordStatus,
  step: row.step,
  isConfirmed: row.is_confirmed,
  failures: row.failures,
  reason: row.reason,
  dueAt: row.due_at?.getTime() ?? null,
  updatedAt: row.updated_at.getTime(),
  revision: Number(row.revision)
})
