/**
 * Verify and upgrade tasks: which devices get a firmware, and how far each has
 * come. See docs/api/firmware.md.
 */
import { Schema } from "effect"
import type { DeviceId, DeviceName, DeviceStatus } from "../../device/Device.ts"
import { DomainError } from "../../kernel/DomainError.ts"
import type { ProductKey } from "../../product/Product.ts"
import type { ProjectId } from "../../project/Project.ts"
import { Text } from "../../kernel/Text.ts"
import { expectedTimeZone, isTimeZone } from "../../kernel/TimeZone.ts"
import type { Firmware, VerificationStatus } from "../firmware/Firmware.ts"
import { type StartWindow, startWindow, StartWindowDraft } from "./StartWindow.ts"

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

const devices = Schema.Array(Text(128))
const seconds = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 31_536_000 }))

/** `https`: from the address of the firmware; `mqtt`: in blocks, over the device's own connection. */
export const DownloadProtocol = Schema.Literals(["https", "mqtt"])
export type DownloadProtocol = typeof DownloadProtocol.Type

/** How the devices of a task are upgraded. */
const conduct = {
  upgradeType: Schema.optional(Schema.Literal("static")),
  /** Whether the cloud tells the devices; otherwise they ask. Default false. */
  cloudPush: Schema.optional(Schema.Boolean),
  /** Seconds that a device may take once it has begun; 0: no limit. Default 0. */
  timeout: Schema.optional(seconds),
  /** Whether devices wait until a user confirms the upgrade. Default false. */
  needAppConfirm: Schema.optional(Schema.Boolean),
  /** How devices that the cloud tells download the firmware. Default `https`. */
  downloadProtocol: Schema.optional(DownloadProtocol)
}

/** Devices of a verify task at most. */
export const maxVerifyDevices = 10

/** What a user gives to create a verify task. */
export const VerifyTaskDraft = Schema.Struct({
  deviceIds: devices.check(Schema.makeFilter((ids) => {
    if (ids.length === 0 || ids.length > maxVerifyDevices) return `Expected 1 to ${maxVerifyDevices} devices`
    return new Set(ids).size === ids.length ? undefined : "Expected each device once"
  })),
  ...conduct
})
export interface VerifyTaskDraft extends Schema.Schema.Type<typeof VerifyTaskDraft> {}

/** Devices that an upgrade task names at most. */
export const maxNamedDevices = 50_000

/** Stages before the last one, which are all devices, at most. */
const maxStages = 10

/** What a user gives to create an upgrade task. */
export const UpgradeTaskDraft = Schema.Struct({
  scopeMode: ScopeMode,
  /** The devices of scope `targeted`. */
  deviceIds: Schema.optional(devices),
  /** In place of `deviceIds`: the devices of the product that are in this group now. */
  groupId: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }))),
  ...conduct,
  /**
   * Whether devices that report an older version later join the task, until it is
   * cancelled. Needs the scope `all`. Default false.
   */
  dynamic: Schema.optional(Schema.Boolean),
  /** Devices that the cloud tells in a minute at most. Default 1,000. */
  maximumPerMinute: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 }))),
  /** How often a device that failed tries again. Default 0. */
  retryCount: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10 }))),
  /** Seconds until it tries again. Default 600. */
  retryInterval: Schema.optional(seconds),
  /** The share of failed devices, in percent, at which the task is cancelled. Default: it is not. */
  abortThresholdPercent: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 }))),
  /** Devices that must have succeeded or failed before that. Default 1. */
  abortMinExecuted: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 }))),
  /**
   * The share of the devices that may have the firmware in each stage, in percent.
   * It rises; all devices are the last stage, which is not named. Default: there
   * is only that one.
   */
  stages: Schema.optional(
    Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 99 }))).check(
      Schema.isMaxLength(maxStages),
      Schema.makeFilter((stages) =>
        stages.every((percent, i) => i === 0 || stages[i - 1]! < percent) || "Expected percentages that rise"
      )
    )
  ),
  /**
   * The share of the devices of a stage that must have succeeded for the next one
   * to open by itself, in percent. Default: a user opens each stage.
   */
  stageSuccessPercent: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 }))),
  /** When devices may begin, by the clocks where they are. Default: at any time. */
  startWindow: Schema.optional(StartWindowDraft),
  /** The IANA time zone of the window for devices that have none of their own. Default `UTC`. */
  timeZone: Schema.optional(
    Text(64).check(Schema.makeFilter((name) => name === "" || isTimeZone(name) || expectedTimeZone))
  )
}).check(Schema.makeFilter(({ deviceIds = [], groupId, scopeMode, stages = [], stageSuccessPercent, dynamic }) => {
  if (stageSuccessPercent !== undefined && stages.length === 0) {
    return { path: ["stageSuccessPercent"], issue: "Expected stages that it is about" }
  }
  if (groupId !== undefined && (scopeMode === "all" || deviceIds.length > 0)) {
    return { path: ["groupId"], issue: "Expected the scope of named devices, and no other devices beside the group" }
  }
  if (scopeMode === "all") return undefined
  if (dynamic === true) return { path: ["dynamic"], issue: "Expected false, since the devices are named" }
  if (groupId !== undefined) return undefined
  const refuse = (issue: string) => ({ path: ["deviceIds"], issue })
  if (deviceIds.length === 0 || deviceIds.length > maxNamedDevices) {
    return refuse(`Expected 1 to ${maxNamedDevices} devices`)
  }
  return new Set(deviceIds).size === deviceIds.length ? undefined : refuse("Expected each device once")
}))
export interface UpgradeTaskDraft extends Schema.Schema.Type<typeof UpgradeTaskDraft> {}

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

const defaultPerMinute = 1000
const defaultRetryInterval = 600

/** The task that a draft describes. `at`: Unix milliseconds. */
export const newTask = (
  kind: TaskKind,
  firmware: Firmware,
  draft: Omit<UpgradeTaskDraft, "deviceIds">,
  at: number
): NewTask => ({
  kind,
  projectId: firmware.projectId,
  productKey: firmware.productKey,
  firmwareId: firmware.firmwareId,
  module: firmware.module,
  version: firmware.version,
  upgradeType: "static",
  upgradePolicy: draft.cloudPush === true ? "push" : "pull",
  scopeMode: draft.scopeMode,
  isDynamic: draft.dynamic ?? false,
  timeout: draft.timeout ?? 0,
  needAppConfirm: draft.needAppConfirm ?? false,
  isAppConfirmed: false,
  downloadProtocol: draft.downloadProtocol ?? "https",
  maximumPerMinute: draft.maximumPerMinute ?? defaultPerMinute,
  retryCount: draft.retryCount ?? 0,
  retryInterval: draft.retryInterval ?? defaultRetryInterval,
  abortThresholdPercent: draft.abortThresholdPercent ?? 0,
  abortMinExecuted: draft.abortMinExecuted ?? 1,
  stages: draft.stages ?? [],
  stage: 1,
  stageSuccessPercent: draft.stageSuccessPercent ?? 0,
  startWindow: draft.startWindow === undefined ? null : startWindow(draft.startWindow, draft.timeZone || "UTC"),
  createdAt: at,
  updatedAt: at
})

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
