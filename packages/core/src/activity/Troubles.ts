/**
 * Gathers what goes wrong with devices and scenes, so that an operator sees what needs
 * attention (docs/decisions/0114-what-a-project-does.md). Each node stores what it has
 * gathered every ten seconds.
 */
import { Clock, Context, Effect, Layer, Schedule } from "effect"
import * as Periodic from "../kernel/Periodic.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"
import { type Trouble, type TroubleKind, troubleMillis, TroubleStore } from "./TroubleStore.ts"

export class Troubles extends Context.Service<Troubles, {
  /** Notes that something has gone wrong. Does not wait. Of a project and kind it keeps apart 200 subjects in an hour. */
  readonly note: (projectId: ProjectId, kind: TroubleKind, subject: string, detail: string, times?: number) => void
  /** Returns what has gone wrong in the last hour on all nodes: of each kind the worst, at most `limit`. */
  readonly latest: (projectId: ProjectId, limit: number) => Effect.Effect<ReadonlyArray<Trouble>, StoreError>
}>()("@device-cloud/core/activity/Troubles") {
  static readonly layer: Layer.Layer<Troubles, never, TroubleStore> = Layer.effect(
    Troubles,
    Effect.suspend(() => make)
  )
}

const storeEvery = "10 seconds"
/** Subjects of a project and kind that a node stores in an hour. */
const maxSubjects = 200

const pruneEvery = "10 minutes"
const pruneLimit = 1000

const make = Effect.gen(function*() {
  const store = yield* TroubleStore
  const clock = yield* Clock.Clock
  let gathered = new Map<string, Trouble>()
  /** The subjects of this hour, by project and kind. */
  const subjects = { hour: 0, known: new Map<string, Set<string>>() }

  /** Whether there is room for the subject in this hour. */
  const admits = (projectId: ProjectId, kind: TroubleKind, subject: string, now: number): boolean => {
    const hour = Math.floor(now / 3_600_000)
    if (subjects.hour !== hour) {
      subjects.hour = hour
      subjects.known.clear()
    }
    const key = `${kind} ${projectId}`
    const known = subjects.known.get(key) ?? new Set()
    if (known.has(subject)) return true
    if (known.size >= maxSubjects) return false
    subjects.known.set(key, known.add(subject))
    return true
  }

  const note: Troubles["Service"]["note"] = (projectId, kind, subject, detail, times = 1) => {
    const at = clock.currentTimeMillisUnsafe()
    if (!admits(projectId, kind, subject, at)) return
    const key = `${kind} ${projectId} ${subject}`
    const before = gathered.get(key)
    const [all, since] = before === undefined ? [times, at] : [before.times + times, before.since]
    gathered.set(key, { projectId, kind, subject, times: all, detail, since, at })
  }

  const storeGathered = Effect.suspend(() => {
    const troubles = [...gathered.values()]
    gathered = new Map()
    return troubles.length === 0 ? Effect.void : store.note(troubles)
  }).pipe(Effect.catch((error) => Effect.logWarning("What goes wrong in projects could not be stored", error)))

  const prune = Effect.gen(function*() {
    const before = (yield* Clock.currentTimeMillis) - troubleMillis
    yield* store.prune({ before, limit: pruneLimit }).pipe(
      Effect.repeat({ while: (removed) => removed === pruneLimit, schedule: Schedule.spaced("50 millis") })
    )
  }).pipe(Effect.catch((error) => Effect.logWarning("What went wrong in projects could not be forgotten", error)))

  yield* Effect.addFinalizer(() => Effect.timeoutOption(storeGathered, "2 seconds"))
  yield* storeGathered.pipe(Periodic.every(storeEvery))
  yield* prune.pipe(Periodic.every(pruneEvery))

  return Troubles.of({
    note,
    latest: Effect.fnUntraced(function*(projectId, limit) {
      return yield* store.latest(projectId, (yield* Clock.currentTimeMillis) - troubleMillis, limit)
    })
  })
})
