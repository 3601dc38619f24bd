/**
 * Tells devices of their tasks: of new ones, and of those that the cloud has ended.
 * A node tells the devices that are connected to it. Each second it takes what is
 * due from the store, and passes on what is due for devices of other nodes.
 */
import { Array, Clock, Context, Effect, Layer, Schema } from "effect"
import { NodeBus } from "../cluster/NodeBus.ts"
import type { DeviceSession } from "../connection/DeviceSession.ts"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import { DeviceId } from "../device/Device.ts"
import * as Batcher from "../kernel/Batcher.ts"
import * as Periodic from "../kernel/Periodic.ts"
import { type StoreError, untilStored } from "../kernel/StoreError.ts"
import { type AssignedTask, type JobTask, openStates } from "./Job.ts"
import { JobStore, type TaskChoice } from "./JobStore.ts"

export class JobDelivery extends Context.Service<JobDelivery, {
  /** The device has ended the task. If it is connected, to whichever node, it hears of the next within two seconds. */
  readonly ended: (task: Pick<JobTask, "deviceId" | "jobId">) => void
}>()("@device-cloud/core/job/JobDelivery") {
  static readonly layer: Layer.Layer<JobDelivery, never, JobStore | DeviceSessions | NodeBus> = Layer.effect(
    JobDelivery,
    Effect.suspend(() => make)
  )
}

/** The method that tells a device of a task. */
const jobNotifyMethod = "thing.job.notify"

/**
 * A device may have to be told of tasks that is not connected to the node that has
 * found so: some are due, or the device has ended one there.
 */
const JobDue = NodeBus.channel("job/due", Schema.Struct({ deviceId: DeviceId }))

/** Due tasks that one tick takes: a node tells at most so many devices in a second. */
const claimLimit = 1000
/**
 * Milliseconds until a task is due again of which its device has not been told, or
 * whose time was up while the cloud was away: the device could not report its end.
 */
const claimMillis = 60_000
/** Milliseconds; a node that works notices sooner that the time of a task is up. */
const awayMillis = 10_000
/** Tasks of one device that it is told of at a time; of more when one of them has ended. */
const perDevice = 10
/** Devices whose tasks are read at once, and that are noted as told at once. */
const readLimit = 500

/**
 * The task as a device reads it, which has then been told of it. Public SDKs search
 * for members: the document comes last.
 */
export const taskData = ({ document, jobId, state }: AssignedTask) => ({
  taskId: String(jobId),
  status: (state === "queued" ? "sent" : state).toUpperCase(),
  jobDocument: document
})

