/**
 * Upgrade and verify tasks: which devices get a firmware, and how far each has
 * come (specification, Firmware upgrade task, Device task record).
 */
import { Schema } from "effect"
import type { DeviceId, DeviceName, DeviceStatus } from "../../device/Device.ts"
import type { ProductKey } from "../../product/Product.ts"
import type { ProjectId } from "../../project/Project.ts"
import { Text } from "../../kernel/Text.ts"
import type { Firmware } from "../firmware/Firmware.ts"

/** A verify task tries a firmware on a few devices before the others get it. */
export type TaskKind = "verify" | "upgrade"

/**
 * Of an upgrade task: 0 pending, 1 in progress, 2 completed, 3 failed, 4
 * cancelled. Of a verify task: 1 verifying, 2 passed, 3 failed, 4 cancelled.
 */
export type TaskStatus = 0 | 1 | 2 | 3 | 4

/** Of a device in a task: 1 pending, 2 upgrading, 3 succeeded, 4 failed, 5 cancelled. The last three are final. */
export type RecordStatus = 1 | 2 | 3 | 4 | 5

/** Devices of a task by their status. */
export interface RecordCounts {
  readonly pending: number
  readonly upgrading: number
  readonly succeeded: number
  readonly failed: number
  readonly cancelled: number
}

const devices = Schema.Array(Text(128))
const seconds = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 31_536_000 }))

/** `https`: from the address of the firmware; `mqtt`: in blocks, over the connection of the device. */
export const DownloadProtocol = Schema.Literals(["https", "mqtt"])
export type DownloadProtocol = typeof DownloadProtocol.Type

/** What the maker of a task decides about how devices are upgraded. */
const conduct = {
  /** 1: static, the devices are fixed when the task is made. */
  upgradeType: Schema.optional(Schema.Literals([1])),
  /** Whether the cloud tells the devices; otherwise they ask. Default false. */
  cloudPush: Schema.optional(Schema.Boolean),
  /** Seconds that a device may take once it has begun; 0: any time. */
  timeout: Schema.optional(seconds),
  /** Whether nothing happens until it is confirmed. */
  needAppConfirm: Schema.optional(Schema.Boolean),
  /** How the devices that the cloud tells are to fetch the firmware. Default `https`. */
  downloadProtocol: Schema.optional(DownloadProtocol)
}

/** Devices of a verify task. */
export const maxVerifyDevices = 10

export const VerifyTaskDraft = Schema.Struct({
  deviceIds: devices.check(Schema.makeFilter((ids) => {
    if (ids.length === 0 || ids.length > maxVerifyDevices) return `Expected 1 to ${maxVerifyDevices} devices`
    return new Set(ids).size === ids.length ? undefined : "Expected each device once"
  })),
  ...conduct
})
export interface VerifyTaskDraft extends Schema.Schema.Type<typeof VerifyTaskDraft> {}

/** Devices that are named in one task. */
export const maxNamedDevices = 50_000

export const UpgradeTaskDraft = Schema.Struct({
  /** 0: all devices of the product, 1: those that are named. */
  scopeMode: Schema.Literals([0, 1]),
  deviceIds: Schema.optional(devices),
  ...conduct,
  /** Devices that are told in a minute at most. Default 1,000. */
  maximumPerMinute: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 }))),
  /** How often a device that failed tries again. Default 0. */
  retryCount: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10 }))),
  /** Seconds until it tries again. Default 600. */
  retryInterval: Schema.optional(seconds),
  /** The task is cancelled when so many in a hundred have failed. */
  abortThresholdPercent: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 }))),
  /** Of at least so many that have ended. Default 1. */
  abortMinExecuted: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 })))
}).check(Schema.makeFilter(({ deviceIds = [], scopeMode }) => {
  if (scopeMode === 0) return undefined
  const refuse = (issue: string) => ({ path: ["deviceIds"], issue })
  if (deviceIds.length === 0 || deviceIds.length > maxNamedDevices) {
    return refuse(`Expected 1 to ${maxNamedDevices} devices`)
  }
  return new Set(deviceIds).size === deviceIds.length ? undefined : refuse("Expected each device once")
}))
export interface UpgradeTaskDraft extends Schema.Schema.Type<typeof UpgradeTaskDraft> {}

