/**
 * Upgrades devices: tasks, what devices say about them, and what is due.
 */
import { Clock, Context, Effect, Layer, Option, Schedule } from "effect"
import type { DeviceId, DeviceIdentity, DeviceNotFound, DeviceStatus } from "../device/Device.ts"
import { Devices } from "../device/Devices.ts"
import { EventBus } from "../event/EventBus.ts"
import { decodeInput, type InvalidInput } from "../InvalidInput.ts"
import { DeviceLink } from "../message/DeviceLink.ts"
import type { Page, PageRequest } from "../Page.ts"
import type { ProjectId } from "../project/Project.ts"
import { type StoreError, untilStored } from "../StoreError.ts"
import { defaultModule, type FirmwareNotFound, FirmwareState } from "./Firmware.ts"
import { Firmwares } from "./Firmwares.ts"
import { OtaStore, type TaskScope } from "./OtaStore.ts"
import { upgradeData, upgradeMethod, type UpgradeReport } from "./UpgradeMessage.ts"
import { advance, isAborted, isFinal, isReleased, type UpgradeEvent } from "./UpgradeStateMachine.ts"
import {
  type Assignment,
  DeviceIsUpgrading,
  DevicesNotOfProduct,
  type NewTask,
  type RecordDetail,
  RecordNotFound,
  TaskNotFound,
  TaskState,
  type UpgradeRecord,
  type UpgradeTask,
  UpgradeTaskDraft,
  VerifyTaskDraft
} from "./UpgradeTask.ts"

const defaultPerMinute = 1000
const defaultRetryInterval = 600

const tickEvery = "1 second"
const claimLimit = 500
/** When what was claimed is due again, unless it has changed; milliseconds. */
const claimMillis = 60_000

const decodeVerifyDraft = decodeInput(VerifyTaskDraft)
const decodeUpgradeDraft = decodeInput(UpgradeTaskDraft)

interface Step {
  readonly assignment: Assignment
  readonly event: UpgradeEvent
}

/** Why a device is, or is not, being upgraded. */
export interface Diagnosis {
  readonly reason:
    | "no-task"
    | "awaiting-confirmation"
    | "offline"
    | "rate-limited"
    | "retry-later"
    | "waiting-for-device"
    | "upgrading"
    | "succeeded"
    | "failed"
    | "timed-out"
    | "cancelled"
  /** A sentence. */
  readonly message: string
  readonly assignment: Assignment | undefined
  readonly currentVersion: string
}

/** The server option that asks for a passed verification before an upgrade task. */
export const RequireVerification = Context.Reference<boolean>("@device-cloud/core/ota/RequireVerification", {
  defaultValue: () => false
})