const make = Effect.gen(function*() {
  const store = yield* JobStore
  const sessions = yield* DeviceSessions
  const dueElsewhere = yield* JobDue
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  /** Devices that are here: those that have come, or may hear of more that waits, and those that something is due for. */
  let arrived = new Set<DeviceId>()
  let due = new Set<DeviceId>()
  /** Devices that are not here and have ended a task. */
  let endedElsewhere = new Set<DeviceId>()
  /** Devices whose tasks are being read and told, with the jobs whose task they have ended meanwhile. */
  const telling = new Map<DeviceId, Set<number>>()
  /** The jobs whose task has not ended and that a device has heard of on its connection. */
  const heard = new WeakMap<DeviceSession, Set<number>>()
  /** The sessions of devices that may not have heard on their connection of all that waits. */
  const unfinished = new WeakSet<DeviceSession>()

  const told = yield* Batcher.make<ReadonlyArray<AssignedTask>, void, StoreError>({
    capacity: 8192,
    maxBatch: readLimit,
    commit: Effect.fnUntraced(function*(batch: ReadonlyArray<ReadonlyArray<AssignedTask>>) {
      yield* store.told(batch.flat(), yield* Clock.currentTimeMillis)
      return batch.map(() => undefined)
    })
  })

  /** The next tick looks at the device again: at what is untold, or at all that waits. */
  const lookAgain = (deviceId: DeviceId, choice: TaskChoice) => {
    const session = sessions.session(deviceId)
    if (session === undefined) return
    const isAll = choice === "waiting" || unfinished.has(session)
    ;(isAll ? arrived : due).add(deviceId)
  }

  /** Tells a device of its tasks when it listens, and notes it. */
  const tellDevice = Effect.fnUntraced(function*(
    deviceId: DeviceId,
    choice: TaskChoice,
    found: ReadonlyArray<AssignedTask>,
    ended: ReadonlySet<number>
  ) {
    const session = sessions.session(deviceId)
    if (session === undefined) return
    const { connection } = session
    let tasks = found
    if (connection.backlog() !== undefined) {
      for (let room = connection.backlog(); room !== undefined; room = connection.backlog()) yield* room
      // A task may have ended while it waited for the device.
      tasks = yield* untilStored(store.ofDevices([deviceId], choice, perDevice))
    }
    if (choice === "waiting") {
      if (tasks.length === perDevice) unfinished.add(session)
      else unfinished.delete(session)
    }
    const known = heard.get(session) ?? new Set()
    heard.set(session, known)
    for (const task of tasks) {
      const isOpen = openStates.includes(task.state)
      if (isOpen && known.has(task.jobId)) continue
      for (let room = connection.backlog(); room !== undefined; room = connection.backlog()) yield* room
      if (isOpen && ended.has(task.jobId)) continue
      // The device has left, or has come back, while its tasks waited for it.
      if (sessions.session(deviceId) !== session) return
      yield* sessions.deliver(deviceId, { method: jobNotifyMethod, params: { task: taskData(task) } })
      if (isOpen) known.add(task.jobId)
      else known.delete(task.jobId)
    }
    yield* untilStored(told.submit(tasks))
    // What the cloud has ended makes room for further ones, as what the device ends.
    if (tasks.some(({ state }) => !openStates.includes(state))) lookAgain(deviceId, "untold")
  })

  /** Tells a device in a fiber of its own. */
  const tellBeside = (
    deviceId: DeviceId,
    choice: TaskChoice,
    tasks: ReadonlyArray<AssignedTask>,
    ended: ReadonlySet<number>
  ) =>
    runFork(
      tellDevice(deviceId, choice, tasks, ended).pipe(
        Effect.catchCause((cause) => Effect.logWarning("A device could not be told of its tasks", cause)),
        Effect.ensuring(Effect.sync(() => telling.delete(deviceId)))
      )
    )

  /** Reads the tasks of devices and tells each device beside the others. A device that is being told is looked at again. */
  const tellAll = Effect.fnUntraced(function*(deviceIds: ReadonlyArray<DeviceId>, choice: TaskChoice) {
    for (const deviceId of deviceIds) if (telling.has(deviceId)) lookAgain(deviceId, choice)
    const free = deviceIds.filter((deviceId) => !telling.has(deviceId))
    for (let start = 0; start < free.length; start += readLimit) {
      const some = free.slice(start, start + readLimit)
      for (const deviceId of some) telling.set(deviceId, new Set())
      const tasks = yield* Effect.onError(
        store.ofDevices(some, choice, perDevice),
        () => Effect.sync(() => some.forEach((deviceId) => telling.delete(deviceId)))
      )
      const byDevice = Array.groupBy(tasks, (task) => task.deviceId)
      for (const deviceId of some) {
        const ofDevice = byDevice[deviceId]
        if (ofDevice === undefined) telling.delete(deviceId)
        else tellBeside(deviceId, choice, ofDevice, telling.get(deviceId)!)
      }
    }
  })

  /**
   * Takes what is due. Passes devices that are connected to other nodes on, with those of
   * `ended`. The tasks of devices that are not connected wait until they come back.
   */
  const claim = Effect.fnUntraced(function*(isBack: boolean, ended: ReadonlySet<DeviceId>) {
    const now = yield* Clock.currentTimeMillis
    const claimed = yield* store.claimDue({
      now,
      late: isBack ? now - awayMillis : 0,
      again: now + claimMillis,
      limit: claimLimit
    })
    // Devices may have moved while this node stood still: another one tells them.
    for (let doubt = sessions.doubt(); doubt !== undefined; doubt = sessions.doubt()) yield* doubt
    const elsewhere = new Set(ended)
    for (const { deviceId, isOnline } of claimed) {
      if (sessions.session(deviceId) !== undefined) due.add(deviceId)
      else if (isOnline) elsewhere.add(deviceId)
    }
    yield* dueElsewhere.publish([...elsewhere].map((deviceId) => ({ deviceId })))
  })

  const tick = Effect.fnUntraced(function*(isBack: boolean) {
    const ended = endedElsewhere
    endedElsewhere = new Set()
    yield* Effect.onError(
      claim(isBack, ended),
      () => Effect.sync(() => ended.forEach((deviceId) => endedElsewhere.add(deviceId)))
    )
    const [came, told] = [arrived, due]
    arrived = new Set()
    due = new Set()
    const isHere = (deviceId: DeviceId) => sessions.session(deviceId) !== undefined
    const later = Effect.sync(() => {
      came.forEach((deviceId) => arrived.add(deviceId))
      told.forEach((deviceId) => due.add(deviceId))
    })
    yield* tellAll([...came].filter(isHere), "waiting").pipe(
      Effect.andThen(tellAll([...told].filter((deviceId) => isHere(deviceId) && !came.has(deviceId)), "untold")),
      // The store cannot be reached: they are told by a later tick.
      Effect.onError(() => later)
    )
  })

  const arrives = ({ connection }: DeviceSession) => arrived.add(connection.device.deviceId)
  yield* sessions.listen({ attached: arrives, reclaimed: arrives })
  yield* dueElsewhere.subscribe({
    heard: ({ deviceId }) => Effect.sync(() => lookAgain(deviceId, "untold")),
    // What is due is due again in a minute, and a device that ends one task ends others.
    missed: Effect.void
  })
  yield* Periodic.lookingForEnds("Devices could not be told of tasks that are due", tick)

  return JobDelivery.of({
    ended: ({ deviceId, jobId }) => {
      const session = sessions.session(deviceId)
      if (session === undefined) {
        endedElsewhere.add(deviceId)
        return
      }
      heard.get(session)?.delete(jobId)
      telling.get(deviceId)?.add(jobId)
      lookAgain(deviceId, "untold")
    }
  })
})
