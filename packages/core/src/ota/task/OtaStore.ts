/**
 * Port: the store of firmware, tasks and their records.
 */
import { Context, type Effect, type Option } from "effect"
import type { DeviceId, DeviceIdentity } from "../../device/Device.ts"
import type { DeviceFilter } from "../../device/DeviceFilter.ts"
import type { Page, PageRequest } from "../../kernel/Page.ts"
import type { ProductKey } from "../../product/Product.ts"
import type { ProjectId } from "../../project/Project.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import type { Firmware, FirmwareDetail, FirmwareFilter, NewFirmware } from "../firmware/Firmware.ts"
import type { SigningKey } from "../firmware/SigningKey.ts"
import type { FailureCount } from "./TaskProgress.ts"
import type {
  Assignment,
  NewTask,
  OtaTask,
  RecordCounts,
  RecordDetail,
  RecordFilter,
  UpgradeRecord,
  UpgradeTask,
  UpgradeTaskStatus,
  VerifyTask
} from "./UpgradeTask.ts"

/**
 * Laws: each call is one transaction. A device has at most one record for a
 * module that has not ended. The counts of a task are those of its records, and
 * the status of an upgrade task is what `taskStatus` makes of them, at any time.
 */
export class OtaStore extends Context.Service<OtaStore, {
  /** The key that signs the firmware of a product of the project. */
  readonly signingKey: (
    projectId: ProjectId,
    productKey: ProductKey
  ) => Effect.Effect<Option.Option<SigningKey>, StoreError>
  /** Stores the key in place of an earlier one of the product. Returns false if the project has no such product. */
  readonly setSigningKey: (projectId: ProjectId, key: SigningKey) => Effect.Effect<boolean, StoreError>
  /** Removes the key of a product of the project, if it has one. Returns whether it had one. The key also goes with the product. */
  readonly removeSigningKey: (projectId: ProjectId, productKey: ProductKey) => Effect.Effect<boolean, StoreError>
  /** `taken`: the product has this version of the module already. */
  readonly insertFirmware: (
    firmware: NewFirmware
  ) => Effect.Effect<Firmware | "taken" | "no-product", StoreError>
  /** One firmware of the project. */
  readonly firmware: (
    projectId: ProjectId,
    firmwareId: number
  ) => Effect.Effect<Option.Option<FirmwareDetail>, StoreError>
  /** Newest first. */
  readonly listFirmwares: (
    projectId: ProjectId,
    filter: FirmwareFilter,
    page: PageRequest
  ) => Effect.Effect<Page<FirmwareDetail>, StoreError>
  /** Removes a firmware and its tasks. `ongoing`: one of them, or of their records, has not ended; nothing was removed. */
  readonly removeFirmware: (
    projectId: ProjectId,
    firmwareId: number
  ) => Effect.Effect<"removed" | "not-found" | "ongoing", StoreError>
  /**
   * A firmware of the project whose file has an address that contains `part`, and one
   * of whose tasks, or of their records, has not ended.
   */
  readonly upgradingFrom: (
    projectId: ProjectId,
    part: string
  ) => Effect.Effect<Option.Option<Firmware>, StoreError>
  /**
   * Creates a task with a record for each device that does not run the version
   * yet. If `isPushed` holds for the task, the records are due at `rolloutDelay`
   * after `firstDue`, in whole milliseconds, the oldest device first. Records at
   * places beyond the first stage (`stageSize`) are held, and not due. A verify
   * task moves its firmware to `verifying`.
   */
  readonly createTask: (task: NewTask, scope: TaskScope, firstDue: number) => Effect.Effect<TaskCreated, StoreError>
  /** The dynamic tasks of the products that have not ended, the oldest first. */
  readonly dynamicTasks: (
    productKeys: ReadonlyArray<ProductKey>
  ) => Effect.Effect<ReadonlyArray<OtaTask>, StoreError>
  /**
   * Gives each device a record in the dynamic task, unless it has one there, has
   * one for the module that has not ended, or the task has ended. The record takes
   * the last place. It is held unless the last stage is open; if `isPushed` holds
   * for it, it is due at `at`.
   */
  readonly join: (
    taskId: number,
    devices: ReadonlyArray<Pick<DeviceIdentity, "deviceId" | "deviceName">>,
    at: number
  ) => Effect.Effect<void, StoreError>
  /** One task of the project. */
  readonly task: (projectId: ProjectId, taskId: number) => Effect.Effect<Option.Option<OtaTask>, StoreError>
  /** The newest verify task of a firmware. */
  readonly verifyTask: (firmwareId: number) => Effect.Effect<Option.Option<VerifyTask>, StoreError>
  /** Upgrade tasks, newest first. */
  readonly listTasks: (
    projectId: ProjectId,
    filter: {
      readonly firmwareId: number
      readonly status?: UpgradeTaskStatus | undefined
      readonly taskId?: number | undefined
    },
    page: PageRequest
  ) => Effect.Effect<Page<UpgradeTask>, StoreError>
  /** The upgrade tasks of the project that have not ended, newest first, at most `limit`, and how many there are. */
  readonly underWay: (
    projectId: ProjectId,
    limit: number
  ) => Effect.Effect<{ readonly items: ReadonlyArray<UpgradeTask>; readonly total: number }, StoreError>
  /**
   * The records of a task for which the filter holds, the newest device first.
   * Without a condition, a page costs the same wherever it is and however many
   * records there are.
   */
  readonly records: (
    taskId: number,
    filter: RecordFilter,
    page: PageRequest
  ) => Effect.Effect<Page<RecordDetail>, StoreError>
  /**
   * The counts that a task had before each of `times`, Unix milliseconds that
   * `progressResolution` divides: those after all changes of its records that were
   * stored with an earlier time. Zeros before it was created. Costs the same
   * however many records and changes there are.
   */
  readonly countsBefore: (
    taskId: number,
    times: ReadonlyArray<number>
  ) => Effect.Effect<ReadonlyArray<RecordCounts>, StoreError>
  /**
   * Why devices of the task have failed, at most `limit` reasons: the most frequent first,
   * equally frequent ones in the order of their characters.
   */
  readonly failures: (taskId: number, limit: number) => Effect.Effect<ReadonlyArray<FailureCount>, StoreError>
  /** The record of a device in a task; without `taskId`, in its newest task. */
  readonly record: (
    deviceId: DeviceId,
    taskId?: number
  ) => Effect.Effect<Option.Option<Assignment>, StoreError>
  /** The record of a device in its newest task for a module. */
  readonly newest: (deviceId: DeviceId, module: string) => Effect.Effect<Option.Option<Assignment>, StoreError>
  /** The records of the devices that have not ended; with `module`, those for this module. */
  readonly unfinished: (
    deviceIds: ReadonlyArray<DeviceId>,
    module?: string
  ) => Effect.Effect<ReadonlyArray<Assignment>, StoreError>
  /** Records that have not ended, of devices that do not exist any more, at most `limit`. */
  readonly orphaned: (limit: number) => Effect.Effect<ReadonlyArray<Assignment>, StoreError>
  /**
   * Stores each change whose record is still as `before`. A change to `pending`
   * is not stored if its task has ended. Opens each stage that opens by itself
   * (`isStagePassed`), as `openStage` does it. Cancels each task in which too many
   * devices have failed (`isAborted`), and its pending records, as `endTask` does it.
   * Returns whether each change was stored, in the order of the changes, and the
   * changed tasks: those with a record that has another status.
   */
  readonly save: (changes: ReadonlyArray<RecordChange>) => Effect.Effect<
    { readonly saved: ReadonlyArray<boolean>; readonly tasks: ReadonlyArray<OtaTask> },
    StoreError
  >
  /**
   * Ends a task. Its records in one of the statuses `cancelled` become cancelled,
   * as `advance` does it. The firmware of a verify task takes the status of the
   * task. Returns false if the task has ended already, or if it is an upgrade task
   * and `to` is not `cancelled`. `at`: Unix milliseconds.
   */
  readonly endTask: (
    taskId: number,
    to: "passed" | "failed" | "cancelled",
    cancelled: ReadonlyArray<"pending" | "upgrading">,
    at: number
  ) => Effect.Effect<boolean, StoreError>
  /**
   * Removes a task and its records. Returns false, and removes nothing, while it or
   * one of its records has not ended, and if there is none.
   */
  readonly removeTask: (taskId: number) => Effect.Effect<boolean, StoreError>
  /**
   * Removes upgrade tasks that last changed before `before`, Unix milliseconds, and
   * have ended with all their records, at most `limit`, after their records: in
   * several transactions, so that none is long. Returns how many tasks. Verify tasks
   * stay with their firmware.
   */
  readonly pruneTasks: (options: {
    readonly before: number
    readonly limit: number
  }) => Effect.Effect<number, StoreError>
  /**
   * Marks the task as confirmed. If its policy is `push`, its pending records that
   * are neither held nor confirmed themselves are due as in a new task. Returns false
   * if it is confirmed already.
   */
  readonly confirmTask: (taskId: number, firstDue: number) => Effect.Effect<boolean, StoreError>
  /**
   * Opens the stage of an upgrade task that has not ended. Its pending records are
   * no longer held; if `isPushed` holds for them, they are due as in a new task.
   * Returns the task; none if it has ended, or if the open stage is not the one
   * before.
   */
  readonly openStage: (
    taskId: number,
    stage: number,
    firstDue: number
  ) => Effect.Effect<Option.Option<OtaTask>, StoreError>
  /**
   * Takes at most `limit` records that are due at `now`, the longest due first,
   * and makes them due again at `again`. No two callers get the same record.
   * `isConnected`: whether the device is connected to any node, as far as the store knows.
   */
  readonly claimDue: (options: {
    readonly now: number
    readonly again: number
    readonly limit: number
  }) => Effect.Effect<ReadonlyArray<Assignment & { readonly isConnected: boolean }>, StoreError>
  /** Stores what devices report. The version of module `default` becomes the firmware version of the device. */
  readonly reportVersions: (reports: ReadonlyArray<VersionReport>) => Effect.Effect<void, StoreError>
  /** The versions that a device has reported, by module. */
  readonly versions: (deviceId: DeviceId) => Effect.Effect<Readonly<Record<string, string>>, StoreError>
}>()("@device-cloud/core/ota/task/OtaStore") {}

