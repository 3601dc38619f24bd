/**
 * Carries out executions of scenes: decides each by the rules of its scene and
 * the facts, and tries its actions. What a node has claimed and not finished is
 * claimed again after a while, by whichever node comes first.
 */
import { Clock, Effect, Layer, Queue, Schedule } from "effect"
import { DeviceStore } from "../../device/DeviceStore.ts"
import type { DomainEvent } from "../../events/DomainEvent.ts"
import { EventBus } from "../../events/EventBus.ts"
import type { ProjectId } from "../../project/Project.ts"
import { ShadowStore } from "../../shadow/ShadowStore.ts"
import { type StoreError, untilStored } from "../../kernel/StoreError.ts"
import { type ActionOutcome, type Execution, leaseMillis, statusOf } from "./Execution.ts"
import { type Scene, type SceneId, SceneTimeZone } from "../definition/Scene.ts"
import { gatherFacts } from "../evaluation/GatherFacts.ts"
import { SceneActions } from "./SceneActions.ts"
import { nextTime } from "../definition/SceneDocument.ts"
import { evaluate } from "../evaluation/SceneEvaluator.ts"
import { deviceOf } from "../matching/SceneEvent.ts"
import { SceneStore } from "../definition/SceneStore.ts"
import { SceneTriggers } from "../matching/SceneTriggers.ts"

const tickEvery = "1 second"
const claimLimit = 100
/** Executions that one node carries out at the same time. */
const maxRunning = 512
const timerLimit = 500

/** A scene that runs so often in this time is paused for so long. */
const maxFired = 100
const firedWindowMillis = 10_000
const pauseMillis = 60_000

/** How late a timer may be before its time counts as missed, milliseconds. */
const missedAfterMillis = 10_000
/** How far behind a timer may go on from its own time, milliseconds: at most one of its times is made up for. */
const catchUpMillis = 2000

const isDue = ({ nextAt, status }: ActionOutcome, now: number): boolean =>
  status === "pending" && (nextAt === null || nextAt <= now)

