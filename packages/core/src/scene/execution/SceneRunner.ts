/**
 * Carries out executions of scenes: decides each by the rules of its scene and
 * the facts, and attempts its actions. An execution that a node has claimed and
 * not finished is claimed again after its lease, by whichever node comes first
 * (docs/decisions/0020-scenes-through-an-outbox.md).
 */
import { Clock, Effect, Layer, Queue } from "effect"
import { ProjectActivity } from "../../activity/ProjectActivity.ts"
import { Troubles } from "../../activity/Troubles.ts"
import type { DeviceStore } from "../../device/DeviceStore.ts"
import type { DomainEvent } from "../../events/DomainEvent.ts"
import { Feed } from "../../feed/Feed.ts"
import * as Periodic from "../../kernel/Periodic.ts"
import { untilStored } from "../../kernel/StoreError.ts"
import type { ProjectId } from "../../project/Project.ts"
import type { ShadowStore } from "../../shadow/ShadowStore.ts"
import type { Scene } from "../definition/Scene.ts"
import type { SceneId } from "../definition/SceneId.ts"
import { SceneStore } from "../definition/SceneStore.ts"
import { SceneLimits } from "../definition/SceneLimits.ts"
import { deviceOf } from "../matching/SceneEvent.ts"
import { SceneTriggers } from "../matching/SceneTriggers.ts"
import { type ActionOutcome, type Execution, leaseMillis, statusOf } from "./Execution.ts"
import { ExecutionStore } from "./ExecutionStore.ts"
import { SceneActions } from "./SceneActions.ts"
import { type TreeEnd, treeEndReason } from "./SceneTree.ts"
import { end, firedWindowMillis, makeSceneDecisions, type RecentRuns } from "./SceneDecisions.ts"

const claimLimit = 100
/** How many executions one node carries out at the same time. */
const maxRunning = 512

/** Works for as long as the scope lives. */
export const layer: Layer.Layer<
  never,
  never,
  | ProjectActivity
  | Troubles
  | SceneStore
  | ExecutionStore
  | SceneTriggers
  | SceneActions
  | DeviceStore
  | ShadowStore
  | Feed
> = Layer.effectDiscard(Effect.suspend(() => make))

/** An execution and the scene that it is of. */
interface Run {
  readonly execution: Execution
  readonly scene: Scene
}

const isDue = ({ nextAt, status }: ActionOutcome, now: number): boolean =>
  status === "pending" && (nextAt === null || nextAt <= now)

/** A delay puts off all actions that follow it. */
const afterDelay = (outcomes: ReadonlyArray<ActionOutcome>, position: number): ReadonlyArray<ActionOutcome> => {
  const { action, at } = outcomes[position]!
  if (action._tag !== "Delay" || at === null) return outcomes
  const nextAt = at + 1000 * action.seconds
  return outcomes.map((outcome, place) => place > position ? { ...outcome, nextAt } : outcome)
}

/** Custom conditions may take their time: the scenes that have some are decided beside the others. */
const isSlowToDecide = ({ conditions }: Scene): boolean => conditions.some(({ _tag }) => _tag === "Custom")

const toEvent = ({ execution, scene }: Run): DomainEvent => ({
  _tag: "SceneExecuted",
  projectId: scene.projectId,
  device: deviceOf(execution.event),
  at: execution.updatedAt,
  sceneId: scene.sceneId,
  sceneName: scene.name,
  executionId: execution.executionId,
  status: execution.status,
  reason: execution.reason
})

