/**
 * Decides what becomes of executions about which nothing has been decided.
 */
import { Clock, Effect } from "effect"
import { DeviceStore } from "../../device/DeviceStore.ts"
import { type StoreError, untilStored } from "../../kernel/StoreError.ts"
import { printable } from "../../kernel/Text.ts"
import { ShadowStore } from "../../shadow/ShadowStore.ts"
import { isPaused, pauseMillis, type Scene, SceneTimeZone } from "../definition/Scene.ts"
import { SceneStore } from "../definition/SceneStore.ts"
import { type FactSources, gatherFacts } from "../evaluation/GatherFacts.ts"
import { evaluate } from "../evaluation/SceneEvaluator.ts"
import { SceneTriggers } from "../matching/SceneTriggers.ts"
import { type ActionOutcome, type Execution, leaseMillis } from "./Execution.ts"
import { SceneExtensions } from "./SceneExtensions.ts"

/** Over how long the executions of a scene are counted, milliseconds. */
export const firedWindowMillis = 10_000
/** How often a scene may run in that time. */
const maxFired = 100

/** How often a scene has run lately, and until when it is paused, Unix milliseconds. A decision updates it. */
export interface RecentRuns {
  fired: number
  pausedUntil: number | null
}

export interface SceneDecisions {
  /** Returns the execution after the decision: it has ended, or its actions are left to do. Never fails for good. */
  readonly decide: (execution: Execution, scene: Scene, recent: RecentRuns) => Effect.Effect<Execution, StoreError>
}

/** Ends an execution. */
export const end = (execution: Execution, status: Execution["status"], reason: string, now: number): Execution => ({
  ...execution,
  status,
  reason,
  dueAt: null,
  updatedAt: now
})

/** Returns the execution with all actions of the scene left to do. */
const withActions = (execution: Execution, { actions }: Scene, now: number): Execution => {
  if (actions.length === 0) return end(execution, "succeeded", execution.reason, now)
  const outcomes = actions.map((action): ActionOutcome => ({
    action,
    status: "pending",
    attempts: 0,
    nextAt: now,
    at: null,
    detail: ""
  }))
  return { ...execution, outcomes, status: "running", dueAt: now + leaseMillis, updatedAt: now }
}

const undecidable = (execution: Execution, cause: unknown) =>
  Effect.logError("A scene that was fired could not be decided", cause).pipe(
    Effect.andThen(Clock.currentTimeMillis),
    Effect.map((now) => end(execution, "failed", "Internal error", now))
  )

const pausedReason = (until: number): string => `The scene is paused until ${new Date(until).toISOString()}`

export const makeSceneDecisions: Effect.Effect<
  SceneDecisions,
  never,
  SceneStore | SceneTriggers | DeviceStore | ShadowStore
> = Effect.gen(function*() {
  const store = yield* SceneStore
  const triggers = yield* SceneTriggers
  const { conditions } = yield* SceneExtensions
  const sources: FactSources = {
    devices: yield* DeviceStore,
    shadows: yield* ShadowStore,
    timeZone: yield* SceneTimeZone,
    conditions
  }

  const pause = Effect.fnUntraced(function*(scene: Scene, now: number) {
    const until = now + pauseMillis
    yield* Effect.logWarning(
      `Scene ${scene.sceneId} (${printable(scene.name)}) is paused: ${maxFired} executions in ${
        firedWindowMillis / 1000
      } seconds`
    )
    yield* store.pause(scene.sceneId, until)
    yield* triggers.changed(scene, { ...scene, pausedUntil: until })
    return until
  })

  const decide = Effect.fnUntraced(function*(execution: Execution, scene: Scene, recent: RecentRuns) {
    const { event } = execution
    const byHand = event._tag === "RunByHand"
    const began = yield* Clock.currentTimeMillis
    if (!byHand) {
      if (scene.status === "disable") return end(execution, "skipped", "The scene is disabled", began)
      if (isPaused(recent.pausedUntil, began)) {
        return end(execution, "paused", pausedReason(recent.pausedUntil), began)
      }
    }
    const unknown = scene.conditions.find((condition) => condition._tag === "Custom" && !conditions.has(condition.uri))
    if (unknown?._tag === "Custom" && !byHand) {
      const reason = `No condition ${unknown.uri} is registered on this node: register it with SceneExtensions.layer`
      return end(execution, "failed", reason, began)
    }
    const verdict = evaluate(scene, event, yield* untilStored(gatherFacts(sources, scene, event)))
    const now = yield* Clock.currentTimeMillis
    if (!verdict.fires) return end({ ...execution, verdict }, "not_met", verdict.reason, now)
    const silent = { ...execution, verdict: { ...verdict, fires: false } }
    if (!byHand && isPaused(recent.pausedUntil, now)) {
      return end(silent, "paused", pausedReason(recent.pausedUntil), now)
    }
    if (!byHand && recent.fired >= maxFired) {
      recent.pausedUntil = yield* pause(scene, now)
      const often = `It has run ${recent.fired} times in ${firedWindowMillis / 1000} seconds, and is paused for ${
        pauseMillis / 1000
      } seconds`
      return end(silent, "paused", often, now)
    }
    recent.fired++
    return withActions({ ...execution, verdict, reason: verdict.reason }, scene, now)
  })

  return {
    decide: (execution, scene, recent) =>
      decide(execution, scene, recent).pipe(
        // An execution that cannot be decided does not hold up the others.
        Effect.catchDefect((defect) => undecidable(execution, defect)),
        Effect.catchIf(({ retryable }: StoreError) => !retryable, (error) => undecidable(execution, error))
      )
  }
})