const make = Effect.gen(function*() {
  const store = yield* SceneStore
  const triggers = yield* SceneTriggers
  const actions = yield* SceneActions
  const devices = yield* DeviceStore
  const shadows = yield* ShadowStore
  const events = yield* EventBus
  const timeZone = yield* SceneTimeZone
  const scope = yield* Effect.scope
  let free = maxRunning
  /** Executions that are carried out here, by project. */
  const running = new Map<ProjectId, number>()
  /**
   * Projects that got nothing when executions were claimed last: they have as
   * many running as are free, so that there is always room for another one.
   */
  let heldBack: ReadonlySet<ProjectId> = new Set()

  const publish = (executions: ReadonlyArray<{ readonly execution: Execution; readonly scene: Scene }>) =>
    events.publish(executions.map(({ execution, scene }): DomainEvent => ({
      _tag: "SceneExecuted",
      projectId: scene.projectId,
      device: deviceOf(execution.event),
      at: execution.updatedAt,
      sceneId: scene.sceneId,
      sceneName: scene.name,
      executionId: execution.executionId,
      status: execution.status,
      reason: execution.reason
    })))

  const end = (execution: Execution, status: Execution["status"], reason: string, now: number): Execution => ({
    ...execution,
    status,
    reason,
    dueAt: null,
    updatedAt: now
  })

  const pause = Effect.fnUntraced(function*(scene: Scene, now: number) {
    const until = now + pauseMillis
    yield* Effect.logWarning(
      `Scene ${scene.sceneId} (${scene.name}) is paused: ${maxFired} executions in ${firedWindowMillis / 1000} seconds`
    )
    yield* store.pause(scene.sceneId, until)
    yield* triggers.changed(scene, { ...scene, pausedUntil: until })
    return until
  })

  /** What becomes of an execution that nothing was decided about. */
  const decide = Effect.fnUntraced(function*(
    execution: Execution,
    scene: Scene,
    /** How often the scene has fired lately, and until when it is paused. */
    recent: { fired: number; pausedUntil: number | null }
  ) {
    const { event } = execution
    const now = yield* Clock.currentTimeMillis
    if (event._tag !== "RunByHand") {
      if (scene.status === "disable") return end(execution, "skipped", "The scene is disabled", now)
      if (recent.pausedUntil !== null && now < recent.pausedUntil) {
        return end(execution, "paused", `The scene is paused until ${new Date(recent.pausedUntil).toISOString()}`, now)
      }
    }
    const verdict = evaluate(scene, event, yield* untilStored(gatherFacts({ devices, shadows }, scene, event)))
    if (!verdict.fires) return end({ ...execution, verdict }, "not_met", verdict.reason, now)
    if (event._tag !== "RunByHand" && recent.fired >= maxFired) {
      recent.pausedUntil = yield* pause(scene, now)
      const often = `It has run ${recent.fired} times in ${firedWindowMillis / 1000} seconds, and is paused for ${
        pauseMillis / 1000
      }`
      return end({ ...execution, verdict: { ...verdict, fires: false } }, "paused", often, now)
    }
    recent.fired++
    const outcomes = scene.actions.map((action): ActionOutcome => ({
      action,
      status: "pending",
      attempts: 0,
      nextAt: now,
      at: null,
      detail: ""
    }))
    const decided: Execution = { ...execution, verdict, outcomes, reason: verdict.reason, updatedAt: now }
    return outcomes.length === 0
      ? end(decided, "succeeded", verdict.reason, now)
      : { ...decided, status: "running" as const, dueAt: now + leaseMillis }
  })

  const undecidable = (execution: Execution, cause: unknown) =>
    Effect.logError("A scene that was fired could not be decided", cause).pipe(
      Effect.andThen(Clock.currentTimeMillis),
      Effect.map((now) => end(execution, "failed", "Internal error", now))
    )

  const save = Effect.fnUntraced(function*(executions: ReadonlyArray<Execution>) {
    const now = yield* Clock.currentTimeMillis
    return yield* untilStored(store.save(executions, now - firedWindowMillis))
  })

  /** Tries an action and notes its outcome; undefined: another node goes on with it, or the scene is gone. */
  const attempt = Effect.fnUntraced(function*(execution: Execution, scene: Scene, position: number) {
    const outcome = yield* untilStored(actions.attempt(execution, scene, position))
    const outcomes = execution.outcomes.with(position, outcome)
    const now = yield* Clock.currentTimeMillis
    // Another action of this turn follows: the lease begins anew.
    const follows = outcomes.some((later, place) => place > position && isDue(later, now))
    const left = outcomes.flatMap(({ nextAt, status }) => status === "pending" ? [nextAt ?? now] : [])
    const dueAt = left.length === 0 ? null : follows ? now + leaseMillis : Math.min(...left)
    const after: Execution = { ...execution, outcomes, status: statusOf(outcomes), dueAt, updatedAt: now }
    const [saved] = yield* save([after])
    return saved === true ? after : undefined
  })

  /** Tries each action that is due, in order, and notes each outcome before the next. */
  const act = Effect.fnUntraced(function*(claimed: Execution, scene: Scene) {
    let execution = claimed
    for (let position = 0; position < claimed.outcomes.length; position++) {
      if (!isDue(execution.outcomes[position]!, yield* Clock.currentTimeMillis)) continue
      const after = yield* attempt(execution, scene, position)
      if (after === undefined) return
      execution = after
    }
    if (execution.dueAt === null) yield* publish([{ execution, scene }])
  })

  /** Carries an execution on beside the others. */
  const start = (execution: Execution, scene: Scene) => {
    const { projectId } = execution
    free--
    running.set(projectId, (running.get(projectId) ?? 0) + 1)
    return act(execution, scene).pipe(
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

  const runClaimed = Effect.fnUntraced(function*(claimed: ReadonlyArray<Execution>) {
    const sceneIds = [...new Set(claimed.map(({ sceneId }) => sceneId))]
    const scenes = new Map((yield* untilStored(store.find(sceneIds))).map((scene) => [scene.sceneId, scene]))
    const fresh = claimed.filter(({ status }) => status === "pending")
    const now = yield* Clock.currentTimeMillis
    const counts = fresh.length === 0
      ? new Map<SceneId, number>()
      : yield* untilStored(
        store.countFired([...new Set(fresh.map(({ sceneId }) => sceneId))], now - firedWindowMillis)
      )
    const recent = new Map(
      [...scenes.values()].map(({ pausedUntil, sceneId }) => [
        sceneId,
        { fired: counts.get(sceneId) ?? 0, pausedUntil }
      ])
    )
    const decided: Array<{ readonly execution: Execution; readonly scene: Scene }> = []
    const gone: Array<Execution> = []
    for (const execution of claimed) {
      const scene = scenes.get(execution.sceneId)
      if (scene === undefined) gone.push(end(execution, "skipped", "The scene does not exist", now))
      else if (execution.status === "running") yield* start(execution, scene)
      else {
        decided.push({
          execution: yield* decide(execution, scene, recent.get(scene.sceneId)!).pipe(
            // One that cannot be decided does not hold up the others.
            Effect.catchDefect((defect) => undecidable(execution, defect)),
            Effect.catchIf(({ retryable }: StoreError) => !retryable, (error) => undecidable(execution, error))
          ),
          scene
        })
      }
    }
    if (decided.length + gone.length === 0) return
    const saved = yield* save([...decided.map(({ execution }) => execution), ...gone])
    const stored = decided.filter((_, place) => saved[place])
    for (const { execution, scene } of stored) if (execution.dueAt !== null) yield* start(execution, scene)
    yield* publish(stored.filter(({ execution: { dueAt, status } }) => dueAt === null && status !== "not_met"))
  })

  const work = Effect.gen(function*() {
    while (true) {
      if (free === 0) return
      const now = yield* Clock.currentTimeMillis
      // Half of what is free: one claim may be of one project.
      const limit = Math.min(claimLimit, Math.ceil(free / 2))
      heldBack = new Set([...running].flatMap(([projectId, count]) => count >= free ? [projectId] : []))
      const claimed = yield* store.claim({ now, again: now + leaseMillis, limit, except: [...heldBack] })
      if (claimed.length > 0) yield* runClaimed(claimed)
      if (claimed.length < limit) return
    }
  })

  // Each failure leaves what was claimed to the end of its lease.
  yield* work.pipe(
    Effect.catchCause((cause) => Effect.logWarning("Scenes that were fired could not be carried out", cause)),
    Effect.andThen(Queue.take(triggers.wakeUps)),
    Effect.forever,
    Effect.forkScoped
  )
  // For what is due later, and what other nodes have left.
  yield* Effect.sync(triggers.wake).pipe(Effect.repeat(Schedule.spaced(tickEvery)), Effect.forkScoped)

  const tick = Effect.gen(function*() {
    while (true) {
      const now = yield* Clock.currentTimeMillis
      const count = yield* store.tick({
        now,
        limit: timerLimit,
        step: (timer) => {
          const { cron, cronId, dueAt } = timer
          const following = nextTime(cron, timeZone, dueAt)
          const next = following !== null && following < now - catchUpMillis
            ? nextTime(cron, timeZone, now)
            : following
          if (now - dueAt > missedAfterMillis) return { dueAt: next }
          return { dueAt: next, execution: triggers.execution(timer, { _tag: "CronTicked", cronId, at: dueAt }, now) }
        }
      })
      if (count > 0) triggers.wake()
      if (count < timerLimit) return
    }
  })

  yield* tick.pipe(
    Effect.catchCause((cause) => Effect.logWarning("Timers of scenes could not be looked at", cause)),
    Effect.repeat(Schedule.spaced(tickEvery)),
    Effect.forkScoped
  )
})

/** Works for as long as the scope lives. */
export const layer: Layer.Layer<
  never,
  never,
  SceneStore | SceneTriggers | SceneActions | DeviceStore | ShadowStore | EventBus
> = Layer.effectDiscard(make)
