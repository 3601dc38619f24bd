/**
 * Port: what the nodes of a cloud have counted of each project, by minute and by hour.
 */
import { Context, type Effect } from "effect"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"

/**
 * What is counted. `online`: minutes of devices, one for each device that is online in
 * a minute. `accepted` and `refused`: messages of devices. `replied`, `failed` and
 * `expired`: commands by their end. `executed` and `execution-failed`: executions of
 * scenes that have ended.
 */
export type ActivityMeasure =
  | "online"
  | "accepted"
  | "refused"
  | "replied"
  | "failed"
  | "expired"
  | "executed"
  | "execution-failed"

/** How often something has happened in a project. */
export interface ActivityCount {
  readonly projectId: ProjectId
  /** The minute in which it was counted: Unix milliseconds / 60,000. */
  readonly minute: number
  readonly measure: ActivityMeasure
  /** Why; empty where a measure has no codes. */
  readonly code: string
  readonly count: number
}

/** Counts of one interval together. */
export type ActivitySum = Omit<ActivityCount, "projectId" | "minute"> & {
  /** The first minute of the interval. */
  readonly minute: number
}

/** Which counts of a project are read, all in minutes. */
export interface ActivityRange {
  readonly projectId: ProjectId
  /** Inclusive; a multiple of `interval`. */
  readonly from: number
  /** Exclusive. */
  readonly to: number
  /** The length of the intervals. From 60 on it is a multiple of 60, and counts of hours are read. */
  readonly interval: number
}

/** Up to when counts are forgotten, exclusive, in minutes. */
export interface ActivityHorizon {
  /** Of counts by minute. */
  readonly minutes: number
  /** Of counts by hour. */
  readonly hours: number
  /** Counts that one call removes. */
  readonly limit: number
}

/**
 * Laws: each call is one transaction, whatever the number of projects. Each count is
 * kept twice: for its minute and for its hour. Counts of a project go with it.
 */
export class ActivityStore extends Context.Service<ActivityStore, {
  /** Adds counts to those that are there. Counts of projects that do not exist are dropped. */
  readonly add: (counts: ReadonlyArray<ActivityCount>) => Effect.Effect<void, StoreError>
  /**
   * Counts the devices that are online now, for this minute, of all projects. Without
   * effect for a project that has a count of this minute.
   */
  readonly sampleOnline: (minute: number) => Effect.Effect<void, StoreError>
  /** Returns the counts of a project by interval, measure and code, in no order. Leaves out those that are 0. */
  readonly read: (range: ActivityRange) => Effect.Effect<ReadonlyArray<ActivitySum>, StoreError>
  /** Removes old counts. Returns how many. */
  readonly prune: (horizon: ActivityHorizon) => Effect.Effect<number, StoreError>
}>()("@device-cloud/core/activity/ActivityStore") {}
