/**
 * Upgrades devices: tasks, what devices say about them, and what is due.
 */
import { Clock, Context, Effect, Layer, Option, Schedule, Schema } from "effect"
import { DeviceId, type DeviceIdentity, type DeviceNotFound, type DeviceStatus } from "../../device/Device.ts"
import { Devices } from "../../device/Devices.ts"
import { Presence } from "../../connection/Presence.ts"
import { EventBus } from "../../events/EventBus.ts"
import { decodeInput, type InvalidInput } from "../../kernel/InvalidInput.ts"
import { DeviceSessions } from "../../connection/DeviceSessions.ts"
import { NodeBus } from "../../cluster/NodeBus.ts"
import type { Page, PageRequest } from "../../kernel/Page.ts"
import type { ProjectId } from "../../project/Project.ts"
import { type StoreError, untilStored } from "../../kernel/StoreError.ts"
import { defaultModule, type Firmware, FirmwareNotFound, FirmwareState } from "../firmware/Firmware.ts"
import { FirmwareFiles } from "../firmware/FirmwareFiles.ts"
import { Firmwares } from "../firmware/Firmwares.ts"
import { OtaStore, type TaskScope } from "./OtaStore.ts"
import { type Diagnosis, explain } from "./UpgradeDiagnosis.ts"
import { upgradeData, upgradeMethod, type UpgradeReport } from "../device/UpgradeMessage.ts"
import { advance, isAborted, isFinal, isReleased, type UpgradeEvent } from "./UpgradeStateMachine.ts"
import {
  type Assignment,
  DeviceIsUpgrading,
  DevicesNotOfProduct,
  type DownloadProtocol,
  type NewTask,
  newTask,
  type RecordDetail,
  RecordNotFound,
  TaskNotFound,
  TaskState,
  type UpgradeRecord,
  type UpgradeTask,
  UpgradeTaskDraft,
  VerifyTaskDraft
} from "./UpgradeTask.ts"

const tickEvery = "1 second"
const claimLimit = 500
/** When what was claimed is due again, unless it has changed; milliseconds. */
const claimMillis = 60_000

const decodeVerifyDraft = decodeInput(VerifyTaskDraft)
const decodeUpgradeDraft = decodeInput(UpgradeTaskDraft)

/** Upgrades that are due for devices of other nodes. */
const UpgradeDue = NodeBus.channel("ota/due", Schema.Struct({ deviceId: DeviceId, taskId: Schema.Int }))

interface Step {
  readonly assignment: Assignment
  readonly event: UpgradeEvent
}

/** The server option that asks for a passed verification before an upgrade task. */
export const RequireVerification = Context.Reference<boolean>("@device-cloud/core/ota/task/RequireVerification", {
  defaultValue: () => false
})

