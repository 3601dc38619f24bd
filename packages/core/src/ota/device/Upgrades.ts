/**
 * The upgrades of devices: what a device can be upgraded to, how far it is, what
 * it says of itself, and what a user does to one device. `UpgradeTasks` has the
 * tasks as a whole. See docs/protocol/upgrades.md.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import { Presence } from "../../connection/Presence.ts"
import type { DeviceId, DeviceIdentity, DeviceNotFound } from "../../device/Device.ts"
import { Devices } from "../../device/Devices.ts"
import { type StoreError, untilStored } from "../../kernel/StoreError.ts"
import type { ProjectId } from "../../project/Project.ts"
import { moduleNamed } from "../firmware/Firmware.ts"
import { isOlder } from "../firmware/VersionOrder.ts"
import { OtaStore } from "../task/OtaStore.ts"
import { isEarly } from "../task/StartWindow.ts"
import { confirmationRefused, isFinal, isPushed, isReleased, type UpgradeEvent } from "../task/UpgradeStateMachine.ts"
import {
  type Assignment,
  type DownloadProtocol,
  type OtaTask,
  RecordNotFound,
  TaskNotFound,
  TaskState,
  type UpgradeRecord
} from "../task/UpgradeTask.ts"
import { UpgradeTasks } from "../task/UpgradeTasks.ts"
import { type Diagnosis, explain } from "./UpgradeDiagnosis.ts"
import type { upgradeData, UpgradeReport } from "./UpgradeMessage.ts"
import { UpgradePace } from "./UpgradePace.ts"
import { UpgradePush } from "./UpgradePush.ts"
import { postponed, type UpgradeStep, UpgradeSteps } from "./UpgradeSteps.ts"

/** Why a user could not change the upgrade of a device. */
type ChangeError = TaskNotFound | RecordNotFound | TaskState | StoreError

/** Where a member takes a module, none and an empty name mean `default`. */
export class Upgrades extends Context.Service<Upgrades, {
  /** Ends the upgrade of one device in an upgrade task. Fails with `TaskState` if it has ended. */
  readonly cancelDevice: (
    projectId: ProjectId,
    taskId: number,
    deviceId: DeviceId
  ) => Effect.Effect<void, ChangeError>
  /**
   * Lets one device have the firmware, and tells it within a second if the policy of
   * the task is `push`. Nothing happens if it is confirmed already. Fails with
   * `TaskState` if the task needs no confirmation, or if the task or the upgrade of
   * the device has ended.
   */
  readonly confirmDevice: (
    projectId: ProjectId,
    taskId: number,
    deviceId: DeviceId
  ) => Effect.Effect<void, ChangeError>
  /**
   * Tells a device of its upgrade now, whatever the policy of the task. Fails with
   * `TaskState` if the upgrade has ended, awaits confirmation or a stage of the
   * task, or if the device is not connected. The window of the task does not count.
   */
  readonly start: (
    projectId: ProjectId,
    deviceId: DeviceId,
    taskId: number
  ) => Effect.Effect<void, DeviceNotFound | ChangeError>
  /** What the devices can be upgraded to; a device without anything is not in the map. */
  readonly available: (
    projectId: ProjectId,
    deviceIds: ReadonlyArray<DeviceId>,
    module?: string
  ) => Effect.Effect<ReadonlyMap<DeviceId, Assignment>, StoreError>
  /** What one device can be upgraded to. */
  readonly availableFor: (
    projectId: ProjectId,
    deviceId: DeviceId,
    module?: string
  ) => Effect.Effect<Assignment | undefined, DeviceNotFound | StoreError>
  /**
   * The latest step of a device in a task, or in its newest task: percent, or -1 if
   * it has failed. Without a task, the step is 0; fails with `TaskNotFound` if the
   * device is not in the task `taskId`.
   */
  readonly step: (
    projectId: ProjectId,
    deviceId: DeviceId,
    taskId?: number
  ) => Effect.Effect<UpgradeRecord["step"], DeviceNotFound | TaskNotFound | StoreError>
  /** The version of a module that a device has reported; empty: none. */
  readonly version: (
    projectId: ProjectId,
    deviceId: DeviceId,
    module?: string
  ) => Effect.Effect<string, DeviceNotFound | StoreError>
  /** Why the cloud is, or is not, upgrading a module of a device. */
  readonly diagnose: (
    projectId: ProjectId,
    deviceId: DeviceId,
    module?: string
  ) => Effect.Effect<Diagnosis, DeviceNotFound | StoreError>
  /**
   * Takes what devices say of themselves, in the order in which they said it. A
   * device that reports its version joins a dynamic task that has a newer one. If
   * it is to be told of its upgrade, it is told, or gets a turn if its task has
   * told `maximumPerMinute` devices. It retries while the store is away.
   */
  readonly report: (reports: ReadonlyArray<UpgradeReport>) => Effect.Effect<void, StoreError>
  /**
   * The data for a device that asks for its firmware, which moves it to
   * `upgrading`; an empty object if there is nothing for it. `protocol`: how the
   * device wants to download; default: as its task says.
   */
  readonly fetch: (
    device: DeviceIdentity,
    module: string,
    protocol?: DownloadProtocol
  ) => Effect.Effect<ReturnType<typeof upgradeData>, StoreError>
}>()("@device-cloud/core/ota/device/Upgrades") {
  static readonly layer: Layer.Layer<
    Upgrades,
    never,
    OtaStore | UpgradeTasks | UpgradeSteps | UpgradePace | UpgradePush | Devices | Presence
  > = Layer.effect(Upgrades, Effect.suspend(() => make))
}

