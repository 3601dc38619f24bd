/**
 * Port: where firmware and upgrade tasks are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { DeviceId, DeviceStatus } from "../../device/Device.ts"
import type { Page, PageRequest } from "../../kernel/Page.ts"
import type { ProjectId } from "../../project/Project.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import type { Firmware, FirmwareDetail, FirmwareFilter, FirmwareStatus, NewFirmware } from "../firmware/Firmware.ts"
import type { Assignment, NewTask, RecordDetail, UpgradeRecord, UpgradeTask } from "./UpgradeTask.ts"

/** The statuses of firmware that can be verified. */
export const verifiable: ReadonlyArray<FirmwareStatus> = [0, 3, 4]

/** Which devices a new task is for. */
export type TaskScope =
  | { readonly _tag: "Named"; readonly deviceIds: ReadonlyArray<DeviceId> }
  /** All of the product; those that have an unfinished task for the module are left out. */
  | { readonly _tag: "All" }

export type TaskCreated =
  | { readonly _tag: "Created"; readonly task: UpgradeTask; readonly deviceIds: ReadonlyArray<DeviceId> }
  /** These do not exist, or are of another product. Nothing was stored. */
  | { readonly _tag: "Unknown"; readonly deviceIds: ReadonlyArray<DeviceId> }
  /** The firmware is gone. Nothing was stored. */
  | { readonly _tag: "NoFirmware" }
  /** The firmware of a verify task is in none of {@link verifiable}. Nothing was stored. */
  | { readonly _tag: "NotVerifiable" }
  /** This one has an unfinished task for the module. Nothing was stored. */
  | { readonly _tag: "Busy"; readonly deviceId: DeviceId }

/** A version that a device has reported of a module. */
export interface VersionReport {
  readonly deviceId: DeviceId
  readonly module: string
  readonly version: string
  /** Unix milliseconds. */
  readonly at: number
}

/** A change of a record, which counts if the record is still as `before`. */
export interface RecordChange {
  readonly before: UpgradeRecord
  readonly after: UpgradeRecord
}

/**
 * Laws: each call is one transaction. A device has at most one unfinished
 * record for a module. The counts of a task are those of its records, and its
 * status is what `taskStatus` makes of them, at any time.
 */
export class OtaStore extends Context.Service<OtaStore, {
  readonly insertFirmware: (
    firmware: NewFirmware
  ) => Effect.Effect<Firmware | "taken" | "no-product", StoreError>
  readonly firmware: (
    projectId: ProjectId,
    firmwareId: number
  ) => Effect.Effect<Option.Option<FirmwareDetail>, StoreError>
  readonly listFirmwares: (
    projectId: ProjectId,
    filter: FirmwareFilter,
    page: PageRequest
  ) => Effect.Effect<Page<FirmwareDetail>, StoreError>
  /** With its tasks, unless one of them has not ended. */
  readonly removeFirmware: (
    projectId: ProjectId,
    firmwareId: number
  ) => Effect.Effect<"removed" | "not-found" | "ongoing", StoreError>
  /**
   * A task with a record for each device that has not the version already. They
   * are due at `rolloutDelay` after `firstDue`, the oldest device first, when the
   * task is one that tells devices and needs no confirmation. A verify task moves
   * its firmware to status 1.
   */
  readonly createTask: (task: NewTask, scope: TaskScope, firstDue: number) => Effect.Effect<TaskCreated, StoreError>
  readonly task: (projectId: ProjectId, taskId: number) => Effect.Effect<Option.Option<UpgradeTask>, StoreError>
  /** The newest verify task of a firmware. */
  readonly verifyTask: (firmwareId: number) => Effect.Effect<Option.Option<UpgradeTask>, StoreError>
  /** Upgrade tasks, newest first. */
  readonly listTasks: (
    projectId: ProjectId,
    filter: { readonly firmwareId: number; readonly status?: number | undefined; readonly taskId?: number | undefined },
    page: PageRequest
  ) => Effect.Effect<Page<UpgradeTask>, StoreError>
  /**
   * The newest device first. `rejected`: devices in this status are left out.
   * Without it, a page costs the same wherever it is and however many there are.
   */
  readonly records: (
    taskId: number,
    rejected: DeviceStatus | undefined,
    page: PageRequest
  ) => Effect.Effect<Page<RecordDetail>, StoreError>
  /** The record of a device in a task; without one, in its newest. */
  readonly record: (
    deviceId: DeviceId,
    taskId?: number
  ) => Effect.Effect<Option.Option<Assignment>, StoreError>
  /** The records of the devices that have not ended, those of one module if it is given. */
  readonly unfinished: (
    deviceIds: ReadonlyArray<DeviceId>,
    module?: string
  ) => Effect.Effect<ReadonlyArray<Assignment>, StoreError>
  /**
   * In the order of the changes, whether each was made; with the tasks as they
   * are afterwards. No record of a task that has ended becomes pending.
   */
  readonly save: (changes: ReadonlyArray<RecordChange>) => Effect.Effect<
    { readonly saved: ReadonlyArray<boolean>; readonly tasks: ReadonlyArray<UpgradeTask> },
    StoreError
  >
  /**
   * Ends a task that has not ended; those of its records that are in `cancelled`
   * end as cancelled. The firmware of a verify task takes the status of the task.
   * False: it has ended already.
   */
  readonly endTask: (
    taskId: number,
    to: 2 | 3 | 4,
    cancelled: ReadonlyArray<1 | 2>,
    at: number
  ) => Effect.Effect<boolean, StoreError>
  /** Marks the task as confirmed; its pending records are due as in a new task. False: it is confirmed already. */
  readonly confirmTask: (taskId: number, firstDue: number) => Effect.Effect<boolean, StoreError>
  /**
   * Records that are due at `now`, the longest due first, at most `limit`; they
   * are due again at `again` unless they change. No two callers get the same.
   */
  readonly claimDue: (options: {
    readonly now: number
    readonly again: number
    readonly limit: number
  }) => Effect.Effect<ReadonlyArray<Assignment & { readonly isOnline: boolean }>, StoreError>
  /** The version of the module `default` is also that of the device. */
  readonly reportVersions: (reports: ReadonlyArray<VersionReport>) => Effect.Effect<void, StoreError>
  /** Module to version. */
  readonly versions: (deviceId: DeviceId) => Effect.Effect<Readonly<Record<string, string>>, StoreError>
}>()("@device-cloud/core/ota/task/OtaStore") {}
