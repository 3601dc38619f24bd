/**
 * Manages scenes, and says why they do what they do.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { DeviceNotFound } from "../device/Device.ts"
import { DeviceStore } from "../device/DeviceStore.ts"
import { Identifiers } from "../kernel/Identifiers.ts"
import { decodeInput, type InvalidInput } from "../kernel/InvalidInput.ts"
import { type Page, paged, type PageRequest } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { ProductStore } from "../product/ProductStore.ts"
import { type ProjectId, ProjectNotFound } from "../project/Project.ts"
import type { QuotaExceeded } from "../project/Quota.ts"
import { Quotas } from "../project/Quotas.ts"
import { ShadowStore } from "../shadow/ShadowStore.ts"
import { ModelCache } from "../thing-model/ModelCache.ts"
import { nextTime } from "./definition/CronExpression.ts"
import {
  isPaused,
  type Scene,
  type SceneFilter,
  SceneNameTaken,
  SceneNotFound,
  type SceneRules,
  type SceneStatus,
  type SceneTimer,
  SceneTimeZone,
  TooManyExecutions
} from "./definition/Scene.ts"
import { checkRules } from "./definition/SceneCheck.ts"
import { readRules, SceneDraft } from "./definition/SceneDraft.ts"
import { SceneId } from "./definition/SceneId.ts"
import { SceneLimits } from "./definition/SceneLimits.ts"
import { SceneStore } from "./definition/SceneStore.ts"
import type { Trigger } from "./definition/Trigger.ts"
import { gatherFacts } from "./evaluation/GatherFacts.ts"
import { upcomingTimes } from "./definition/CronExpression.ts"
import { type SampleEvent, sampleEvent } from "./evaluation/SampleEvent.ts"
import { evaluate, type Verdict } from "./evaluation/SceneEvaluator.ts"
import { backlogReason } from "./execution/BacklogWatch.ts"
import type { Execution } from "./execution/Execution.ts"
import { ExecutionStore } from "./execution/ExecutionStore.ts"
import { SceneExtensions } from "./execution/SceneExtensions.ts"
import { WebhookClient } from "./execution/WebhookClient.ts"
import { WebhookPace, webhookTarget } from "./execution/WebhookPace.ts"
import { SceneBacklog } from "./matching/SceneBacklog.ts"
import { cycleWarnings } from "./matching/SceneCycles.ts"
import { SceneTriggers } from "./matching/SceneTriggers.ts"
import { treeWarnings } from "./matching/TreeWarnings.ts"
import { waitingWarnings } from "./matching/WaitingWarnings.ts"

/** What became of a change. */
export interface ChangedScene {
  readonly scene: Scene
  /** Sentences: what of the scene does not fit any more, and what it may lead to, such as firing itself. */
  readonly warnings: ReadonlyArray<string>
}

/** What an event would do. */
export interface Explanation extends Verdict {
  readonly scene: Scene
  /** Sentences about limits that would stop what it does. */
  readonly warnings: ReadonlyArray<string>
}

type Refused = InvalidInput | SceneNameTaken | StoreError