const make = Effect.gen(function*() {
  const store = yield* OtaStore
  const tasks = yield* UpgradeTasks
  const steps = yield* UpgradeSteps
  const pace = yield* UpgradePace
  const { isHere, offer, push, pushElsewhere } = yield* UpgradePush
  const devices = yield* Devices
  const presence = yield* Presence

  const assignmentOf = Effect.fnUntraced(function*(projectId: ProjectId, taskId: number, deviceId: DeviceId) {
    yield* tasks.get(projectId, taskId)
    return yield* Effect.fromOption(
      yield* store.record(deviceId, taskId),
      () => new RecordNotFound({ taskId, deviceId })
    )
  })

  const cancelDevice = Effect.fn("Upgrades.cancelDevice")(
    function*(projectId: ProjectId, taskId: number, deviceId: DeviceId) {
      const assignment = yield* assignmentOf(projectId, taskId, deviceId)
      if (assignment.task.kind !== "upgrade") return yield* new TaskNotFound({ taskId })
      const ended = new TaskState({ taskId, reason: "it has ended for this device" })
      if (isFinal(assignment.record.status)) return yield* ended
      const at = yield* Clock.currentTimeMillis
      const [after] = yield* steps.take([{ assignment, event: { _tag: "Cancelled", at, whole: false } }])
      // Otherwise the device has ended it in the meantime.
      if (after?.record.status !== "cancelled") return yield* ended
    }
  )

  const confirmDevice = Effect.fn("Upgrades.confirmDevice")(
    function*(projectId: ProjectId, taskId: number, deviceId: DeviceId) {
      const assignment = yield* assignmentOf(projectId, taskId, deviceId)
      const reason = confirmationRefused(assignment.task) ??
        (isFinal(assignment.record.status) ? "it has ended for this device" : undefined)
      if (reason !== undefined) return yield* new TaskState({ taskId, reason })
      yield* steps.take([{ assignment, event: { _tag: "Confirmed", at: yield* Clock.currentTimeMillis } }])
    }
  )

  const start = Effect.fn("Upgrades.start")(function*(projectId: ProjectId, deviceId: DeviceId, taskId: number) {
    yield* devices.get(projectId, { deviceId })
    const assignment = yield* assignmentOf(projectId, taskId, deviceId)
    const { record, task } = assignment
    if (isFinal(record.status)) return yield* new TaskState({ taskId, reason: "it has ended for this device" })
    if (record.isHeld) return yield* new TaskState({ taskId, reason: "the stage of the device is not open" })
    if (!isReleased(task, record)) return yield* new TaskState({ taskId, reason: "it awaits confirmation" })
    if (isHere(assignment)) return yield* push([assignment])
    if (!(yield* presence.connectionsOf([deviceId])).has(deviceId)) {
      return yield* new TaskState({ taskId, reason: "the device is not connected" })
    }
    yield* pushElsewhere([assignment])
  })

  const available = Effect.fn("Upgrades.available")(
    function*(projectId: ProjectId, deviceIds: ReadonlyArray<DeviceId>, module?: string) {
      const open = yield* store.unfinished(deviceIds, moduleNamed(module))
      return new Map(
        open.filter(({ task }) => task.projectId === projectId)
          .map((assignment) => [assignment.record.deviceId, assignment])
      )
    }
  )

  const availableFor = Effect.fn("Upgrades.availableFor")(
    function*(projectId: ProjectId, deviceId: DeviceId, module?: string) {
      yield* devices.get(projectId, { deviceId })
      return (yield* available(projectId, [deviceId], module)).get(deviceId)
    }
  )

  const step = Effect.fn("Upgrades.step")(function*(projectId: ProjectId, deviceId: DeviceId, taskId?: number) {
    yield* devices.get(projectId, { deviceId })
    const found = Option.filter(yield* store.record(deviceId, taskId), ({ task }) => task.projectId === projectId)
    if (Option.isSome(found)) return found.value.record.step
    return taskId === undefined ? 0 : yield* new TaskNotFound({ taskId })
  })

  const version = Effect.fn("Upgrades.version")(
    function*(projectId: ProjectId, deviceId: DeviceId, module?: string) {
      yield* devices.get(projectId, { deviceId })
      return versionOf(yield* store.versions(deviceId), moduleNamed(module))
    }
  )

  const diagnose = Effect.fn("Upgrades.diagnose")(
    function*(projectId: ProjectId, deviceId: DeviceId, name?: string) {
      const module = moduleNamed(name)
      const { device } = yield* devices.get(projectId, { deviceId })
      const currentVersion = versionOf(yield* store.versions(deviceId), module)
      const open = (yield* store.unfinished([deviceId], module))[0]
      const assignment = open ?? Option.getOrUndefined(yield* store.newest(deviceId, module))
      const at = yield* Clock.currentTimeMillis
      return { ...explain(assignment, device.status, at), assignment, currentVersion } satisfies Diagnosis
    }
  )

  /** The reports of an older version, each with the newest dynamic task that its device joins by it. */
  const joiningBy = Effect.fnUntraced(function*(reports: ReadonlyArray<UpgradeReport>) {
    const joining = new Map<UpgradeReport, OtaTask>()
    const products = new Set(reports.map(({ device }) => device.productKey))
    const open = yield* untilStored(store.dynamicTasks([...products]))
    if (open.length === 0) return joining
    for (const said of reports) {
      if (said._tag !== "Inform") continue
      const task = open.findLast(({ module, productKey, version }) =>
        module === said.module && productKey === said.device.productKey && isOlder(said.version, version)
      )
      if (task !== undefined) joining.set(said, task)
    }
    return joining
  })

  const join = Effect.fnUntraced(function*(joining: ReadonlyMap<UpgradeReport, OtaTask>) {
    const devices = new Map<OtaTask, Array<DeviceIdentity>>()
    for (const [{ device }, task] of joining) devices.set(task, [...devices.get(task) ?? [], device])
    const at = yield* Clock.currentTimeMillis
    for (const [{ taskId }, joined] of devices) yield* untilStored(store.join(taskId, joined, at))
  })

  /** Puts off what a device that has just reported is to be told; undefined: it is its turn. */
  const postponementOf = Effect.fnUntraced(function*(assignment: Assignment, at: number) {
    const { record: { dueAt, status }, task } = assignment
    const until = (until: number): UpgradeStep => ({ assignment, event: { _tag: "Postponed", at, until } })
    // A node that has claimed the record may have seen the device away, and would wait for this report:
    // it finds that the record has changed, and leaves it due.
    if (status === "pending" && dueAt !== null && dueAt > at) return until(dueAt)
    if (isEarly(assignment, at)) return yield* postponed(assignment, at)
    const turn = status === "pending" && isHere(assignment) ? pace.take(task, false) : null
    return turn === null ? undefined : until(turn)
  })

  /** Takes the reports for the records that there are. Returns those by which an upgrade has ended. */
  const advance = Effect.fnUntraced(function*(reports: ReadonlyArray<UpgradeReport>) {
    const ending = new Set<UpgradeReport>()
    if (reports.length === 0) return ending
    const deviceIds = [...new Set(reports.map(({ device }) => device.deviceId))]
    const open = yield* untilStored(store.unfinished(deviceIds))
    if (open.length === 0) return ending
    const current = new Map(
      open.map((assignment) => [`${assignment.record.deviceId} ${assignment.task.module}`, assignment])
    )
    // One report after the other: a record takes its steps in the order in which they were said.
    for (const said of reports) {
      const key = moduleKey(said)
      const assignment = current.get(key)
      if (assignment === undefined) continue
      const [after] = yield* untilStored(steps.take([{ assignment, event: eventOf(said) }]))
      if (after === undefined) continue
      current.set(key, after)
      if (isFinal(after.record.status)) {
        ending.add(said)
        continue
      }
      if (said._tag !== "Inform" || !isPushed(after.task, after.record)) continue
      const postponement = yield* postponementOf(after, said.at)
      if (postponement === undefined) {
        if (isHere(after)) yield* untilStored(push([after], said.protocol))
        continue
      }
      const [later] = yield* untilStored(steps.take([postponement]))
      if (later !== undefined) current.set(key, later)
    }
    return ending
  })

  const report = Effect.fnUntraced(function*(reports: ReadonlyArray<UpgradeReport>) {
    const versions = reports.flatMap((said) =>
      said._tag === "Inform"
        ? [{ deviceId: said.device.deviceId, module: said.module, version: said.version, at: said.at }]
        : []
    )
    if (versions.length === 0) return void (yield* advance(reports))
    yield* untilStored(store.reportVersions(versions))
    const joining = yield* joiningBy(reports)
    if (joining.size === 0) return void (yield* advance(reports))
    // What a device has said before it joins a task is not about that task.
    const yetToJoin = new Set([...joining.keys()].map(moduleKey))
    const before: Array<UpgradeReport> = []
    const after: Array<UpgradeReport> = []
    for (const said of reports) {
      if (joining.has(said)) yetToJoin.delete(moduleKey(said))
      ;(yetToJoin.has(moduleKey(said)) ? before : after).push(said)
    }
    yield* advance(before)
    yield* join(joining)
    const ending = yield* advance(after)
    // Until its upgrade ends, a device joins no other task.
    const free = new Map([...joining].filter(([said]) => ending.has(said)))
    if (free.size === 0) return
    yield* join(free)
    yield* advance([...free.keys()])
  })

  const fetch = Effect.fnUntraced(function*({ deviceId }: DeviceIdentity, module: string, protocol?: DownloadProtocol) {
    const [assignment] = yield* store.unfinished([deviceId], module)
    if (assignment === undefined || !isReleased(assignment.task, assignment.record)) return {}
    const at = yield* Clock.currentTimeMillis
    if (isEarly(assignment, at)) return {}
    const [after] = yield* steps.take([{ assignment, event: { _tag: "HandedOut", at } }])
    return after === undefined || isFinal(after.record.status) ? {} : yield* offer(after, protocol)
  })

  return Upgrades.of({
    cancelDevice,
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

const moduleKey = ({ device, module }: UpgradeReport): string => `${device.deviceId} ${module}`

const eventOf = (said: UpgradeReport): UpgradeEvent =>
  said._tag === "Inform"
    ? { _tag: "VersionReported", at: said.at, version: said.version }
    : { _tag: "Progressed", at: said.at, step: said.step, description: said.description }
