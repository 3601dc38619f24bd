/**
 * Creates, reads and ends verify and upgrade tasks. See docs/api/firmware.md.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import type { DeviceId } from "../../device/Device.ts"
import type { DeviceGroupNotFound } from "../../group/DeviceGroup.ts"
import { DeviceGroups, filterOf } from "../../group/DeviceGroups.ts"
import { decodeInput, type InvalidInput } from "../../kernel/InvalidInput.ts"
import { type Page, paged, type PageRequest } from "../../kernel/Page.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import type { ProjectId } from "../../project/Project.ts"
import { type Firmware, FirmwareNotFound, FirmwareState, type FirmwareStatus } from "../firmware/Firmware.ts"
import { FirmwareFiles } from "../firmware/FirmwareFiles.ts"
import { Firmwares } from "../firmware/Firmwares.ts"
import { OtaStore, type TaskScope } from "./OtaStore.ts"
import { stageCount } from "./Stages.ts"
import { newTask, UpgradeTaskDraft, VerifyTaskDraft } from "./TaskDraft.ts"
import { maxFailureReasons, progressIntervals, type TaskFailures, type TaskProgress } from "./TaskProgress.ts"
import {
  DeviceIsUpgrading,
  DevicesNotOfProduct,
  type NewTask,
  type OtaTask,
  type RecordDetail,
  type RecordFilter,
  TaskNotFound,
  TaskState,
  type UpgradeTask,
  type UpgradeTaskStatus,
  type VerifyTask
} from "./UpgradeTask.ts"
import { confirmationRefused, isOngoing } from "./UpgradeStateMachine.ts"

/** Whether upgrade tasks need a firmware whose verification has passed. Default false. */
export const RequireVerification = Context.Reference<boolean>("@device-cloud/core/ota/task/RequireVerification", {
  defaultValue: () => false
})

/**
 * Why a task could not be created: the draft is not valid, the firmware is gone,
 * its status forbids the task or its file cannot be sent over MQTT, a named
 * device is in another task that has not ended, or is not of the product.
 */
type CreateError =
  | InvalidInput
  | FirmwareNotFound
  | FirmwareState
  | DeviceIsUpgrading
  | DevicesNotOfProduct
  | StoreError

export class UpgradeTasks extends Context.Service<UpgradeTasks, {
  /**
   * Starts the verification of a firmware on up to `maxVerifyDevices` devices.
   * Returns those of them that do not run its version yet.
   */
  readonly createVerifyTask: (
    projectId: ProjectId,
    firmwareId: number,
    draft: VerifyTaskDraft
  ) => Effect.Effect<ReadonlyArray<DeviceId>, CreateError>
  /**
   * Creates a task that upgrades the devices of the product, the named ones, or
   * those of the product that are in a group now, to a firmware. Devices that run
   * its version already are not part of it, nor are devices that are not named and
   * that are in another task for the module.
   */
  readonly createUpgradeTask: (
    projectId: ProjectId,
    firmwareId: number,
    draft: UpgradeTaskDraft
  ) => Effect.Effect<OtaTask, CreateError | DeviceGroupNotFound>
  /** Reads one task of the project. */
  readonly get: (projectId: ProjectId, taskId: number) => Effect.Effect<OtaTask, TaskNotFound | StoreError>
  /** The newest verify task of a firmware, if it has any. */
  readonly newestVerifyTask: (
    projectId: ProjectId,
    firmwareId: number
  ) => Effect.Effect<Option.Option<VerifyTask>, FirmwareNotFound | StoreError>
  /** A page of the upgrade tasks of a firmware, newest first. All given conditions must hold. */
  readonly list: (
    projectId: ProjectId,
    filter: {
      readonly firmwareId: number
      readonly status?: UpgradeTaskStatus | undefined
      readonly taskId?: number | undefined
      /** The product of the firmware. */
      readonly productKey?: string | undefined
      /** A part of the firmware's name. */
      readonly name?: string | undefined
    },
    page: PageRequest
  ) => Effect.Effect<Page<UpgradeTask>, FirmwareNotFound | InvalidInput | StoreError>
  /** A page of the records of a task for which the filter holds, the newest device first. */
  readonly records: (
    projectId: ProjectId,
    taskId: number,
    filter: RecordFilter,
    page: PageRequest
  ) => Effect.Effect<Page<RecordDetail>, InvalidInput | TaskNotFound | StoreError>
  /**
   * The numbers of devices in each status since the task was created, in at most
   * `maxProgressPoints` intervals. A device that has failed and tries again is
   * pending.
   */
  readonly progress: (
    projectId: ProjectId,
    taskId: number
  ) => Effect.Effect<TaskProgress, TaskNotFound | StoreError>
  /** Why devices of the task have failed. Those that try again are not counted. */
  readonly failures: (
    projectId: ProjectId,
    taskId: number
  ) => Effect.Effect<TaskFailures, TaskNotFound | StoreError>
  /**
   * Ends a verify task, and the records in it, with the result of the verification.
   * Fails with `TaskNotFound` for an upgrade task, and with `TaskState` if the task
   * has ended.
   */
  readonly decide: (
    projectId: ProjectId,
    taskId: number,
    passed: boolean
  ) => Effect.Effect<void, TaskNotFound | TaskState | StoreError>
  /**
   * Cancels an upgrade task. Devices that have begun finish. Fails with
   * `TaskNotFound` for a verify task, and with `TaskState` if the task has ended.
   */
  readonly cancel: (
    projectId: ProjectId,
    taskId: number
  ) => Effect.Effect<void, TaskNotFound | TaskState | StoreError>
  /**
   * Cancels a verify or upgrade task, as `cancel` does; devices of a verify task
   * that have begun do not finish. Removes a task that has ended, with its records.
   * Fails with `TaskState` if devices of the ended task still finish.
   */
  readonly remove: (
    projectId: ProjectId,
    taskId: number
  ) => Effect.Effect<void, TaskNotFound | TaskState | StoreError>
  /**
   * Lets all devices of a task have the firmware. Nothing happens if the task is
   * confirmed already. Fails with `TaskState` if it needs no confirmation or has
   * ended.
   */
  readonly confirm: (
    projectId: ProjectId,
    taskId: number
  ) => Effect.Effect<void, TaskNotFound | TaskState | StoreError>
  /**
   * Opens the stage of an upgrade task, from 1, which must be the one after the
   * open one. Nothing happens if the stage is open already. Fails with
   * `TaskNotFound` for a verify task, and with `TaskState` for any other stage or
   * if the task has ended.
   */
  readonly openStage: (
    projectId: ProjectId,
    taskId: number,
    stage: number
  ) => Effect.Effect<void, TaskNotFound | TaskState | StoreError>
}>()("@device-cloud/core/ota/task/UpgradeTasks") {
  static readonly layer: Layer.Layer<
    UpgradeTasks,
    never,
    OtaStore | Firmwares | FirmwareFiles | DeviceGroups
  > = Layer.effect(UpgradeTasks, Effect.suspend(() => make))
}

