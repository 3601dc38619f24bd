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
import type { AssignedTask } from "./Job.ts"
import { JobStore, type TaskChoice } from "./JobStore.ts"

export class JobDelivery extends Context.Service<JobDelivery, {
  /** Tells the device within a second of what it has not heard of on its connection, if it is connected to this node. */
  readonly tell: (deviceId: DeviceId) => void
}>()("@device-cloud/core/job/JobDelivery") {
  static readonly layer: Layer.Layer<JobDelivery, never, JobStore | DeviceSessions | NodeBus> = Layer.effect(
    JobDelivery,
    Effect.suspend(() => make)
  )
}

/** The method that tells a device of a task. */
const jobNotifyMethod = "thing.job.notify"

/** Tasks are due for a device that is not connected to the node that has found them. */
const JobDue = NodeBus.channel("job/due", Schema.Struct({ deviceId: DeviceId }))

/** Due tasks that one tick takes: a node tells at most so many devices in a second. */
const claimLimit = 1000
/** Milliseconds until a task is due again of which its device has not been told. */
const claimMillis = 60_000
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
  /** Devices that are being told. */
  const telling = new Set<DeviceId>()
  /** The jobs that a device has heard of on its connection, while others wait that it may have heard of before. */
  const heard = new WeakMap<DeviceSession, Set<number>>()

  const told = yield* Batcher.make<ReadonlyArray<AssignedTask>, void, StoreError>({
    capacity: 8192,
    maxBatch: readLimit,
    commit: (batch) =>
      Effect.gen(function*() {
        yield* store.told(batch.flat(), yield* Clock.currentTimeMillis)
        return batch.map(() => undefined)
      })
  })

  /** Tells a device of its tasks when it listens, and notes it. */
  const tellDevice = Effect.fnUntraced(function*(
    deviceId: DeviceId,
    choice: TaskChoice,
    found: ReadonlyArray<AssignedTask>
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
    const known = heard.get(session) ?? new Set()
    if (choice === "waiting") {
      if (tasks.length === perDevice) heard.set(session, known)
      else heard.delete(session)
    }
    for (const task of tasks) {
      if (task.state === "sent" && known.has(task.jobId)) continue
      for (let room = connection.backlog(); room !== undefined; room = connection.backlog()) yield* room
      // The device has left, or has come back, while its tasks waited for it.
      if (sessions.session(deviceId) !== session) return
      yield* sessions.deliver(deviceId, { method: jobNotifyMethod, params: { task: taskData(task) } })
      known.add(task.jobId)
    }
    yield* untilStored(told.submit(tasks))
  })

  /** Tells a device in a fiber of its own. A device that is being told is looked at again. */
  const tellBeside = (tasks: Array.NonEmptyReadonlyArray<AssignedTask>, choice: TaskChoice) => {
    const [{ deviceId }] = tasks
    if (telling.has(deviceId)) return void due.add(deviceId)
    telling.add(deviceId)
    runFork(
      tellDevice(deviceId, choice, tasks).pipe(
        Effect.catchCause((cause) => Effect.logWarning("A device could not be told of its tasks", cause)),
        Effect.ensuring(Effect.sync(() => telling.delete(deviceId)))
      )
    )
  }

  /** Reads the tasks of devices and tells each device beside the others. */
  const tellAll = Effect.fnUntraced(function*(deviceIds: ReadonlyArray<DeviceId>, choice: TaskChoice) {
    for (let start = 0; start < deviceIds.length; start += readLimit) {
      const tasks = yield* store.ofDevices(deviceIds.slice(start, start + readLimit), choice, perDevice)
      for (const ofDevice of Object.values(Array.groupBy(tasks, (task) => task.deviceId))) tellBeside(ofDevice, choice)
    }
  })

  /** Takes what is due. The tasks of devices that are not connected wait until they come back. */
  const claim = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    const claimed = yield* store.claimDue({ now, again: now + claimMillis, limit: claimLimit })
    const elsewhere = new Set<DeviceId>()
    for (const { deviceId, isOnline } of claimed) {
      if (sessions.session(deviceId) !== undefined) due.add(deviceId)
      else if (isOnline) elsewhere.add(deviceId)
    }
    yield* dueElsewhere.publish([...elsewhere].map((deviceId) => ({ deviceId })))
  })

  const tick = Effect.gen(function*() {
    yield* claim
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

  yield* sessions.listen({ attached: ({ connection }) => arrived.add(connection.device.deviceId) })
  yield* dueElsewhere.subscribe({
    heard: ({ deviceId }) =>
      Effect.sync(() => sessions.session(deviceId) === undefined ? undefined : due.add(deviceId)),
    // What is due is due again in a minute.
    missed: Effect.void
  })
  yield* tick.pipe(
    Effect.catchCause((cause) => Effect.logWarning("Devices could not be told of tasks that are due", cause)),
    Periodic.looking
  )

  return JobDelivery.of({
    tell: (deviceId) => {
      const session = sessions.session(deviceId)
      if (session !== undefined) (heard.has(session) ? arrived : due).add(deviceId)
    }
  })
})