const make = Effect.gen(function*() {
  const store = yield* OtaStore
  const firmwares = yield* Firmwares
  const devices = yield* Devices
  const link = yield* DeviceLink
  const events = yield* EventBus
  const requireVerification = yield* RequireVerification

  const publish = Effect.fnUntraced(function*(changed: ReadonlyArray<Assignment>) {
    yield* events.publish(changed.map(({ record, task }) => ({
      _tag: "UpgradeProgressed",
      device: {
        projectId: task.projectId,
        productKey: task.productKey,
        deviceId: record.deviceId,
        deviceName: record.deviceName
      },
      at: record.updatedAt,
      taskId: task.taskId,
      module: task.module,
      version: task.version,
      status: record.status,
      step: record.step,
      reason: record.reason
    })))
  })

  /** Takes each step from the record as it is; answers the assignments afterwards. */
  const take = Effect.fnUntraced(function*(steps: ReadonlyArray<Step>) {
    const results: Array<Assignment> = steps.map(({ assignment }) => assignment)
    let pending = steps.map((step, place) => ({ ...step, place }))
    while (pending.length > 0) {
      const changes = pending.flatMap(({ assignment, event, place }) => {
        const after = advance(assignment.record, assignment.task, event)
        return after === assignment.record ? [] : [{ before: assignment.record, after, place, event }]
      })
      const { saved, tasks } = yield* store.save(changes)
      const changed: Array<Assignment> = []
      const again: typeof pending = []
      for (let i = 0; i < changes.length; i++) {
        const { after, event, place } = changes[i]!
        if (saved[i] === true) {
          results[place] = { ...results[place]!, record: after }
          changed.push(results[place])
          continue
        }
        // It has changed meanwhile: from the record as it is now.
        const newer = Option.getOrUndefined(yield* store.record(after.deviceId, after.taskId))
        if (newer === undefined) continue
        results[place] = newer
        again.push({ assignment: newer, event, place })
      }
      yield* publish(changed)
      for (const task of tasks) {
        if (isAborted(task)) yield* store.endTask(task.taskId, [0, 1], 4, [1], task.updatedAt)
      }
      pending = again
    }
    return results
  })

  /** Gives a device that is connected here the firmware. */
  const push = Effect.fnUntraced(function*(assignment: Assignment) {
    const { deviceId } = assignment.record
    if (link.session(deviceId) === undefined) return false
    const at = yield* Clock.currentTimeMillis
    const [after] = yield* take([{ assignment, event: { _tag: "HandedOut", at } }])
    if (after?.record.status !== 2) return false
    return yield* link.deliver(deviceId, { method: upgradeMethod, params: upgradeData(after) })
  })

  const isPushed = ({ record, task }: Assignment): boolean => task.upgradePolicy === 1 && isReleased(task, record)

  const tick = Effect.gen(function*() {
    while (true) {
      const now = yield* Clock.currentTimeMillis
      const due = yield* store.claimDue({ now, again: now + claimMillis, limit: claimLimit })
      const steps: Array<Step> = []
      for (const claimed of due) {
        const isHere = link.session(claimed.record.deviceId) !== undefined
        if (claimed.record.status === 1 && isPushed(claimed) && isHere) yield* push(claimed)
        // Another node holds it; that one finds it due again.
        else if (claimed.record.status === 1 && isPushed(claimed) && claimed.isOnline) continue
        else steps.push({ assignment: claimed, event: { _tag: "Due", at: now } })
      }
      yield* take(steps)
      if (due.length < claimLimit) return
    }
  })

  yield* tick.pipe(
    Effect.catchCause((cause) => Effect.logWarning("Upgrades that are due could not be carried on", cause)),
    Effect.repeat(Schedule.spaced(tickEvery)),
    Effect.forkScoped
  )

  const found = Effect.fnUntraced(function*(projectId: ProjectId, taskId: number) {
    return yield* Effect.fromOption(yield* store.task(projectId, taskId), () => new TaskNotFound({ taskId }))
  })

  const foundRecord = Effect.fnUntraced(function*(projectId: ProjectId, taskId: number, deviceId: DeviceId) {
    yield* found(projectId, taskId)
    return yield* Effect.fromOption(
      yield* store.record(deviceId, taskId),
      () => new RecordNotFound({ taskId, deviceId })
    )
  })

  const insert = Effect.fnUntraced(function*(task: NewTask, scope: TaskScope) {
    const created = yield* store.createTask(task, scope, task.createdAt)
    if (created._tag === "NotVerifiable") {
      const { firmwareId } = task
      return yield* new FirmwareState({ firmwareId, reason: "it is being verified, or has passed" })
    }
    if (created._tag === "Busy") return yield* new DeviceIsUpgrading({ deviceId: created.deviceId })
    if (created._tag === "Unknown") {
      const [first, ...rest] = created.deviceIds
      return yield* new DevicesNotOfProduct({ productKey: task.productKey, deviceIds: [first!, ...rest] })
    }
    return created
  })

  const named = (deviceIds: ReadonlyArray<string>): TaskScope => ({
    _tag: "Named",
    deviceIds: deviceIds as ReadonlyArray<DeviceId>
  })

  const createVerifyTask = Effect.fn("Upgrades.createVerifyTask")(
    function*(projectId: ProjectId, firmwareId: number, input: VerifyTaskDraft) {
      const draft = yield* decodeVerifyDraft(input)
      const { firmware } = yield* firmwares.get(projectId, firmwareId)
      const at = yield* Clock.currentTimeMillis
      const { deviceIds } = yield* insert({
        kind: "verify",
        projectId,
        productKey: firmware.productKey,
        firmwareId,
        module: firmware.module,
        version: firmware.version,
        upgradeType: 1,
        upgradePolicy: draft.cloudPush === true ? 1 : 0,
        scopeMode: 1,
        timeout: draft.timeout ?? 0,
        needAppConfirm: draft.needAppConfirm ?? false,
        isAppConfirmed: false,
        maximumPerMinute: defaultPerMinute,
        retryCount: 0,
        retryInterval: defaultRetryInterval,
        abortThresholdPercent: 0,
        abortMinExecuted: 1,
        createdAt: at,
        updatedAt: at
      }, named(draft.deviceIds))
      return deviceIds
    }
  )

  const createUpgradeTask = Effect.fn("Upgrades.createUpgradeTask")(
    function*(projectId: ProjectId, firmwareId: number, input: UpgradeTaskDraft) {
      const draft = yield* decodeUpgradeDraft(input)
      const { firmware } = yield* firmwares.get(projectId, firmwareId)
      if (firmware.status === 1 || firmware.status === 3 || (requireVerification && firmware.status !== 2)) {
        const reason = firmware.status === 1
          ? "it is being verified"
          : firmware.status === 3
          ? "its verification has failed"
          : "it has not been verified"
        return yield* new FirmwareState({ firmwareId, reason })
      }
      const at = yield* Clock.currentTimeMillis
      const { task } = yield* insert({
        kind: "upgrade",
        projectId,
        productKey: firmware.productKey,
        firmwareId,
        module: firmware.module,
        version: firmware.version,
        upgradeType: 1,
        upgradePolicy: draft.cloudPush === true ? 1 : 0,
        scopeMode: draft.scopeMode,
        timeout: draft.timeout ?? 0,
        needAppConfirm: draft.needAppConfirm ?? false,
        isAppConfirmed: false,
        maximumPerMinute: draft.maximumPerMinute ?? defaultPerMinute,
        retryCount: draft.retryCount ?? 0,
        retryInterval: draft.retryInterval ?? defaultRetryInterval,
        abortThresholdPercent: draft.abortThresholdPercent ?? 0,
        abortMinExecuted: draft.abortMinExecuted ?? 1,
        createdAt: at,
        updatedAt: at
      }, draft.scopeMode === 0 ? { _tag: "All" } : named(draft.deviceIds ?? []))
      return task
    }
  )

  const decide = Effect.fn("Upgrades.decide")(function*(projectId: ProjectId, taskId: number, passed: boolean) {
    const task = yield* found(projectId, taskId)
    if (task.kind !== "verify") return yield* new TaskNotFound({ taskId })
    const at = yield* Clock.currentTimeMillis
    if (!(yield* store.endTask(taskId, [1], passed ? 2 : 3, [1, 2], at))) {
      return yield* new TaskState({ taskId, reason: "it has ended" })
    }
    yield* store.moveFirmware(task.firmwareId, [1], passed ? 2 : 3, at)
  })

  const cancel = Effect.fn("Upgrades.cancel")(function*(projectId: ProjectId, taskId: number) {
    const task = yield* found(projectId, taskId)
    const at = yield* Clock.currentTimeMillis
    const isVerify = task.kind === "verify"
    if (!(yield* store.endTask(taskId, [0, 1], 4, isVerify ? [1, 2] : [1], at))) {
      return yield* new TaskState({ taskId, reason: "it has ended" })
    }
    if (isVerify) yield* store.moveFirmware(task.firmwareId, [1], 4, at)
  })

  const cancelDevice = Effect.fn("Upgrades.cancelDevice")(
    function*(projectId: ProjectId, taskId: number, deviceId: DeviceId) {
      const assignment = yield* foundRecord(projectId, taskId, deviceId)
      if (isFinal(assignment.record.status)) {
        return yield* new TaskState({ taskId, reason: "it has ended for this device" })
      }
      yield* take([{ assignment, event: { _tag: "Cancelled", at: yield* Clock.currentTimeMillis, whole: false } }])
    }
  )

  const needsConfirmation = ({ needAppConfirm, status, taskId }: UpgradeTask) => {
    if (!needAppConfirm) return new TaskState({ taskId, reason: "it needs no confirmation" })
    return status > 1 ? new TaskState({ taskId, reason: "it has ended" }) : undefined
  }

  const confirm = Effect.fn("Upgrades.confirm")(function*(projectId: ProjectId, taskId: number) {
    const refusal = needsConfirmation(yield* found(projectId, taskId))
    if (refusal !== undefined) return yield* refusal
    // Twice is as good as once.
    yield* store.confirmTask(taskId, yield* Clock.currentTimeMillis)
  })

  const confirmDevice = Effect.fn("Upgrades.confirmDevice")(
    function*(projectId: ProjectId, taskId: number, deviceId: DeviceId) {
      const assignment = yield* foundRecord(projectId, taskId, deviceId)
      const refusal = needsConfirmation(assignment.task)
      if (refusal !== undefined) return yield* refusal
      if (isFinal(assignment.record.status)) {
        return yield* new TaskState({ taskId, reason: "it has ended for this device" })
      }
      const at = yield* Clock.currentTimeMillis
      const [confirmed] = yield* take([{ assignment, event: { _tag: "Confirmed", at } }])
      if (confirmed !== undefined && isPushed(confirmed)) yield* push(confirmed)
    }
  )

  const start = Effect.fn("Upgrades.start")(function*(projectId: ProjectId, deviceId: DeviceId, taskId: number) {
    yield* devices.get(projectId, { deviceId })
    const assignment = yield* foundRecord(projectId, taskId, deviceId)
    const { record, task } = assignment
    if (isFinal(record.status)) return yield* new TaskState({ taskId, reason: "it has ended for this device" })
    if (!isReleased(task, record)) return yield* new TaskState({ taskId, reason: "it awaits confirmation" })
    if (!(yield* push(assignment))) return yield* new TaskState({ taskId, reason: "the device is not connected" })
  })

  const ofModule = (assignments: ReadonlyArray<Assignment>) =>
    new Map(
      assignments.map((assignment) => [assignment.record.deviceId, assignment])
    )

  const available = Effect.fn("Upgrades.available")(
    function*(projectId: ProjectId, deviceIds: ReadonlyArray<DeviceId>, module: string) {
      return ofModule(
        (yield* store.unfinished(deviceIds, module)).filter(({ task }) => task.projectId === projectId)
      )
    }
  )

  const availableFor = Effect.fn("Upgrades.availableFor")(
    function*(projectId: ProjectId, deviceId: DeviceId, module: string = defaultModule) {
      yield* devices.get(projectId, { deviceId })
      return (yield* available(projectId, [deviceId], module)).get(deviceId)
    }
  )

  const step = Effect.fn("Upgrades.step")(function*(projectId: ProjectId, deviceId: DeviceId, taskId?: number) {
    yield* devices.get(projectId, { deviceId })
    const record = Option.filter(
      yield* store.record(deviceId, taskId),
      ({ task }) => task.projectId === projectId
    )
    if (Option.isSome(record)) return record.value.record.step
    return taskId === undefined ? 0 : yield* new TaskNotFound({ taskId })
  })

  const version = Effect.fn("Upgrades.version")(
    function*(projectId: ProjectId, deviceId: DeviceId, module: string = defaultModule) {
      yield* devices.get(projectId, { deviceId })
      return versionOf(yield* store.versions(deviceId), module)
    }
  )

  const diagnose = Effect.fn("Upgrades.diagnose")(
    function*(projectId: ProjectId, deviceId: DeviceId, module: string = defaultModule) {
      const { device } = yield* devices.get(projectId, { deviceId })
      const currentVersion = versionOf(yield* store.versions(deviceId), module)
      const open = (yield* store.unfinished([deviceId], module))[0]
      const newest = Option.getOrUndefined(yield* store.record(deviceId))
      const assignment = open ?? (newest?.task.module === module ? newest : undefined)
      const at = yield* Clock.currentTimeMillis
      return { ...explain(assignment, device.status, at), assignment, currentVersion } satisfies Diagnosis
    }
  )

  const report = Effect.fnUntraced(function*(reports: ReadonlyArray<UpgradeReport>) {
    const versions = reports.flatMap((said) =>
      said._tag === "Inform"
        ? [{ deviceId: said.device.deviceId, module: said.module, version: said.version, at: said.at }]
        : []
    )
    if (versions.length > 0) yield* untilStored(store.reportVersions(versions))
    const deviceIds = [...new Set(reports.map(({ device }) => device.deviceId))]
    const open = yield* untilStored(store.unfinished(deviceIds))
    if (open.length === 0) return
    const current = new Map(
      open.map((assignment) => [`${assignment.record.deviceId} ${assignment.task.module}`, assignment])
    )
    // In the order in which it was said; a record takes its steps one after the other.
    for (const said of reports) {
      const key = `${said.device.deviceId} ${said.module}`
      const assignment = current.get(key)
      if (assignment === undefined) continue
      const event: UpgradeEvent = said._tag === "Inform"
        ? { _tag: "VersionReported", at: said.at, version: said.version }
        : { _tag: "Progressed", at: said.at, step: said.step, description: said.description }
      const [after] = yield* untilStored(take([{ assignment, event }]))
      if (after !== undefined) current.set(key, after)
      if (after === undefined || said._tag !== "Inform" || isFinal(after.record.status) || !isPushed(after)) continue
      // It has come back, or does not know yet; what is due later waits for its turn.
      const { dueAt, status } = after.record
      if (status === 2 || dueAt === null || dueAt <= said.at) yield* untilStored(push(after))
    }
  })

  const fetch = Effect.fnUntraced(function*({ deviceId }: DeviceIdentity, module: string) {
    const [assignment] = yield* store.unfinished([deviceId], module)
    if (assignment === undefined || !isReleased(assignment.task, assignment.record)) return {}
    const at = yield* Clock.currentTimeMillis
    const [after] = yield* take([{ assignment, event: { _tag: "HandedOut", at } }])
    return after === undefined || isFinal(after.record.status) ? {} : upgradeData(after)
  })

  return Upgrades.of({
    createVerifyTask,
    createUpgradeTask,
    task: found,
    verifyTask: Effect.fn("Upgrades.verifyTask")(function*(projectId, firmwareId) {
      yield* firmwares.get(projectId, firmwareId)
      return yield* store.verifyTask(firmwareId)
    }),
    list: Effect.fn("Upgrades.list")(function*(projectId, { name, productKey, ...filter }, page) {
      const { firmware } = yield* firmwares.get(projectId, filter.firmwareId)
      const fits = (productKey === undefined || firmware.productKey === productKey) &&
        (name === undefined || firmware.name.includes(name))
      return fits ? yield* store.listTasks(projectId, filter, page) : { items: [], total: 0 }
    }),
    records: Effect.fn("Upgrades.records")(function*(projectId, taskId, rejected, page) {
      yield* found(projectId, taskId)
      return yield* store.records(taskId, rejected, page)
    }),
    decide,
    cancel,
    cancelDevice,
    confirm,
    confirmDevice,
    start,
    available,
    availableFor,
    step,
    version,
    diagnose,
    report,
    fetch
  })
})

