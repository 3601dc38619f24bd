/**
 * The rows in which firmware and upgrade tasks come from PostgreSQL, and the
 * numbers that they keep for the names of the domain.
 */
import type {
  DeviceId,
  DeviceName,
  DownloadProtocol,
  Firmware,
  FirmwareStatus,
  OtaTask,
  ProductKey,
  ProjectId,
  RecordStatus,
  ScopeMode,
  SigningAlgorithm,
  StartWindow,
  TaskKind,
  UpgradePolicy,
  UpgradeRecord,
  UpgradeTask,
  UpgradeTaskStatus,
  VerificationStatus,
  VerifyTask
} from "@device-cloud/core"

/** Of firmware and of verify tasks. */
export const verificationNumber: Readonly<Record<FirmwareStatus, number>> = {
  unverified: 0,
  verifying: 1,
  passed: 2,
  failed: 3,
  cancelled: 4
}

/** Of upgrade tasks. */
export const upgradeTaskNumber: Readonly<Record<UpgradeTaskStatus, number>> = {
  pending: 0,
  "in-progress": 1,
  completed: 2,
  failed: 3,
  cancelled: 4
}

/** Of a task of either kind. */
export const taskNumber = (task: Pick<VerifyTask, "kind" | "status"> | Pick<UpgradeTask, "kind" | "status">): number =>
  task.kind === "verify" ? verificationNumber[task.status] : upgradeTaskNumber[task.status]

export const recordNumber: Readonly<Record<RecordStatus, number>> = {
  pending: 1,
  upgrading: 2,
  succeeded: 3,
  failed: 4,
  cancelled: 5
}

export const policyNumber: Readonly<Record<UpgradePolicy, number>> = { pull: 0, push: 1 }

export const scopeNumber: Readonly<Record<ScopeMode, number>> = { all: 0, targeted: 1 }

/** From a number back to its name. */
const nameOf = <Name extends string>(numbers: Readonly<Record<Name, number>>): (number: number) => Name => {
  const names = new Map((Object.entries(numbers) as Array<[Name, number]>).map(([name, number]) => [number, name]))
  return (number) => names.get(number)!
}

const verificationOf = nameOf(verificationNumber)
const upgradeTaskStatusOf = nameOf(upgradeTaskNumber)
const recordStatusOf = nameOf(recordNumber)
const policyOf = nameOf(policyNumber)
const scopeOf = nameOf(scopeNumber)

export interface FirmwareRow {
  readonly firmware_id: bigint
  readonly project_id: string
  readonly product_key: string
  readonly name: string
  readonly version: string
  readonly oss_path: string
  readonly hash: string
  readonly sha256: string
  readonly signature: string
  readonly signing_key_id: string
  readonly signing_algorithm: string
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
  algorithms: "md5",
  hash: row.hash,
  sha256: row.sha256,
  signed: row.signature === "" ? null : {
    signature: row.signature,
    keyId: row.signing_key_id,
    algorithm: row.signing_algorithm as SigningAlgorithm
  },
  size: row.size,
  remark: row.remark,
  module: row.module,
  status: verificationOf(row.status),
  createdAt: row.created_at.getTime(),
  updatedAt: row.updated_at.getTime()
})

export interface TaskRow {
  readonly task_id: bigint
  readonly kind: TaskKind
  readonly project_id: string
  readonly product_key: string
  readonly firmware_id: bigint
  readonly module: string
  readonly version: string
  readonly status: number
  readonly upgrade_policy: number
  readonly scope_mode: number
  readonly is_dynamic: boolean
  readonly timeout: number
  readonly need_app_confirm: boolean
  readonly is_app_confirmed: boolean
  readonly download_protocol: string
  readonly maximum_per_minute: number
  readonly retry_count: number
  readonly retry_interval: number
  readonly abort_threshold_percent: number
  readonly abort_min_executed: number
  readonly stages: ReadonlyArray<number>
  readonly stage: number
  readonly stage_success_percent: number
  readonly start_window: StartWindow | null
  readonly pending: number
  readonly upgrading: number
  readonly succeeded: number
  readonly failed: number
  readonly cancelled: number
  readonly created_at: Date
  readonly updated_at: Date
}

const taskFieldsFromRow = (row: TaskRow) => ({
  taskId: Number(row.task_id),
  projectId: row.project_id as ProjectId,
  productKey: row.product_key as ProductKey,
  firmwareId: Number(row.firmware_id),
  module: row.module,
  version: row.version,
  upgradeType: "static" as const,
  upgradePolicy: policyOf(row.upgrade_policy),
  scopeMode: scopeOf(row.scope_mode),
  isDynamic: row.is_dynamic,
  timeout: row.timeout,
  needAppConfirm: row.need_app_confirm,
  isAppConfirmed: row.is_app_confirmed,
  downloadProtocol: row.download_protocol as DownloadProtocol,
  maximumPerMinute: row.maximum_per_minute,
  retryCount: row.retry_count,
  retryInterval: row.retry_interval,
  abortThresholdPercent: row.abort_threshold_percent,
  abortMinExecuted: row.abort_min_executed,
  stages: row.stages,
  stage: row.stage,
  stageSuccessPercent: row.stage_success_percent,
  startWindow: row.start_window,
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

/** The row is of an upgrade task. */
export const upgradeTaskFromRow = (row: TaskRow): UpgradeTask => ({
  ...taskFieldsFromRow(row),
  kind: "upgrade",
  status: upgradeTaskStatusOf(row.status)
})

/** The row is of a verify task. */
export const verifyTaskFromRow = (row: TaskRow): VerifyTask => ({
  ...taskFieldsFromRow(row),
  kind: "verify",
  // A task is made when its verification starts.
  status: verificationOf(row.status) as VerificationStatus
})

export const taskFromRow = (row: TaskRow): OtaTask =>
  row.kind === "verify" ? verifyTaskFromRow(row) : upgradeTaskFromRow(row)

export interface RecordRow {
  readonly task_id: bigint
  readonly device_id: string
  readonly device_name: string
  readonly status: number
  readonly step: number
  readonly is_confirmed: boolean
  readonly is_held: boolean
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
  status: recordStatusOf(row.status),
  step: row.step,
  isConfirmed: row.is_confirmed,
  isHeld: row.is_held,
  failures: row.failures,
  reason: row.reason,
  dueAt: row.due_at?.getTime() ?? null,
  updatedAt: row.updated_at.getTime(),
  revision: Number(row.revision)
})
