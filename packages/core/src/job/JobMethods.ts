/**
 * The methods with which devices ask for their tasks and say how far they are
 * (docs/protocol/jobs.md).
 */
import { Clock, Effect, Layer, Option, Schema } from "effect"
import type { DeviceIdentity } from "../device/Device.ts"
import type { Json } from "../kernel/Json.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import * as DeviceMethod from "../uplink/DeviceMethod.ts"
import { DeviceMethods } from "../uplink/DeviceMethods.ts"
import { type DeviceReply, failure, success } from "../uplink/DeviceReply.ts"
import { type JobTask, JobTaskDetails, type JobTaskReport, reportedStates } from "./Job.ts"
import { JobDelivery, taskData } from "./JobDelivery.ts"
import { JobStore } from "./JobStore.ts"

/** Declares the methods. */
export const layer: Layer.Layer<never, never, DeviceMethods | JobDelivery | JobStore> = Layer.effectDiscard(
  Effect.suspend(() => make)
)

/** Stand for all open tasks, and for the oldest of them. */
const listId = "$list"
const nextId = "$next"

/** Tasks in one list: public SDKs read no more. */
const listLimit = 10

/** The task has ended already, in another state. */
const taskEnded = failure(409, "the task has ended")
/** The device has no such task. */
const taskNotFound = failure(404, "task not found")

const Upper = Schema.Literals(["IN_PROGRESS", "SUCCEEDED", "FAILED", "REJECTED"])

const Update = Schema.Struct({
  taskId: Schema.String,
  status: Upper,
  progress: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100 }))),
  statusDetails: Schema.optional(JobTaskDetails)
})

/** Returns the id of a job; undefined: the text names none. */
const jobIdOf = (taskId: string): number | undefined => {
  const jobId = /^\d{1,16}$/.test(taskId) ? Number(taskId) : 0
  return jobId > 0 && Number.isSafeInteger(jobId) ? jobId : undefined
}

const summary = ({ jobId, state }: JobTask): Json => ({ taskId: String(jobId), status: state.toUpperCase() })

type Reporting = DeviceMethod.DeviceRequest<typeof Update.Type>

const make = Effect.gen(function*() {
  const store = yield* JobStore
  const delivery = yield* JobDelivery

  const find = ({ deviceId }: DeviceIdentity, taskId: string) => {
    if (taskId === nextId) {
      return Effect.map(store.ofDevices([deviceId], "open", 1), ([first]) => Option.fromUndefinedOr(first))
    }
    const jobId = jobIdOf(taskId)
    return jobId === undefined ? Effect.succeedNone : store.task(deviceId, jobId)
  }

  const get = Effect.fnUntraced(function*(taskId: string, device: DeviceIdentity) {
    if (taskId === listId) {
      const tasks = yield* store.ofDevices([device.deviceId], "open", listLimit)
      return success({ taskId, tasks: tasks.map(summary) })
    }
    const found = yield* find(device, taskId)
    if (Option.isNone(found)) return success({ taskId })
    yield* store.told([found.value], yield* Clock.currentTimeMillis)
    return success({ taskId, task: taskData(found.value) })
  })

  /** Stores reports, those about one task one after the other. */
  const update = Effect.fnUntraced(function*(
    requests: ReadonlyArray<Reporting>
  ): Effect.fn.Return<ReadonlyArray<DeviceReply>, StoreError> {
    const replies = requests.map(() => taskNotFound)
    for (const round of roundsOf(requests)) {
      const outcomes = yield* store.report(round.map(({ report }) => report))
      round.forEach(({ place, report }, i) => {
        const { taskId } = requests[place]!.request
        replies[place] = outcomes[i] === "stored"
          ? success({ taskId })
          : { ...outcomes[i] === "ended" ? taskEnded : taskNotFound, data: { taskId } }
        if (report.state !== "in_progress") delivery.ended(report)
      })
    }
    return replies
  })

  yield* Effect.orDie((yield* DeviceMethods).register([
    DeviceMethod.request({
      name: "thing.job.get",
      decode: Schema.Struct({ taskId: Schema.String }),
      handle: ({ taskId }, { device }) => get(taskId, device)
    }),
    DeviceMethod.requests({ name: "thing.job.update", decode: Update, handle: update })
  ]))
})

interface PlacedReport {
  readonly report: JobTaskReport
  /** Among the requests. */
  readonly place: number
}

/** Sorts reports into rounds: one with each task at most once, in order. Those that name no job are left out. */
const roundsOf = (requests: ReadonlyArray<Reporting>): ReadonlyArray<ReadonlyArray<PlacedReport>> => {
  const rounds: Array<Array<PlacedReport>> = []
  const counts = new Map<string, number>()
  requests.forEach(({ message, request }, place) => {
    const jobId = jobIdOf(request.taskId)
    if (jobId === undefined) return
    const { deviceId } = message.device
    const key = `${deviceId} ${jobId}`
    const round = counts.get(key) ?? 0
    counts.set(key, round + 1)
    const report: JobTaskReport = {
      jobId,
      deviceId,
      state: reportedStates[Upper.literals.indexOf(request.status)]!,
      progress: request.progress,
      details: request.statusDetails,
      at: message.receivedAt
    }
    ;(rounds[round] ??= []).push({ report, place })
  })
  return rounds
}
