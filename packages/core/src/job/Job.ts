/**
 * Jobs: what many devices carry out, each for itself, and how far each is
 * (docs/protocol/jobs.md).
 */
import { Schema } from "effect"
import { DeviceId } from "../device/Device.ts"
import { DomainError } from "../kernel/DomainError.ts"
import { isFiniteJson, type Json } from "../kernel/Json.ts"
import { NonBlankText, Text } from "../kernel/Text.ts"
import { ProductKey } from "../product/Product.ts"
import type { ProjectId } from "../project/Project.ts"

/**
 * What has become of a job on one device. The cloud stores it as `queued` and tells
 * the device (`sent`), which says the next four of itself. `timed_out`: the device
 * has taken longer than the job allows.
 */
export const JobTaskState = Schema.Literals([
  "queued",
  "sent",
  "in_progress",
  "succeeded",
  "failed",
  "rejected",
  "timed_out",
  "cancelled"
])
export type JobTaskState = typeof JobTaskState.Type

/** The states of tasks that have not ended. */
export const openStates: ReadonlyArray<JobTaskState> = ["queued", "sent", "in_progress"]

/** The states that a device says of itself. */
export const reportedStates = ["in_progress", "succeeded", "failed", "rejected"] as const satisfies ReadonlyArray<
  JobTaskState
>

/** `completed`: all tasks have ended. */
export const JobStatus = Schema.Literals(["in_progress", "completed", "cancelled"])
export type JobStatus = typeof JobStatus.Type

/** The document of a job as JSON, in UTF-16 code units. */
const maxDocumentLength = 32_768
/** What a device says about its task as JSON, in UTF-16 code units. */
const maxDetailsLength = 4096
const maxNesting = 16

const object = (maxLength: number) =>
  Schema.Record(Schema.String, Schema.Json).check(
    Schema.makeFilter((value) =>
      isFiniteJson(value, maxNesting) && JSON.stringify(value).length <= maxLength ||
      `Expected an object of at most ${maxLength} characters of JSON and ${maxNesting} levels`
    )
  )

/** What a device has to do, which the application and the device agree on. */
export const JobDocument = object(maxDocumentLength)
/** What a device says about its task. */
export const JobTaskDetails = object(maxDetailsLength)

export const JobDraft = Schema.Struct({
  name: NonBlankText(64),
  description: Schema.optional(Text(256)),
  document: JobDocument,
  /** Seconds that a device may take from its first `in_progress`; 0, the default: any time. */
  timeout: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 604_800 }))),
  /** The devices. Either these or `productKey`. */
  deviceIds: Schema.optional(
    Schema.Array(Text(128).pipe(Schema.decodeTo(DeviceId))).check(Schema.isMinLength(1), Schema.isMaxLength(1000))
  ),
  /** All devices that the product has now. */
  productKey: Schema.optional(Text(128).pipe(Schema.decodeTo(ProductKey)))
})
export interface JobDraft extends Schema.Schema.Type<typeof JobDraft> {}

/** A job that is not stored yet. */
export interface NewJob {
  readonly projectId: ProjectId
  readonly name: string
  readonly description: string
  readonly document: Readonly<Record<string, Json>>
  /** Seconds; 0: any time. */
  readonly timeout: number
  /** The product whose devices have the job; null: the devices were named. */
  readonly productKey: ProductKey | null
  /** Unix milliseconds. */
  readonly createdAt: number
}

export interface Job extends NewJob {
  /** Positive, below 2^53. Devices know it as `taskId`: each has one task of a job. */
  readonly jobId: number
  readonly status: JobStatus
}

/** A job with how many of its tasks are in which state. */
export interface JobDetail {
  readonly job: Job
  readonly counts: Readonly<Record<JobTaskState, number>>
}

/** A job on one device. */
export interface JobTask {
  readonly jobId: number
  readonly deviceId: DeviceId
  readonly state: JobTaskState
  /** Percent, as the device says. */
  readonly progress: number
  readonly details: Readonly<Record<string, Json>>
  /** Unix milliseconds. */
  readonly createdAt: number
  /** Unix milliseconds. */
  readonly updatedAt: number
}

/** A task with what the device has to do. */
export interface AssignedTask extends JobTask {
  readonly document: Readonly<Record<string, Json>>
}

/** What a device says about its task. */
export interface JobTaskReport {
  readonly jobId: number
  readonly deviceId: DeviceId
  readonly state: (typeof reportedStates)[number]
  /** Undefined: as before. */
  readonly progress: number | undefined
  /** Undefined: as before. */
  readonly details: Readonly<Record<string, Json>> | undefined
  /** Unix milliseconds. */
  readonly at: number
}

/** What has become of a report. `ended`: the task had ended, in another state; nothing is stored. */
export type ReportOutcome = "stored" | "ended" | "unknown"

/** Returns what becomes of a report. `before`: the state of the task; undefined: there is none. */
export const outcomeOf = (before: JobTaskState | undefined, { state }: JobTaskReport): ReportOutcome => {
  if (before === undefined) return "unknown"
  return openStates.includes(before) || before === state ? "stored" : "ended"
}

/** There is no such job in the project. */
export class JobNotFound extends DomainError<JobNotFound>()(
  "JobNotFound",
  { jobId: Schema.Int },
  ({ jobId }) => `There is no job ${jobId}`
) {}

/** The job has ended and cannot be cancelled, or has not ended and cannot be removed. */
export class JobStateForbids extends DomainError<JobStateForbids>()(
  "JobStateForbids",
  { jobId: Schema.Int, status: JobStatus },
  ({ jobId, status }) => `Job ${jobId} is ${status}`
) {}

/** These devices do not exist in the project. */
export class JobDevicesNotFound extends DomainError<JobDevicesNotFound>()(
  "JobDevicesNotFound",
  { deviceIds: Schema.Array(Schema.String) },
  ({ deviceIds }) => `There are no devices ${deviceIds.join(", ")}`
) {}