const make = Effect.gen(function*() {
  const scenes = yield* SceneStore
  const store = yield* ExecutionStore
  const triggers = yield* SceneTriggers
  const actions = yield* SceneActions
  const feed = yield* Feed
  const activity = yield* ProjectActivity
  const troubles = yield* Troubles
  const limits = yield* SceneLimits
  const { decide } = yield* makeSceneDecisions
  const scope = yield* Effect.scope
  let free = maxRunning
  /** How many executions are carried out here, by project. */
  const running = new Map<ProjectId, number>()
  /**
   * Projects that got nothing when executions were claimed last: they have as
   * many running as are free, so that there is always room for another one.
   */
  let heldBack: ReadonlySet<ProjectId> = new Set()

  /** Counts an execution that has run actions, or should have. */
  const countEnd = ({ execution: { status }, scene: { projectId, sceneId } }: Run): void => {
    if (status === "succeeded") activity.count(projectId, "executed")
    else if (status === "failed" || status === "loop" || status === "limited") {
      activity.count(projectId, "execution-failed")
      troubles.note(projectId, "execution-failed", sceneId, status)
    }
  }

  /** Stores executions, with an event of each of the runs that has ended. A scene whose conditions do not hold is no news. */
  const save = Effect.fnUntraced(function*(runs: ReadonlyArray<Run>, others: ReadonlyArray<Execution> = []) {
    const now = yield* Clock.currentTimeMillis
    const executions = [...runs.map(({ execution }) => execution), ...others]
    const write = store.save(executions, now - firedWindowMillis)
    const hasEnded = ({ execution: { dueAt, status } }: Run) => dueAt === null && status !== "not_met"
    if (!runs.some(hasEnded)) return yield* untilStored(write)
    const saved = yield* untilStored(
      feed.commit(write, (saved) => runs.filter((run, i) => saved[i] === true && hasEnded(run)).map(toEvent))
    )
    runs.forEach((run, i) => saved[i] === true && hasEnded(run) && countEnd(run))
    return saved
  })

  /** Attempts an action and notes its outcome; undefined: another node has the execution, or the scene is gone. */
  const attempt = Effect.fnUntraced(function*({ execution, scene }: Run, position: number) {
    const outcome = yield* untilStored(actions.attempt(execution, scene, position))
    const now = yield* Clock.currentTimeMillis
    const outcomes = afterDelay(execution.outcomes.with(position, outcome), position)
    // If another action follows at once, the lease begins anew.
    const follows = outcomes.some((later, place) => place > position && isDue(later, now))
    const left = outcomes.flatMap(({ nextAt, status }) => status === "pending" ? [nextAt ?? now] : [])
    const dueAt = left.length === 0 ? null : follows ? now + leaseMillis : Math.min(...left)
    const after: Execution = { ...execution, outcomes, status: statusOf(outcomes), dueAt, updatedAt: now }
    const [saved] = yield* save([{ execution: after, scene }])
    return saved === true ? after : undefined
  })

  /** Attempts each action that is due, in order, and notes each outcome before the next attempt. */
  const act = Effect.fnUntraced(function*({ execution: claimed, scene }: Run) {
    let execution = claimed
    for (let position = 0; position < claimed.outcomes.length; position++) {
      if (!isDue(execution.outcomes[position]!, yield* Clock.currentTimeMillis)) continue
      const after = yield* attempt({ execution, scene }, position)
      if (after === undefined) return
      execution = after
    }
  })

  /** Decides an execution by itself and acts on it. */
  const decideAndAct = Effect.fnUntraced(function*({ execution, scene }: Run, recent: RecentRuns) {
    const run = { execution: yield* decide(execution, scene, recent), scene }
    const [saved] = yield* save([run])
    if (saved === true && run.execution.dueAt !== null) yield* act(run)
  })

  /** Carries an execution out beside the others. */
  const start = (projectId: ProjectId, work: ReturnType<typeof act | typeof decideAndAct>) => {
    free--
    running.set(projectId, (running.get(projectId) ?? 0) + 1)
    return work.pipe(
      Effect.catchCause((cause) => Effect.logError("A scene could not be carried out; it is tried again", cause)),
      Effect.ensuring(Effect.sync(() => {
        free++
        const left = running.get(projectId)! - 1
        if (left === 0) running.delete(projectId)
        else running.set(projectId, left)
        if (free === 1 || (heldBack.has(projectId) && left < free)) triggers.wake()
      })),
      Effect.forkIn(scope)
    )
  }

  /** Finds out how often the scenes of fresh executions have run lately. */
  const recentRuns = Effect.fnUntraced(function*(found: Iterable<Scene>, claimed: ReadonlyArray<Execution>) {
    const fresh = new Set(claimed.flatMap(({ sceneId, status }) => status === "pending" ? [sceneId] : []))
    const now = yield* Clock.currentTimeMillis
    const counts = fresh.size === 0
      ? new Map<SceneId, number>()
      // Those that have fired much later have the time of a clock that was ahead.
      : yield* untilStored(store.countFired([...fresh], now - firedWindowMillis, now + firedWindowMillis))
    return new Map(
      Array.from(found, ({ pausedUntil, sceneId }): [SceneId, RecentRuns] => [
        sceneId,
        { fired: counts.get(sceneId) ?? 0, pausedUntil }
      ])
    )
  })

  /** Finds out which executions nothing has been decided about are of a tree that has ended. */
  const treeEnds = Effect.fnUntraced(function*(claimed: ReadonlyArray<Execution>) {
    const rootIds = new Set(
      claimed.flatMap(({ rootId, status }) => rootId !== null && status === "pending" ? [rootId] : [])
    )
    if (rootIds.size === 0) return new Map<string, TreeEnd>()
    return yield* untilStored(store.endedTrees([...rootIds]))
  })

  const runClaimed = Effect.fnUntraced(function*(claimed: ReadonlyArray<Execution>) {
    const sceneIds = [...new Set(claimed.map(({ sceneId }) => sceneId))]
    const found = new Map((yield* untilStored(scenes.find(sceneIds))).map((scene) => [scene.sceneId, scene]))
    const recent = yield* recentRuns(found.values(), claimed)
    const ends = yield* treeEnds(claimed)
    const now = yield* Clock.currentTimeMillis
    const decided: Array<Run> = []
    const gone: Array<Execution> = []
    for (const execution of claimed) {
      const { projectId, rootId, sceneId, status } = execution
      const scene = found.get(sceneId)
      const treeEnd = rootId === null ? undefined : ends.get(rootId)
      if (scene === undefined) gone.push(end(execution, "skipped", "The scene does not exist", now))
      else if (status === "running") yield* start(projectId, act({ execution, scene }))
      else if (treeEnd !== undefined && rootId !== null) {
        decided.push({ execution: end(execution, "limited", treeEndReason(treeEnd, limits, rootId), now), scene })
      } else if (isSlowToDecide(scene)) {
        yield* start(projectId, decideAndAct({ execution, scene }, recent.get(sceneId)!))
      } else decided.push({ execution: yield* decide(execution, scene, recent.get(sceneId)!), scene })
    }
    if (decided.length + gone.length === 0) return
    const saved = yield* save(decided, gone)
    const stored = decided.filter((_, place) => saved[place])
    for (const run of stored) if (run.execution.dueAt !== null) yield* start(run.scene.projectId, act(run))
  })

  const work = Effect.gen(function*() {
    while (true) {
      if (free === 0) return
      const now = yield* Clock.currentTimeMillis
      // Half of the free places: all that one claim returns may be of one project.
      const limit = Math.min(claimLimit, Math.ceil(free / 2))
      heldBack = new Set([...running].flatMap(([projectId, count]) => count >= free ? [projectId] : []))
      const claimed = yield* store.claim({ now, again: now + leaseMillis, limit, except: [...heldBack] })
      if (claimed.length > 0) yield* runClaimed(claimed)
      // Fewer of several projects: one of them may have more than its share.
      const isShared = claimed.some(({ projectId }) => projectId !== claimed[0]!.projectId)
      if (claimed.length < limit && !isShared) return
    }
  })

  // After a failure, what was claimed waits for the end of its lease.
  yield* work.pipe(
    Effect.catchCause((cause) => Effect.logWarning("Scenes that were fired could not be carried out", cause)),
    Effect.andThen(Queue.take(triggers.wakeUps)),
    Effect.forever({ disableYield: true }),
    Effect.forkScoped
  )
  // Wakes for what is due later, and for what other nodes have left.
  yield* Effect.sync(triggers.wake).pipe(Periodic.looking)
})
