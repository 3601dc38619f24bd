/**
 * Port: the store of jobs and their tasks.
 */
import { Context, type Effect, type Option } from "effect"
import type { DeviceId } from "../device/Device.ts"
import type { Page, PageRequest } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProductKey } from "../product/Product.ts"
import type { ProjectId } from "../project/Project.ts"
import type {
  AssignedTask,
  Job,
  JobDetail,
  JobTask,
  JobTaskReport,
  JobTaskState,
  NewJob,
  ReportOutcome
} from "./Job.ts"

/** The devices of a new job. */
export type JobScope =
  | { readonly _tag: "Named"; readonly deviceIds: ReadonlyArray<DeviceId> }
  | { readonly _tag: "Product"; readonly productKey: ProductKey }

/** In every case but `Created`, nothing was stored. */
export type JobCreated =
  | { readonly _tag: "Created"; readonly job: Job }
  /** The project has no such devices. */
  | { readonly _tag: "Unknown"; readonly deviceIds: ReadonlyArray<DeviceId> }
  /** There is no such project. */
  | { readonly _tag: "NoProject" }

/**
 * Which tasks of a device. `open`: that have not ended. `untold`: the device has
 * not been told of their state, which the cloud has set. `waiting`: the untold, and
 * those of which the device has been told and has said nothing.
 */
export type TaskChoice = "open" | "untold" | "waiting"

/**
 * Laws: each call is one transaction. A device has at most one task of a job. A task
 * that has ended keeps its state. A new task is untold, and so is one that the cloud
 * has ended after the device was told of it. Tasks go with their device and their
 * job, jobs with their project.
 */
export class JobStore extends Context.Service<JobStore, {
  /**
   * Stores a job with a queued task for each device, the oldest device first; task
   * `n`, from 0, is due `n * pace` milliseconds after the job was created.
   */
  readonly create: (job: NewJob, scope: JobScope, pace: number) => Effect.Effect<JobCreated, StoreError>
  /** Returns a job of the project. */
  readonly get: (projectId: ProjectId, jobId: number) => Effect.Effect<Option.Option<JobDetail>, StoreError>
  /** Returns the jobs of the project, newest first. */
  readonly list: (projectId: ProjectId, page: PageRequest) => Effect.Effect<Page<Job>, StoreError>
  /** Counts the jobs of the project that are in progress. */
  readonly countUnderWay: (projectId: ProjectId) => Effect.Effect<number, StoreError>
  /** Returns the tasks of a job in this state; undefined: in any; by device id. */
  readonly tasks: (
    jobId: number,
    state: JobTaskState | undefined,
    page: PageRequest
  ) => Effect.Effect<Page<JobTask>, StoreError>
  /** Cancels a job that is in progress, with its open tasks, of which those that are not queued are due at `at`. Returns whether it was. */
  readonly cancel: (jobId: number, at: number) => Effect.Effect<boolean, StoreError>
  /** Removes a job without open tasks. Returns false if it has some. */
  readonly remove: (jobId: number) => Effect.Effect<boolean, StoreError>
  /** Returns for each device its oldest tasks of the choice, at most `limit`. Tasks of one job share its document. */
  readonly ofDevices: (
    deviceIds: ReadonlyArray<DeviceId>,
    choice: TaskChoice,
    limit: number
  ) => Effect.Effect<ReadonlyArray<AssignedTask>, StoreError>
  /** Returns the task of a device in a job. */
  readonly task: (deviceId: DeviceId, jobId: number) => Effect.Effect<Option.Option<AssignedTask>, StoreError>
  /**
   * The devices have been told of these states: those that still are as given are
   * told, and queued ones are sent. A queued one that was cancelled meanwhile is
   * untold, and due at `at`.
   */
  readonly told: (tasks: ReadonlyArray<ToldTask>, at: number) => Effect.Effect<void, StoreError>
  /**
   * Stores what devices say about open tasks, each task at most once, and returns
   * what became of each report, in order (`outcomeOf`). A task that begins is due
   * when its time is over.
   */
  readonly report: (
    reports: ReadonlyArray<JobTaskReport>
  ) => Effect.Effect<ReadonlyArray<ReportOutcome>, StoreError>
  /**
   * Takes at most `limit` tasks that are due at `now`, the longest due first, and
   * returns their devices. A task in progress times out and is untold. Tasks of
   * devices that are online are due again at `again`, the others not any more. No
   * two callers get the same task. Tasks in progress that were due before `late` are
   * not taken: they are due again at `again`, as many at a time as the store likes.
   */
  readonly claimDue: (options: {
    readonly now: number
    readonly late: number
    readonly again: number
    readonly limit: number
  }) => Effect.Effect<ReadonlyArray<{ readonly deviceId: DeviceId; readonly isOnline: boolean }>, StoreError>
  /**
   * Removes jobs whose last task ended before `before`, Unix milliseconds, at most
   * `limit`, after their tasks: in several transactions, so that none is long.
   * Returns how many jobs.
   */
  readonly prune: (options: { readonly before: number; readonly limit: number }) => Effect.Effect<number, StoreError>
}>()("@device-cloud/core/job/JobStore") {}

/** A task with the state of which its device has been told. */
export type ToldTask = Pick<JobTask, "jobId" | "deviceId" | "state">