const make = Effect.gen(function*() {
  const store = yield* OtaStore
  const firmwares = yield* Firmwares
  const devices = yield* Devices
  const link = yield* DeviceSessions
  const events = yield* EventBus
  const dueElsewhere = yield* UpgradeDue
  const presence = yield* Presence
  const files = yield* FirmwareFiles
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
        if (isAborted(task)) yield* store.endTask(task.taskId, 4, [1], task.updatedAt)
      }
      pending = again
    }
    return results
  })

  /** What a device is told: its own wish comes before that of the task. */
  const offer = Effect.fnUntraced(
    function*(assignment: Assignment, protocol: DownloadProtocol = assignment.task.downloadProtocol) {
      if (protocol === "https") return upgradeData(assignment)
      const file = yield* files.find(assignment.firmware).pipe(
        Effect.catch((error) =>
          Effect.as(Effect.logError("The file of a firmware could not be found", error), Option.none())
        )
      )
      return upgradeData(assignment, file)
    }
  )

  const isHere = ({ record }: Assignment): boolean => link.session(record.deviceId) !== undefined

  /** Gives devices that are connected here their firmware. */
  const push = Effect.fnUntraced(function*(assignments: ReadonlyArray<Assignment>, protocol?: DownloadProtocol) {
    const at = yield* Clock.currentTimeMillis
    const handedOut = yield* take(assignments.map((assignment) => ({ assignment, event: { _tag: "HandedOut", at } })))
    for (const assignment of handedOut) {
      const { deviceId, status } = assignment.record
      if (status === 2) {
        yield* link.deliver(deviceId, { method: upgradeMethod, params: yield* offer(assignment, protocol) })
      }
    }
  })

  /** Leaves devices that are connected to other nodes to those. */
  const pushElsewhere = (assignments: ReadonlyArray<Assignment>) =>
    dueElsewhere.publish(assignments.map(({ record: { deviceId, taskId } }) => ({ deviceId, taskId }))).pipe(
      // It is due again in a minute.
      Effect.catch((error) => Effect.logWarning("Other nodes could not be told of upgrades", error))
    )

  const isPushed = ({ record, task }: Assignment): boolean => task.upgradePolicy === 1 && isReleased(task, record)

  const tick = Effect.gen(function*() {
    while (true) {
      const now = yield* Clock.currentTimeMillis
      const due = yield* store.claimDue({ now, again: now + claimMillis, limit: claimLimit })
      const told = due.filter((claimed) => claimed.record.status === 1 && isPushed(claimed))
      const here = new Set(told.filter(isHere))
      const elsewhere = new Set(told.filter((claimed) => claimed.isOnline && !here.has(claimed)))
      yield* push([...here])
      if (elsewhere.size > 0) yield* pushElsewhere([...elsewhere])
      yield* take(
        due.flatMap((assignment) =>
          here.has(assignment) || elsewhere.has(assignment) ? [] : [{ assignment, event: { _tag: "Due", at: now } }]
        )
      )
      if (due.length < claimLimit) return
    }
  })

  yield* tick.pipe(
    Effect.catchCause((cause) => Effect.logWarning("Upgrades that are due could not be carried on", cause)),
    Effect.repeat(Schedule.spaced(tickEvery)),
    Effect.forkScoped
  )

  yield* dueElsewhere.subscribe({
    heard: ({ deviceId, taskId }) =>
      link.session(deviceId) === undefined
        ? Effect.void
        : store.record(deviceId, taskId).pipe(
          Effect.flatMap((found) => push(Option.toArray(found))),
          Effect.catch((error) => Effect.logWarning("An upgrade that another node found due was not told", error))
        ),
    // It is due again in a minute.
    missed: Effect.void
  })

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

  const insert = Effect.fnUntraced(function*(firmware: Firmware, task: NewTask, scope: TaskScope) {
    const { firmwareId } = firmware
    if (task.downloadProtocol === "mqtt" && Option.isNone(yield* files.find(firmware))) {
      return yield* new FirmwareState({
        firmwareId,
        reason: "its file is not stored here, and cannot be sent over MQTT"
      })
    }
    const created = yield* store.createTask(task, scope, task.createdAt)
    if (created._tag === "NoFirmware") return yield* new FirmwareNotFound({ firmwareId })
    if (created._tag === "NotVerifiable") {
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
      const task = newTask("verify", firmware, { ...draft, scopeMode: 1 }, at)
      const { deviceIds } = yield* insert(firmware, task, named(draft.deviceIds))
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
      const { task } = yield* insert(
        firmware,
        newTask("upgrade", firmware, draft, at),
        draft.scopeMode === 0 ? { _tag: "All" } : named(draft.deviceIds ?? [])
      )
      return task
    }
  )

  const decide = Effect.fn("Upgrades.decide")(function*(projectId: ProjectId, taskId: number, passed: boolean) {
    const task = yield* found(projectId, taskId)
    if (task.kind !== "verify") return yield* new TaskNotFound({ taskId })
    if (!(yield* store.endTask(taskId, passed ? 2 : 3, [1, 2], yield* Clock.currentTimeMillis))) {
      return yield* new TaskState({ taskId, reason: "it has ended" })
    }
  })

  const cancel = Effect.fn("Upgrades.cancel")(function*(projectId: ProjectId, taskId: number) {
    const { kind } = yield* found(projectId, taskId)
    if (!(yield* store.endTask(taskId, 4, kind === "verify" ? [1, 2] : [1], yield* Clock.currentTimeMillis))) {
      return yield* new TaskState({ taskId, reason: "it has ended" })
    }
  })

  const cancelDevice = Effect.fn("Upgrades.cancelDevice")(
    function*(projectId: ProjectId, taskId: number, deviceId: DeviceId) {
      const assignment = yield* foundRecord(projectId, taskId, deviceId)
      const ended = new TaskState({ taskId, reason: "it has ended for this device" })
      if (isFinal(assignment.record.status)) return yield* ended
      const at = yield* Clock.currentTimeMillis
      const [after] = yield* take([{ assignment, event: { _tag: "Cancelled", at, whole: false } }])
      // The device was faster.
      if (after?.record.status !== 5) return yield* ended
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
      if (confirmed === undefined || !isPushed(confirmed)) return
      yield* isHere(confirmed) ? push([confirmed]) : pushElsewhere([confirmed])
    }
  )

  const start = Effect.fn("Upgrades.start")(function*(projectId: ProjectId, deviceId: DeviceId, taskId: number) {
    yield* devices.get(projectId, { deviceId })
    const assignment = yield* foundRecord(projectId, taskId, deviceId)
    const { record, task } = assignment
    if (isFinal(record.status)) return yield* new TaskState({ taskId, reason: "it has ended for this device" })
    if (!isReleased(task, record)) return yield* new TaskState({ taskId, reason: "it awaits confirmation" })
    if (isHere(assignment)) return yield* push([assignment])
    if (!(yield* presence.connectionsOf([deviceId])).has(deviceId)) {
      return yield* new TaskState({ taskId, reason: "the device is not connected" })
    }
    yield* pushElsewhere([assignment])
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
      if (isHere(after) && (status === 2 || dueAt === null || dueAt <= said.at)) {
        yield* untilStored(push([after], said.protocol))
      }
    }
  })

  const fetch = Effect.fnUntraced(function*({ deviceId }: DeviceIdentity, module: string, protocol?: DownloadProtocol) {
    const [assignment] = yield* store.unfinished([deviceId], module)
    if (assignment === undefined || !isReleased(assignment.task, assignment.record)) return {}
    const at = yield* Clock.currentTimeMillis
    const [after] = yield* take([{ assignment, event: { _tag: "HandedOut", at } }])
    return after === undefined || isFinal(after.record.status) ? {} : yield* offer(after, protocol)
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
  readonly fetch: (
    device: DeviceIdentity,
    module: string,
    protocol?: DownloadProtocol
  ) => Effect.Effect<ReturnType<typeof upgradeData>, StoreError>
}>()("@device-cloud/core/ota/task/Upgrades") {
  static readonly layer: Layer.Layer<
    Upgrades,
    never,
    OtaStore | Firmwares | FirmwareFiles | Devices | DeviceSessions | EventBus | NodeBus | Presence
  > = Layer.effect(Upgrades, make)
}
