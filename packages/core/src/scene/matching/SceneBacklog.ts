/**
 * Keeps the executions of each project that wait within a bound. A report must
 * not wait for a count, so each node counts ahead: from the number that was
 * stored when it was last counted, it knows how many more it may store.
 * `BacklogWatch` counts again (docs/decisions/0051-budgets-of-scenes.md).
 */
import { Context, Effect, Layer, Queue } from "effect"
import type { ProjectId } from "../../project/Project.ts"
import { SceneLimits } from "../definition/SceneLimits.ts"
import type { SceneId } from "../definition/SceneId.ts"
import type { NewExecution } from "./NewExecution.ts"

/** What this node has not stored of one scene, lately. */
export interface Dropped {
  readonly latest: NewExecution
  readonly count: number
  /** When the first was dropped, Unix milliseconds. */
  readonly since: number
}

export class SceneBacklog extends Context.Service<SceneBacklog, {
  /**
   * Returns whether the execution may be stored, and counts it as stored. False:
   * as many of its project wait as may; it has been counted as dropped.
   */
  readonly admit: (execution: NewExecution) => boolean
  /** Returns the projects whose executions must be counted. */
  readonly uncounted: () => ReadonlyArray<ProjectId>
  /** So many executions of the project wait. */
  readonly counted: (projectId: ProjectId, pending: number) => void
  /** Gets an element when projects should be counted at once. */
  readonly calls: Queue.Queue<void>
  /** Returns how many executions were dropped since the last call. */
  readonly takeDropped: () => number
  /** Returns scenes whose executions were dropped since they were `noted`, not oftener than every ten seconds. */
  readonly unnoted: (now: number) => ReadonlyArray<Dropped>
  /** It has been written down what was dropped. */
  readonly noted: (dropped: ReadonlyArray<Dropped>, now: number) => void
}>()("@device-cloud/core/scene/matching/SceneBacklog") {
  static readonly layer: Layer.Layer<SceneBacklog> = Layer.effect(SceneBacklog, Effect.suspend(() => make))
}

interface Room {
  /** How many executions the project had room for when they were counted. */
  given: number
  left: number
  /** Whether the project has asked for room since. */
  isUsed: boolean
}

interface Episode {
  latest: NewExecution
  count: number
  readonly since: number
  /** When, and how many of them, Unix milliseconds. */
  notedAt: number
  notedCount: number
}

/** Scenes of which it is remembered what was dropped. What others drop is only counted. */
const maxEpisodes = 1000
const noteEveryMillis = 10_000
/** After how long without a drop the next one counts from the beginning, milliseconds. */
const episodeMillis = 60_000

const make = Effect.gen(function*() {
  const { pending: limit } = yield* SceneLimits
  const calls = yield* Queue.sliding<void>(1)
  const rooms = new Map<ProjectId, Room>()
  const episodes = new Map<SceneId, Episode>()
  let dropped = 0

  const drop = (execution: NewExecution) => {
    dropped++
    const { at, sceneId } = execution
    const episode = episodes.get(sceneId)
    if (episode !== undefined) {
      episode.latest = execution
      episode.count++
    } else if (episodes.size < maxEpisodes) {
      episodes.set(sceneId, {
        latest: execution,
        count: 1,
        since: at,
        notedAt: Number.NEGATIVE_INFINITY,
        notedCount: 0
      })
    }
  }

  const roomOf = (projectId: ProjectId): Room => {
    const known = rooms.get(projectId)
    if (known !== undefined) return known
    const room = { given: limit, left: limit, isUsed: true }
    rooms.set(projectId, room)
    Queue.offerUnsafe(calls, undefined)
    return room
  }

  return SceneBacklog.of({
    admit: (execution) => {
      const room = roomOf(execution.projectId)
      room.isUsed = true
      if (room.left === 0) {
        drop(execution)
        return false
      }
      room.left--
      // Half is left for what is fired until they are counted.
      if (room.left === room.given >> 1) Queue.offerUnsafe(calls, undefined)
      return true
    },
    uncounted: () => {
      const found: Array<ProjectId> = []
      for (const [projectId, room] of rooms) {
        if (room.isUsed || room.given === 0) found.push(projectId)
        room.isUsed = false
      }
      return found
    },
    counted: (projectId, pending) => {
      const room = rooms.get(projectId)
      if (room === undefined) return
      if (pending === 0 && !room.isUsed) {
        rooms.delete(projectId)
        return
      }
      room.given = Math.max(0, limit - pending)
      room.left = room.given
    },
    calls,
    takeDropped: () => {
      const count = dropped
      dropped = 0
      return count
    },
    unnoted: (now) => {
      const found: Array<Dropped> = []
      for (const [sceneId, { count, latest, notedAt, notedCount, since }] of episodes) {
        if (count > notedCount) {
          if (now - notedAt >= noteEveryMillis) found.push({ latest, count, since })
        } else if (now - latest.at >= episodeMillis) episodes.delete(sceneId)
      }
      return found
    },
    noted: (all, now) => {
      for (const { count, latest } of all) {
        const episode = episodes.get(latest.sceneId)
        if (episode === undefined) continue
        episode.notedAt = now
        episode.notedCount = count
      }
    }
  })
})