const versionOf = (versions: Readonly<Record<string, string>>, module: string): string =>
  Object.hasOwn(versions, module) ? versions[module]! : ""

const explain = (
  assignment: Assignment | undefined,
  deviceStatus: DeviceStatus,
  at: number
): Pick<Diagnosis, "reason" | "message"> => {
  if (assignment === undefined) return { reason: "no-task", message: "No task is for this device and module" }
  const { record, task } = assignment
  const of = `Task ${task.taskId} to version ${task.version}`
  switch (record.status) {
    case 3:
      return { reason: "succeeded", message: `${of} has succeeded` }
    case 4:
      return record.reason === "timed out"
        ? { reason: "timed-out", message: `${of}: the device took longer than ${task.timeout} seconds` }
        : { reason: "failed", message: `${of} has failed: ${record.reason}` }
    case 5:
      return { reason: "cancelled", message: `${of} was cancelled` }
    case 2:
      return { reason: "upgrading", message: `${of}: the device is at ${record.step} percent` }
  }
  if (!isReleased(task, record)) return { reason: "awaiting-confirmation", message: `${of} awaits confirmation` }
  if (record.failures > 0 && record.dueAt !== null && record.dueAt > at) {
    return { reason: "retry-later", message: `${of} failed (${record.reason}) and is tried again later` }
  }
  if (deviceStatus !== "online") return { reason: "offline", message: `${of} waits until the device is connected` }
  if (record.dueAt !== null && record.dueAt > at) {
    return { reason: "rate-limited", message: `${of} tells ${task.maximumPerMinute} devices a minute; this one later` }
  }
  return { reason: "waiting-for-device", message: `${of} waits for the device to ask, or to report its version` }
}