const decodeVerifyDraft = decodeInput(VerifyTaskDraft)
const decodeUpgradeDraft = decodeInput(UpgradeTaskDraft)

const make = Effect.gen(function*() {
  const store = yield* OtaStore
  const firmwares = yield* Firmwares
  const files = yield* FirmwareFiles
  const groups = yield* DeviceGroups
  const requireVerification = yield* RequireVerification

  const get = Effect.fn("UpgradeTasks.get")(function*(projectId: ProjectId, taskId: number) {
    return yield* Effect.fromOption(yield* store.task(projectId, taskId), () => new TaskNotFound({ taskId }))
  })

  const insert = Effect.fnUntraced(function*(firmware: Firmware, task: NewTask, scope: TaskScope) {
    const { firmwareId } = firmware
    if (task.downloadProtocol === "mqtt" && Option.isNone(yield* files.find(firmware))) {
      return yield* new FirmwareState({
        firmwareId,
        reason: "its file is not stored here, and cannot be sent over MQTT"
      })
    }
    const created = yield* store.createTask(task, scope, task.createdAt)
    switch (created._tag) {
      case "Created":
        return created
      case "NoFirmware":
        return yield* new FirmwareNotFound({ firmwareId })
      case "NotVerifiable":
        return yield* new FirmwareState({ firmwareId, reason: "it is being verified, or has passed" })
      case "Busy":
        return yield* new DeviceIsUpgrading({ deviceId: created.deviceId })
      case "Unknown": {
        const [first, ...rest] = created.deviceIds
        return yield* new DevicesNotOfProduct({ productKey: task.productKey, deviceIds: [first!, ...rest] })
      }
    }
  })

  const createVerifyTask = Effect.fn("UpgradeTasks.createVerifyTask")(
    function*(projectId: ProjectId, firmwareId: number, input: VerifyTaskDraft) {
      const draft = yield* decodeVerifyDraft(input)
      const { firmware } = yield* firmwares.get(projectId, firmwareId)
      const at = yield* Clock.currentTimeMillis
      const task = newTask("verify", firmware, { ...draft, scopeMode: "targeted" }, at)
      const { deviceIds } = yield* insert(firmware, task, named(draft.deviceIds))
      return deviceIds
    }
  )

  const createUpgradeTask = Effect.fn("UpgradeTasks.createUpgradeTask")(
    function*(projectId: ProjectId, firmwareId: number, input: UpgradeTaskDraft) {
      const draft = yield* decodeUpgradeDraft(input)
      const { firmware } = yield* firmwares.get(projectId, firmwareId)
      const reason = upgradeRefused(firmware.status, requireVerification)
      if (reason !== undefined) return yield* new FirmwareState({ firmwareId, reason })
      const scope: TaskScope = draft.groupId !== undefined
        ? { _tag: "All", filter: filterOf(yield* groups.get(projectId, draft.groupId)) }
        : draft.scopeMode === "all"
        ? { _tag: "All" }
        : named(draft.deviceIds ?? [])
      const at = yield* Clock.currentTimeMillis
      const { task } = yield* insert(firmware, newTask("upgrade", firmware, draft, at), scope)
      return task
    }
  )

  const end = Effect.fnUntraced(function*({ kind, taskId }: OtaTask, to: "passed" | "failed" | "cancelled") {
    const cancelled = kind === "verify" ? ["pending", "upgrading"] as const : ["pending"] as const
    if (!(yield* store.endTask(taskId, to, cancelled, yield* Clock.currentTimeMillis))) {
      return yield* new TaskState({ taskId, reason: "it has ended" })
    }
  })

  const decide = Effect.fn("UpgradeTasks.decide")(function*(projectId: ProjectId, taskId: number, passed: boolean) {
    const task = yield* get(projectId, taskId)
    if (task.kind !== "verify") return yield* new TaskNotFound({ taskId })
    yield* end(task, passed ? "passed" : "failed")
  })

  const cancel = Effect.fn("UpgradeTasks.cancel")(function*(projectId: ProjectId, taskId: number) {
    const task = yield* get(projectId, taskId)
    if (task.kind !== "upgrade") return yield* new TaskNotFound({ taskId })
    yield* end(task, "cancelled")
  })

  const remove = Effect.fn("UpgradeTasks.remove")(function*(projectId: ProjectId, taskId: number) {
    const task = yield* get(projectId, taskId)
    if (isOngoing(task)) return yield* end(task, "cancelled")
    if (!(yield* store.removeTask(taskId))) {
      // Unless somebody else has just removed it.
      yield* get(projectId, taskId)
      return yield* new TaskState({ taskId, reason: "it is cancelled, and devices that had begun still finish" })
    }
  })

  const confirm = Effect.fn("UpgradeTasks.confirm")(function*(projectId: ProjectId, taskId: number) {
    const reason = confirmationRefused(yield* get(projectId, taskId))
    if (reason !== undefined) return yield* new TaskState({ taskId, reason })
    yield* store.confirmTask(taskId, yield* Clock.currentTimeMillis)
  })

  const openStage = Effect.fn("UpgradeTasks.openStage")(
    function*(projectId: ProjectId, taskId: number, stage: number) {
      while (true) {
        const task = yield* get(projectId, taskId)
        if (task.kind !== "upgrade") return yield* new TaskNotFound({ taskId })
        if (!isOngoing(task)) return yield* new TaskState({ taskId, reason: "it has ended" })
        if (stage === task.stage) return
        const count = stageCount(task)
        if (stage !== task.stage + 1 || stage > count) {
          return yield* new TaskState({ taskId, reason: `stage ${task.stage} of ${count} is open` })
        }
        // Otherwise somebody else was faster.
        if (Option.isSome(yield* store.openStage(taskId, stage, yield* Clock.currentTimeMillis))) return
      }
    }
  )

  return UpgradeTasks.of({
    createVerifyTask,
    createUpgradeTask,
    get,
    newestVerifyTask: Effect.fn("UpgradeTasks.newestVerifyTask")(function*(projectId, firmwareId) {
      yield* firmwares.get(projectId, firmwareId)
      return yield* store.verifyTask(firmwareId)
    }),
    list: Effect.fn("UpgradeTasks.list")(function*(projectId, { name, productKey, ...filter }, page) {
      const { firmware } = yield* firmwares.get(projectId, filter.firmwareId)
      const fits = (productKey === undefined || firmware.productKey === productKey) &&
        (name === undefined || firmware.name.includes(name))
      const list = fits ? store.listTasks : () => Effect.succeed({ items: [], total: 0 })
      return yield* paged(list)(projectId, filter, page)
    }),
    records: Effect.fn("UpgradeTasks.records")(function*(projectId, taskId, filter, page) {
      yield* get(projectId, taskId)
      return yield* paged(store.records)(taskId, filter, page)
    }),
    progress: Effect.fn("UpgradeTasks.progress")(function*(projectId, taskId) {
      const task = yield* get(projectId, taskId)
      const { times, ...progress } = progressIntervals(task, yield* Clock.currentTimeMillis)
      // The task itself says what is at the end of the last interval.
      const counts = [...yield* store.countsBefore(taskId, times.slice(1)), task.counts]
      return { ...progress, points: times.map((time, i) => ({ time, counts: counts[i]! })) }
    }),
    failures: Effect.fn("UpgradeTasks.failures")(function*(projectId, taskId) {
      const { counts } = yield* get(projectId, taskId)
      return { devices: counts.failed, reasons: yield* store.failures(taskId, maxFailureReasons) }
    }),
    decide,
    cancel,
    remove,
    confirm,
    openStage
  })
})

const named = (deviceIds: ReadonlyArray<string>): TaskScope => ({
  _tag: "Named",
  deviceIds: deviceIds as ReadonlyArray<DeviceId>
})

/** Why devices cannot be upgraded to a firmware in this status; undefined: they can. */
const upgradeRefused = (status: FirmwareStatus, requireVerification: boolean): string | undefined => {
  if (status === "verifying") return "it is being verified"
  if (status === "failed") return "its verification has failed"
  return requireVerification && status !== "passed" ? "it has not been verified" : undefined
}
