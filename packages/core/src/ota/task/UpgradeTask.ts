/**
 * Verify and upgrade tasks: which devices get a firmware, and how far each has
 * come. See docs/api/firmware.md.
 */
import { Schema } from "effect"
import type { DeviceId, DeviceName, DeviceStatus } from "../../device/Device.ts"
import { DomainError } from "../../kernel/DomainError.ts"
import type { ProductKey } from "../../product/Product.ts"
import type { ProjectId } from "../../project/Project.ts"
import type { Firmware, VerificationStatus } from "../firmware/Firmware.ts"
import type { StartWindow } from "./StartWindow.ts"

/** A verify task tries a firmware on a few devices before the others get it. */
export type TaskKind = "verify" | "upgrade"

/**
 * The status of an upgrade task:
 *
 * - `pending`: no device has begun
 * - `in-progress`: some devices have begun, some have not ended
 * - `completed`: all devices have ended, at least one of them succeeded
 * - `failed`: all devices have ended, none of them succeeded; also: the task has no devices
 *   A dynamic task is never `completed` or `failed`: devices may join it.
 * - `cancelled`: a user or too many failures ended it; devices that had begun finish
 */
export type UpgradeTaskStatus = "pending" | "in-progress" | "completed" | "failed" | "cancelled"

/** The status of a device in a task. `succeeded`, `failed` and `cancelled` are final. */
export type RecordStatus = "pending" | "upgrading" | "succeeded" | "failed" | "cancelled"

/** The number of devices of a task in each status. */
export type RecordCounts = Readonly<Record<RecordStatus, number>>

/** `push`: the cloud tells the devices; `pull`: they ask. */
export type UpgradePolicy = "push" | "pull"

/** The devices of an upgrade task: `all` of the product, or the named ones and those of a group. */
export const ScopeMode = Schema.Literals(["all", "targeted"])
export type ScopeMode = typeof ScopeMode.Type

/** `https`: from the address of the firmware; `mqtt`: in blocks, over the device's own connection. */
export const DownloadProtocol = Schema.Literals(["https", "mqtt"])
export type DownloadProtocol = typeof DownloadProtocol.Type

/** What verify and upgrade tasks have in common. */
interface TaskFields {
  /** Positive; a newer task has a greater one. */
  readonly taskId: number
  readonly projectId: ProjectId
  readonly productKey: ProductKey
  readonly firmwareId: number
  /** Of the firmware. */
  readonly module: string
  /** The target: the version of the firmware. */
  readonly version: string
  readonly upgradeType: "static"
  readonly upgradePolicy: UpgradePolicy
  readonly scopeMode: ScopeMode
  /** Whether devices that report an older version later join the task. */
  readonly isDynamic: boolean
  /** Seconds; 0: no limit. */
  readonly timeout: number
  readonly needAppConfirm: boolean
  /** Whether a user has confirmed the whole task. */
  readonly isAppConfirmed: boolean
  readonly downloadProtocol: DownloadProtocol
  readonly maximumPerMinute: number
  readonly retryCount: number
  /** Seconds. */
  readonly retryInterval: number
  /** Percent; 0: failures do not cancel the task. */
  readonly abortThresholdPercent: number
  readonly abortMinExecuted: number
  /** The percentages of the stages before the last one, which is all devices. */
  readonly stages: ReadonlyArray<number>
  /** The stage that is open, from 1. */
  readonly stage: number
  /** Percent; 0: a user opens each stage. */
  readonly stageSuccessPercent: number
  /** When devices may begin; null: at any time. */
  readonly startWindow: StartWindow | null
  readonly counts: RecordCounts
  /** Unix milliseconds. */
  readonly createdAt: number
  /** Unix milliseconds. */
  readonly updatedAt: number
}

/** A user decides when it ends, whatever its devices do. */
export interface VerifyTask extends TaskFields {
  readonly kind: "verify"
  readonly status: VerificationStatus
}

/** It ends with its devices. */
export interface UpgradeTask extends TaskFields {
  readonly kind: "upgrade"
  readonly status: UpgradeTaskStatus
}

export type OtaTask = VerifyTask | UpgradeTask

/** A task that the store has not created yet. */
export interface NewTask extends Omit<TaskFields, "taskId" | "counts"> {
  readonly kind: TaskKind
}

/** A device in a task. */
export interface UpgradeRecord {
  readonly taskId: number
  readonly deviceId: DeviceId
  readonly deviceName: DeviceName
  readonly status: RecordStatus
  /** Percent, or -1: failed. */
  readonly step: number
  /** Whether a user has confirmed the upgrade of this device. */
  readonly isConfirmed: boolean
  /** Whether the device waits for a stage of its task that is not open yet. */
  readonly isHeld: boolean
  /** Attempts that have failed. */
  readonly failures: number
  /** What the device or the cloud said last. */
  readonly reason: string
  /** When the cloud must act on the record, Unix milliseconds; null: it need not. */
  readonly dueAt: number | null
  /** Unix milliseconds. */
  readonly updatedAt: number
  /** Grows with each change. */
  readonly revision: number
}

/** A record with what the API shows beside it. */
export interface RecordDetail {
  readonly record: UpgradeRecord
  readonly deviceStatus: DeviceStatus
  /** The version of the task's module that the device has reported; empty: none. */
  readonly currentVersion: string
}

/** Which records of a task. All given conditions must hold. */
export interface RecordFilter {
  readonly status?: RecordStatus | undefined
  /** Of devices that have failed: why. */
  readonly failure?: string | undefined
  /** Leaves out devices in this status. */
  readonly rejected?: DeviceStatus | undefined
}

/** A record with its task and firmware. */
export interface Assignment {
  /** The tag `time_zone` of the device, whatever it holds; empty: it has none, or the task has no window. */
  readonly timeZone: string
  readonly record: UpgradeRecord
  readonly task: OtaTask
  readonly firmware: Firmware
}

/** The project has no such task. */
export class TaskNotFound extends DomainError<TaskNotFound>()(
  "TaskNotFound",
  { taskId: Schema.Int },
  ({ taskId }) => `There is no task ${taskId} in this project`
) {}

/** The device is not in this task. */
export class RecordNotFound extends DomainError<RecordNotFound>()(
  "RecordNotFound",
  {
    taskId: Schema.Int,
    deviceId: Schema.String
  },
  ({ deviceId, taskId }) => `Device ${deviceId} is not in task ${taskId}`
) {}

/** The device has a task for the same module that has not ended. */
export class DeviceIsUpgrading extends DomainError<DeviceIsUpgrading>()(
  "DeviceIsUpgrading",
  {
    deviceId: Schema.String
  },
  ({ deviceId }) => `Device ${deviceId} has an unfinished task for this module; cancel it first`
) {}

/** Some of the named devices do not exist or belong to another product. */
export class DevicesNotOfProduct extends DomainError<DevicesNotOfProduct>()(
  "DevicesNotOfProduct",
  {
    productKey: Schema.String,
    deviceIds: Schema.NonEmptyArray(Schema.String)
  },
  ({ deviceIds, productKey }) => `No devices of product ${productKey}: ${deviceIds.join(", ")}`
) {}

/** The state of the task, or of the device in it, does not allow the operation. */
export class TaskState extends DomainError<TaskState>()(
  "TaskState",
  {
    taskId: Schema.Int,
    /** A sentence. */
    reason: Schema.String
  },
  ({ reason, taskId }) => `Task ${taskId}: ${reason}`
) {}