type TaskRefused = TaskNotFound | TaskState | StoreError
type CreateRefused =
  | InvalidInput
  | FirmwareNotFound
  | FirmwareState
  | DeviceIsUpgrading
  | DevicesNotOfProduct
  | StoreError

export class Upgrades extends Context.Service<Upgrades, {
  /** Tries a firmware on a few devices; answers those that have not the version already. */
  readonly createVerifyTask: (
    projectId: ProjectId,
    firmwareId: number,
    draft: VerifyTaskDraft
  ) => Effect.Effect<ReadonlyArray<DeviceId>, CreateRefused>
  readonly createUpgradeTask: (
    projectId: ProjectId,
    firmwareId: number,
    draft: UpgradeTaskDraft
  ) => Effect.Effect<UpgradeTask, CreateRefused>
  readonly task: (projectId: ProjectId, taskId: number) => Effect.Effect<UpgradeTask, TaskNotFound | StoreError>
  /** The newest one of a firmware. */
  readonly verifyTask: (
    projectId: ProjectId,
    firmwareId: number
  ) => Effect.Effect<Option.Option<UpgradeTask>, FirmwareNotFound | StoreError>
  readonly list: (
    projectId: ProjectId,
    filter: {
      readonly firmwareId: number
      readonly status?: number | undefined
      readonly taskId?: number | undefined
      /** Of the firmware. */
      readonly productKey?: string | undefined
      /** What the name of the firmware contains. */
      readonly name?: string | undefined
    },
    page: PageRequest
  ) => Effect.Effect<Page<UpgradeTask>, FirmwareNotFound | StoreError>
  readonly records: (
    projectId: ProjectId,
    taskId: number,
    rejected: DeviceStatus | undefined,
    page: PageRequest
  ) => Effect.Effect<Page<RecordDetail>, TaskNotFound | StoreError>
  /** Ends a verify task with its result. */
  readonly decide: (projectId: ProjectId, taskId: number, passed: boolean) => Effect.Effect<void, TaskRefused>
  /** Devices of an upgrade task that have begun finish by themselves. */
  readonly cancel: (projectId: ProjectId, taskId: number) => Effect.Effect<void, TaskRefused>
  readonly cancelDevice: (
    projectId: ProjectId,
    taskId: number,
    deviceId: DeviceId
  ) => Effect.Effect<void, RecordNotFound | TaskRefused>
  readonly confirm: (projectId: ProjectId, taskId: number) => Effect.Effect<void, TaskRefused>
  readonly confirmDevice: (
    projectId: ProjectId,
    taskId: number,
    deviceId: DeviceId
  ) => Effect.Effect<void, RecordNotFound | TaskRefused>
  /** Tells a connected device now. */
  readonly start: (
    projectId: ProjectId,
    deviceId: DeviceId,
    taskId: number
  ) => Effect.Effect<void, DeviceNotFound | RecordNotFound | TaskRefused>
  /** What there is for the devices, those that have something. */
  readonly available: (
    projectId: ProjectId,
    deviceIds: ReadonlyArray<DeviceId>,
    module: string
  ) => Effect.Effect<ReadonlyMap<DeviceId, Assignment>, StoreError>
  readonly availableFor: (
    projectId: ProjectId,
    deviceId: DeviceId,
    module?: string
  ) => Effect.Effect<Assignment | undefined, DeviceNotFound | StoreError>
  /** The latest step, of a task or of the newest one; 0 without any. */
  readonly step: (
    projectId: ProjectId,
    deviceId: DeviceId,
    taskId?: number
  ) => Effect.Effect<UpgradeRecord["step"], DeviceNotFound | TaskNotFound | StoreError>
  /** Empty: the device has not reported it. */
  readonly version: (
    projectId: ProjectId,
    deviceId: DeviceId,
    module?: string
  ) => Effect.Effect<string, DeviceNotFound | StoreError>
  readonly diagnose: (
    projectId: ProjectId,
    deviceId: DeviceId,
    module?: string
  ) => Effect.Effect<Diagnosis, DeviceNotFound | StoreError>
  /** What devices have said, in its order. */
  readonly report: (reports: ReadonlyArray<UpgradeReport>) => Effect.Effect<void, StoreError>
  /** What a device that asks is given; without anything, an empty object. */
  readonly fetch: (device: DeviceIdentity, module: string) => Effect.Effect<ReturnType<typeof upgradeData>, StoreError>
}>()("@device-cloud/core/ota/Upgrades") {
  static readonly layer: Layer.Layer<Upgrades, never, OtaStore | Firmwares | Devices | DeviceLink | EventBus> = Layer
    .effect(Upgrades, make)
}
