/**
 * What happens in projects, counted (docs/decisions/0114-what-a-project-does.md).
 * Whatever counts does so in memory; each node stores its counts every ten seconds.
 */
import { Clock, Context, Effect, Layer, Schedule } from "effect"
import type { InvalidInput } from "../kernel/InvalidInput.ts"
import * as Periodic from "../kernel/Periodic.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"
import {
  activityParts,
  activityRange,
  type ActivitySeries,
  activitySeries,
  hoursKept,
  minuteOf,
  minutesKept
} from "./ActivitySeries.ts"
import { type ActivityCount, type ActivityMeasure, ActivityStore } from "./ActivityStore.ts"

export class ProjectActivity extends Context.Service<ProjectActivity, {
  /**
   * Counts something. Costs a look into a map. It is stored within ten seconds, or lost
   * if the node dies before. Codes of a measure beyond the twentieth in an hour count
   * as `other`.
   */
  readonly count: (
    projectId: ProjectId,
    measure: Exclude<ActivityMeasure, "online">,
    count?: number,
    code?: number | string
  ) => void
  /**
   * Returns what all nodes have counted. `from` and `to`: Unix milliseconds; default:
   * the last three hours. The last ten seconds may be missing.
   */
  readonly series: (
    projectId: ProjectId,
    period: { readonly from?: number | undefined; readonly to?: number | undefined }
  ) => Effect.Effect<ActivitySeries, InvalidInput | StoreError>
}>()("@device-cloud/core/activity/ProjectActivity") {
  static readonly layer: Layer.Layer<ProjectActivity, never, ActivityStore> = Layer.effect(
    ProjectActivity,
    Effect.suspend(() => make)
  )
}

const storeEvery = "10 seconds"
/** Minutes whose counts wait while the store is away. Of more, the oldest are lost. */
const maxMinutes = 15
/** Codes of a measure that a node tells apart in an hour. */
const maxCodes = 20

const pruneEvery = "10 minutes"
/** Counts that are removed at once: some milliseconds. */
const pruneLimit = 5000

const make = Effect.gen(function*() {
  const store = yield* ActivityStore
  const clock = yield* Clock.Clock
  /** Counts that are not stored, by minute, project, and measure with code. */
  let waiting = new Map<number, Map<ProjectId, Map<string, number>>>()
  /** The codes of this hour, by project and measure. */
  const codes = { hour: 0, known: new Map<string, Set<string>>() }
  let sampled = 0

  const boundedCode = (projectId: ProjectId, measure: ActivityMeasure, code: string, minute: number): string => {
    const hour = Math.floor(minute / 60)
    if (codes.hour !== hour) {
      codes.hour = hour
      codes.known.clear()
    }
    const key = `${measure} ${projectId}`
    const known = codes.known.get(key) ?? new Set()
    if (known.has(code)) return code
    if (known.size >= maxCodes) return "other"
    codes.known.set(key, known.add(code))
    return code
  }

  const addTo = (counts: typeof waiting, minute: number, projectId: ProjectId, key: string, count: number) => {
    let ofMinute = counts.get(minute)
    if (ofMinute === undefined) counts.set(minute, ofMinute = new Map())
    let ofProject = ofMinute.get(projectId)
    if (ofProject === undefined) ofMinute.set(projectId, ofProject = new Map())
    ofProject.set(key, (ofProject.get(key) ?? 0) + count)
  }

  const count: ProjectActivity["Service"]["count"] = (projectId, measure, count = 1, code = "") => {
    const minute = minuteOf(clock.currentTimeMillisUnsafe())
    const key = code === "" ? measure : `${measure} ${boundedCode(projectId, measure, String(code), minute)}`
    addTo(waiting, minute, projectId, key, count)
  }

  /** Counts that could not be stored wait again, beside those that have come since. */
  const putBack = (counts: typeof waiting) => {
    for (const [minute, ofMinute] of counts) {
      for (const [projectId, ofProject] of ofMinute) {
        for (const [key, count] of ofProject) addTo(waiting, minute, projectId, key, count)
      }
    }
    const oldestLast = [...waiting.keys()].toSorted((a, b) => b - a)
    for (const minute of oldestLast.slice(maxMinutes)) waiting.delete(minute)
  }

  const storeCounts = Effect.suspend(() => {
    const counts = waiting
    waiting = new Map()
    return counts.size === 0
      ? Effect.void
      : Effect.onError(store.add(countsOf(counts)), () => Effect.sync(() => putBack(counts)))
  })

  const sampleOnline = Effect.gen(function*() {
    const minute = minuteOf(yield* Clock.currentTimeMillis)
    if (minute === sampled) return
    yield* store.sampleOnline(minute)
    sampled = minute
  })

  const storeAll = Effect.andThen(sampleOnline, storeCounts).pipe(
    Effect.catch((error) => Effect.logWarning("What projects do could not be stored", error))
  )

  const prune = Effect.gen(function*() {
    const now = minuteOf(yield* Clock.currentTimeMillis)
    yield* store.prune({ minutes: now - minutesKept - 60, hours: now - hoursKept - 60, limit: pruneLimit }).pipe(
      Effect.repeat({ while: (removed) => removed === pruneLimit, schedule: Schedule.spaced("50 millis") })
    )
  }).pipe(Effect.catch((error) => Effect.logWarning("What projects did could not be forgotten", error)))

  yield* Effect.addFinalizer(() => Effect.timeoutOption(storeAll, "2 seconds"))
  yield* storeAll.pipe(Periodic.every(storeEvery))
  yield* prune.pipe(Periodic.every(pruneEvery))

  return ProjectActivity.of({
    count,
    series: Effect.fn("ProjectActivity.series")(function*(projectId, period) {
      const range = yield* activityRange(period, yield* Clock.currentTimeMillis)
      const sums = yield* Effect.forEach(activityParts(range), (part) => store.read({ projectId, ...part }))
      return activitySeries(range, sums.flat())
    })
  })
})

const countsOf = (
  counts: ReadonlyMap<number, ReadonlyMap<ProjectId, ReadonlyMap<string, number>>>
): ReadonlyArray<ActivityCount> =>
  [...counts].flatMap(([minute, ofMinute]) =>
    [...ofMinute].flatMap(([projectId, ofProject]) =>
      [...ofProject].map(([key, count]): ActivityCount => {
        const [measure, code = ""] = key.split(" ") as [ActivityMeasure, string?]
        return { projectId, minute, measure, code, count }
      })
    )
  )