export interface UpgradeTask {
  /** Positive; grows with each task. */
  readonly taskId: number
  readonly kind: TaskKind
  readonly projectId: ProjectId
  readonly productKey: ProductKey
  readonly firmwareId: number
  readonly module: string
  /** The target. */
  readonly version: string
  readonly status: TaskStatus
  readonly upgradeType: 1
  /** 1: the cloud tells the devices, 0: they ask. */
  readonly upgradePolicy: 0 | 1
  readonly scopeMode: 0 | 1
  /** Seconds; 0: any time. */
  readonly timeout: number
  readonly needAppConfirm: boolean
  readonly isAppConfirmed: boolean
  readonly downloadProtocol: DownloadProtocol
  readonly maximumPerMinute: number
  readonly retryCount: number
  /** Seconds. */
  readonly retryInterval: number
  /** 0: it is not cancelled for failures. */
  readonly abortThresholdPercent: number
  readonly abortMinExecuted: number
  readonly counts: RecordCounts
  /** Unix milliseconds. */
  readonly createdAt: number
  /** Unix milliseconds. */
  readonly updatedAt: number
}

export type NewTask = Omit<UpgradeTask, "taskId" | "status" | "counts">

const defaultPerMinute = 1000
const defaultRetryInterval = 600

/** The task that a draft asks for. */
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
  upgradeType: 1,
  upgradePolicy: draft.cloudPush === true ? 1 : 0,
  scopeMode: draft.scopeMode,
  timeout: draft.timeout ?? 0,
  needAppConfirm: draft.needAppConfirm ?? false,
  isAppConfirmed: false,
  downloadProtocol: draft.downloadProtocol ?? "https",
  maximumPerMinute: draft.maximumPerMinute ?? defaultPerMinute,
  retryCount: draft.retryCount ?? 0,
  retryInterval: draft.retryInterval ?? defaultRetryInterval,
  abortThresholdPercent: draft.abortThresholdPercent ?? 0,
  abortMinExecuted: draft.abortMinExecuted ?? 1,
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
  readonly isConfirmed: boolean
  /** How often it was begun and failed. */
  readonly failures: number
  /** What the device or the cloud said last. */
  readonly reason: string
  /** When something is due for it, Unix milliseconds; null: nothing is. */
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
  /** Of the task's module, as the device has reported it; empty: it has not. */
  readonly currentVersion: string
}

/** A record with the task and firmware that it is about. */
export interface Assignment {
  readonly record: UpgradeRecord
  readonly task: UpgradeTask
  readonly firmware: Firmware
}

export class TaskNotFound extends Schema.TaggedError<TaskNotFound>()("TaskNotFound", { taskId: Schema.Int }) {}

/** The device is not in this task. */
export class RecordNotFound extends Schema.TaggedError<RecordNotFound>()("RecordNotFound", {
  taskId: Schema.Int,
  deviceId: Schema.String
}) {}

/** The device has an unfinished task for the same module. */
export class DeviceIsUpgrading extends Schema.TaggedError<DeviceIsUpgrading>()("DeviceIsUpgrading", {
  deviceId: Schema.String
}) {}

/** Devices that are named do not exist, or are of another product. */
export class DevicesNotOfProduct extends Schema.TaggedError<DevicesNotOfProduct>()("DevicesNotOfProduct", {
  productKey: Schema.String,
  deviceIds: Schema.NonEmptyArray(Schema.String)
}) {}

/** The state of the task, or of the device in it, does not allow this. */
export class TaskState extends Schema.TaggedError<TaskState>()("TaskState", {
  taskId: Schema.Int,
  /** A sentence. */
  reason: Schema.String
}) {}