export class Scenes extends Context.Service<Scenes, {
  /**
   * Creates a scene. Fails with `InvalidInput`, which names every problem, unless
   * the products, devices and scenes that it names exist in the project, its
   * comparisons and values fit their thing models, and its custom conditions and
   * actions are registered.
   */
  readonly create: (
    projectId: ProjectId,
    draft: SceneDraft
  ) => Effect.Effect<ChangedScene, ProjectNotFound | QuotaExceeded | Refused>
  /**
   * Replaces the whole scene: what the draft leaves out is empty afterwards. Fails
   * as `create` does, but not for parts that the scene has had: if what they name
   * is gone, that is a warning.
   */
  readonly update: (
    projectId: ProjectId,
    sceneId: SceneId,
    draft: SceneDraft
  ) => Effect.Effect<ChangedScene, SceneNotFound | Refused>
  /** Enables or disables the scene. */
  readonly setStatus: (
    projectId: ProjectId,
    sceneId: SceneId,
    status: SceneStatus
  ) => Effect.Effect<void, SceneNotFound | StoreError>
  /** Removes the scene with its executions. */
  readonly remove: (projectId: ProjectId, sceneId: SceneId) => Effect.Effect<void, SceneNotFound | StoreError>
  /** Returns the scene. */
  readonly get: (projectId: ProjectId, sceneId: SceneId) => Effect.Effect<Scene, SceneNotFound | StoreError>
  /** Returns a page of the scenes of the project, newest first. */
  readonly list: (
    projectId: ProjectId,
    filter: SceneFilter,
    page: PageRequest
  ) => Effect.Effect<Page<Scene>, InvalidInput | StoreError>
  /**
   * Runs the actions of the scene whatever its triggers and conditions say, also
   * when it is disabled. Returns the id of the execution. Fails with
   * `TooManyExecutions` if as many executions of the project wait as may.
   */
  readonly run: (
    projectId: ProjectId,
    sceneId: SceneId
  ) => Effect.Effect<string, SceneNotFound | TooManyExecutions | StoreError>
  /** Returns a page of the latest 100 executions, newest first. */
  readonly executions: (
    projectId: ProjectId,
    sceneId: SceneId,
    page: PageRequest
  ) => Effect.Effect<Page<Execution>, InvalidInput | SceneNotFound | StoreError>
  /** Returns what the event would do if it happened now. Nothing is done. */
  readonly explain: (
    projectId: ProjectId,
    sceneId: SceneId,
    sample: SampleEvent
  ) => Effect.Effect<Explanation, SceneNotFound | DeviceNotFound | InvalidInput | StoreError>
  /**
   * Returns the next `count` times of a cron expression, Unix milliseconds; fewer if no
   * more come. `timeZone`: an IANA name; default {@link SceneTimeZone}.
   */
  readonly upcoming: (
    cron: string,
    count: number,
    timeZone?: string
  ) => Effect.Effect<{ readonly times: ReadonlyArray<number>; readonly timeZone: string }, InvalidInput>
}>()("@device-cloud/core/scene/Scenes") {
  static readonly layer: Layer.Layer<
    Scenes,
    never,
    | Quotas
    | SceneStore
    | ExecutionStore
    | ProductStore
    | DeviceStore
    | ShadowStore
    | ModelCache
    | WebhookClient
    | WebhookPace
    | SceneTriggers
    | SceneBacklog
    | Identifiers
  > = Layer.effect(Scenes, Effect.suspend(() => make))
}

const decodeDraft = decodeInput(SceneDraft)

