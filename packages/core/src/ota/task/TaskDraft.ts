/**
 * What a user gives to create verify and upgrade tasks. See docs/api/firmware.md.
 */
import { Schema } from "effect"
import { Text } from "../../kernel/Text.ts"
import { expectedTimeZone, isTimeZone } from "../../kernel/TimeZone.ts"
import type { Firmware } from "../firmware/Firmware.ts"
import { startWindow, StartWindowDraft } from "./StartWindow.ts"
import { DownloadProtocol, type NewTask, ScopeMode, type TaskKind } from "./UpgradeTask.ts"

const devices = Schema.Array(Text(128))
const seconds = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 31_536_000 }))

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