/** The devices that a new task is for. */
export type TaskScope =
  | { readonly _tag: "Named"; readonly deviceIds: ReadonlyArray<DeviceId> }
  /**
   * All devices of the product, or those that `filter` selects, except those that
   * have a record for the module that has not ended.
   */
  | { readonly _tag: "All"; readonly filter?: DeviceFilter | undefined }

/** In every case but `Created`, nothing was stored. */
export type TaskCreated =
  | { readonly _tag: "Created"; readonly task: OtaTask; readonly deviceIds: ReadonlyArray<DeviceId> }
  /** These devices do not exist or belong to another product. */
  | { readonly _tag: "Unknown"; readonly deviceIds: ReadonlyArray<DeviceId> }
  /** The firmware is gone. */
  | { readonly _tag: "NoFirmware" }
  /** The firmware of the verify task has none of the statuses `verifiable`. */
  | { readonly _tag: "NotVerifiable" }
  /** This device has a record for the module that has not ended. */
  | { readonly _tag: "Busy"; readonly deviceId: DeviceId }

/** A version of a module that a device has reported. */
export interface VersionReport {
  readonly deviceId: DeviceId
  readonly module: string
  readonly version: string
  /** Unix milliseconds. */
  readonly at: number
}

/** A change of a record, which is stored if the record is still as `before`. */
export interface RecordChange {
  readonly before: UpgradeRecord
  readonly after: UpgradeRecord
}