const make = Effect.gen(function*() {
  const store = yield* SceneStore
  const quotas = yield* Quotas
  const log = yield* ExecutionStore
  const products = yield* ProductStore
  const devices = yield* DeviceStore
  const shadows = yield* ShadowStore
  const validators = yield* ModelCache
  const { refuse: refuseUrl } = yield* WebhookClient
  const pace = yield* WebhookPace
  const triggers = yield* SceneTriggers
  const backlog = yield* SceneBacklog
  const limits = yield* SceneLimits
  const identifiers = yield* Identifiers
  const timeZone = yield* SceneTimeZone
  const extensions = yield* SceneExtensions
  const sources = { devices, shadows, timeZone, conditions: extensions.conditions }

  const warningsOf = Effect.fnUntraced(function*(scene: Scene) {
    const cycles = yield* cycleWarnings({ scenes: store, devices, triggers }, scene)
    return [...cycles, ...yield* treeWarnings(store, limits, scene), ...yield* waitingWarnings(triggers, scene)]
  })

  const get = Effect.fn("Scenes.get")(function*(projectId: ProjectId, sceneId: SceneId) {
    return yield* Effect.fromOption(yield* store.get(projectId, sceneId), () => new SceneNotFound({ sceneId }))
  })

  /** Gives cron triggers their ids. Those that were there before keep theirs. */
  const withCronIds = Effect.fnUntraced(function*(rules: SceneRules, before: SceneRules | undefined) {
    const kept = (before?.triggers ?? []).filter((trigger) => trigger._tag === "Cron")
    const named: Array<Trigger> = []
    for (const trigger of rules.triggers) {
      if (trigger._tag !== "Cron") {
        named.push(trigger)
        continue
      }
      const place = kept.findIndex(({ cron, timeZone }) => cron === trigger.cron && timeZone === trigger.timeZone)
      const cronId = place < 0 ? yield* identifiers.sceneId : kept.splice(place, 1)[0]!.cronId
      named.push({ ...trigger, cronId })
    }
    return { ...rules, triggers: named }
  })

  /** Reads the rules of a draft and checks that they fit the project. `misfits` as `checkRules` returns them. */
  const rulesOf = Effect.fnUntraced(
    function*(projectId: ProjectId, sceneId: SceneId, draft: SceneDraft, now: number, before: Scene | undefined) {
      const read = yield* readRules(draft, extensions)
      const misfits = yield* checkRules(
        { products, devices, validators, scenes: store, custom: extensions, refuseUrl },
        { projectId, sceneId, rules: read, before, timeZone, now }
      )
      return { rules: yield* withCronIds(read, before), misfits }
    }
  )

  const timersOf = ({ projectId, sceneId, status, triggers }: Scene, now: number): ReadonlyArray<SceneTimer> =>
    triggers.flatMap((trigger) =>
      trigger._tag === "Cron"
        ? [{
          cronId: trigger.cronId,
          sceneId,
          projectId,
          cron: trigger.cron,
          timeZone: trigger.timeZone ?? null,
          dueAt: status === "enable" ? nextTime(trigger.cron, trigger.timeZone ?? timeZone, now) : null
        }]
        : []
    )

  const create = Effect.fn("Scenes.create")(function*(projectId: ProjectId, input: SceneDraft) {
    const draft = yield* decodeDraft(input)
    const now = yield* Clock.currentTimeMillis
    const sceneId = SceneId.make(yield* identifiers.sceneId)
    const { rules } = yield* rulesOf(projectId, sceneId, draft, now, undefined)
    const scene: Scene = {
      ...rules,
      sceneId,
      projectId,
      name: draft.name,
      desc: draft.desc ?? "",
      status: draft.status,
      pausedUntil: null,
      revision: 1,
      createdAt: now,
      updatedAt: now
    }
    const warnings = yield* warningsOf(scene)
    const insert = store.insert(scene, timersOf(scene, now))
    const outcome = yield* quotas.within(projectId, "scenes", 1, insert)
    if (outcome === "taken") return yield* new SceneNameTaken({ name: draft.name })
    if (outcome === "no-project") return yield* new ProjectNotFound({ projectId })
    yield* triggers.changed(undefined, scene)
    return { scene, warnings }
  })

  /** Stores what `next` makes of the scene. Begins again if somebody else has changed the scene meanwhile. */
  const change = Effect.fnUntraced(function*<E>(
    projectId: ProjectId,
    sceneId: SceneId,
    next: (before: Scene, now: number) => Effect.Effect<Scene, E>
  ): Effect.fn.Return<Scene, E | SceneNotFound | SceneNameTaken | StoreError> {
    while (true) {
      const before = yield* get(projectId, sceneId)
      const now = yield* Clock.currentTimeMillis
      const after: Scene = {
        ...yield* next(before, now),
        pausedUntil: null,
        revision: before.revision + 1,
        updatedAt: now
      }
      const outcome = yield* store.update(after, timersOf(after, now))
      if (outcome === "taken") return yield* new SceneNameTaken({ name: after.name })
      if (outcome === "changed") continue
      yield* triggers.changed(before, after)
      return after
    }
  })

  const update = Effect.fn("Scenes.update")(function*(projectId: ProjectId, sceneId: SceneId, input: SceneDraft) {
    const draft = yield* decodeDraft(input)
    let misfits: ReadonlyArray<string> = []
    const scene = yield* change(
      projectId,
      sceneId,
      Effect.fnUntraced(function*(before, now) {
        const read = yield* rulesOf(projectId, sceneId, draft, now, before)
        misfits = read.misfits
        return { ...before, ...read.rules, name: draft.name, desc: draft.desc ?? "", status: draft.status }
      })
    )
    return { scene, warnings: [...misfits, ...yield* warningsOf(scene)] }
  })

  const setStatus = Effect.fn("Scenes.setStatus")(
    function*(projectId: ProjectId, sceneId: SceneId, status: SceneStatus) {
      yield* change(projectId, sceneId, (before) => Effect.succeed({ ...before, status })).pipe(
        // The name stays.
        Effect.catchTag("SceneNameTaken", Effect.die)
      )
    }
  )

  const remove = Effect.fn("Scenes.remove")(function*(projectId: ProjectId, sceneId: SceneId) {
    const removed = yield* Effect.fromOption(
      yield* store.remove(projectId, sceneId),
      () => new SceneNotFound({ sceneId })
    )
    yield* triggers.changed(removed, undefined)
  })

  const run = Effect.fn("Scenes.run")(function*(projectId: ProjectId, sceneId: SceneId) {
    const scene = yield* get(projectId, sceneId)
    const at = yield* Clock.currentTimeMillis
    const execution = triggers.execution(scene, { _tag: "RunByHand", at }, at)
    if (!backlog.admit(execution)) return yield* new TooManyExecutions({ limit: limits.pending })
    yield* log.enqueue([execution])
    triggers.wake()
    return execution.executionId
  })

  const executions = Effect.fn("Scenes.executions")(
    function*(projectId: ProjectId, sceneId: SceneId, page: PageRequest) {
      yield* get(projectId, sceneId)
      return yield* paged(log.executions)(sceneId, page)
    }
  )

  const explain = Effect.fn("Scenes.explain")(function*(projectId: ProjectId, sceneId: SceneId, sample: SampleEvent) {
    const scene = yield* get(projectId, sceneId)
    const { after, event } = yield* sampleEvent(sources, scene, sample)
    const facts = after(yield* gatherFacts(sources, scene, event))
    const verdict = evaluate(scene, event, facts)
    const blocked = yield* blockedBy(scene, facts.now)
    return {
      scene,
      ...verdict,
      ...blocked === undefined ? {} : { fires: false, reason: blocked },
      warnings: [...yield* treeWarnings(store, limits, scene), ...paceWarnings(scene, facts.now)]
    }
  })

  /** Says which webhooks of the scene would have to wait. */
  const paceWarnings = ({ actions, projectId }: Scene, now: number): ReadonlyArray<string> => [
    ...new Set(actions.flatMap((action) => {
      if (action._tag !== "Webhook") return []
      const target = webhookTarget(projectId, action.url)
      const turn = pace.turn(target, now)
      return turn === null ? [] : [`Webhooks to ${target.host} wait until ${new Date(turn).toISOString()}`]
    }))
  ]

  /** Returns why the scene does not fire now, whatever happens. */
  const blockedBy = Effect.fnUntraced(function*({ pausedUntil, projectId, status }: Scene, now: number) {
    if (status === "disable") return "The scene is disabled"
    if (isPaused(pausedUntil, now)) {
      return `The scene is paused until ${new Date(pausedUntil).toISOString()}: it has run too often`
    }
    const pending = (yield* log.countPending([projectId], limits.pending)).get(projectId) ?? 0
    return pending < limits.pending ? undefined : backlogReason(limits)
  })

  const upcoming: Scenes["Service"]["upcoming"] = Effect.fn("Scenes.upcoming")(
    function*(cron, count, own = timeZone) {
      const after = yield* Clock.currentTimeMillis
      return { timeZone: own, times: yield* Effect.fromResult(upcomingTimes({ cron, timeZone: own, after, count })) }
    }
  )

  const list = paged(store.list)

  return Scenes.of({ create, update, setStatus, remove, get, list, run, executions, explain, upcoming })
})
