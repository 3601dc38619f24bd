/**
 * Manages scenes, and says why they do what they do.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import { deviceIdentity, type DeviceName, DeviceNotFound } from "../../device/Device.ts"
import { DeviceStore } from "../../device/DeviceStore.ts"
import { Identifiers } from "../../kernel/Identifiers.ts"
import { decodeInput, InvalidInput } from "../../kernel/InvalidInput.ts"
import type { Page, PageRequest } from "../../kernel/Page.ts"
import type { ProductKey } from "../../product/Product.ts"
import { ProductStore } from "../../product/ProductStore.ts"
import { type ProjectId, ProjectNotFound } from "../../project/Project.ts"
import type { ShadowSide } from "../../shadow/Shadow.ts"
import { equalJson, type Json } from "../../kernel/Json.ts"
import { ShadowStore } from "../../shadow/ShadowStore.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import { ModelCache } from "../../thing-model/ModelCache.ts"
import type { Execution } from "../execution/Execution.ts"
import { gatherFacts } from "../evaluation/GatherFacts.ts"
import {
  type Scene,
  type SceneFilter,
  SceneId,
  SceneNameTaken,
  SceneNotFound,
  type SceneRules,
  type SceneStatus,
  type SceneTimer,
  SceneTimeZone,
  type Trigger
} from "./Scene.ts"
import { checkRules } from "./SceneCheck.ts"
import { decodeRules, nextTime, SceneDraft } from "./SceneDocument.ts"
import { evaluate, type SceneFacts, type Verdict } from "../evaluation/SceneEvaluator.ts"
import type { ChangedValue } from "../../events/DeviceChange.ts"
import type { SceneEvent } from "../matching/SceneEvent.ts"
import { describeCycle, isFiredBy, type Step } from "./SceneGraph.ts"
import { SceneStore } from "./SceneStore.ts"
import { SceneTriggers } from "../matching/SceneTriggers.ts"
import { WebhookClient } from "../execution/WebhookClient.ts"

const decodeDraft = decodeInput(SceneDraft)

/** Scenes that are looked at for ways back to a new one, and their actions: each may be a look-up. */
const maxVisited = 500
const maxVisitedActions = 1000

/** What became of a change. */
export interface ChangedScene {
  readonly scene: Scene
  /** Sentences about what the scene may lead to. */
  readonly warnings: ReadonlyArray<string>
}

type SampleDevice = { readonly productKey: ProductKey; readonly deviceName: DeviceName }

/** An event that might happen. */
export type SampleEvent =
  | SampleDevice & { readonly _tag: "Property"; readonly properties: Readonly<Record<string, Json>> }
  | SampleDevice & { readonly _tag: "Event"; readonly eventId: string; readonly value: Json }
  | SampleDevice & { readonly _tag: "Status"; readonly status: "online" | "offline" }
  | { readonly _tag: "Cron"; readonly cronId: string | undefined }

/** What an event would do. */
export interface Explanation extends Verdict {
  readonly scene: Scene
}

const make = Effect.gen(function*() {
  const store = yield* SceneStore
  const products = yield* ProductStore
  const devices = yield* DeviceStore
  const shadows = yield* ShadowStore
  const validators = yield* ModelCache
  const webhooks = yield* WebhookClient
  const triggers = yield* SceneTriggers
  const identifiers = yield* Identifiers
  const timeZone = yield* SceneTimeZone

  const get = Effect.fn("Scenes.get")(function*(projectId: ProjectId, sceneId: SceneId) {
    return yield* Effect.fromOption(yield* store.get(projectId, sceneId), () => new SceneNotFound({ sceneId }))
  })

  /** The rules of a draft that fit the project. */
  const rulesOf = Effect.fnUntraced(
    function*(projectId: ProjectId, sceneId: SceneId, draft: SceneDraft, now: number) {
      const rules = yield* decodeRules(draft)
      yield* checkRules(
        { products, devices, validators, scenes: store, webhooks },
        { projectId, sceneId, rules, timeZone, now }
      )
      return rules
    }
  )

  /** Names cron triggers; those that were there before keep their ids. */
  const withCronIds = Effect.fnUntraced(function*(rules: SceneRules, before: SceneRules | undefined) {
    const kept = (before?.triggers ?? []).filter((trigger) => trigger._tag === "Cron")
    const named: Array<Trigger> = []
    for (const trigger of rules.triggers) {
      if (trigger._tag !== "Cron") {
        named.push(trigger)
        continue
      }
      const place = kept.findIndex(({ cron }) => cron === trigger.cron)
      const cronId = place < 0 ? yield* identifiers.sceneId : kept.splice(place, 1)[0]!.cronId
      named.push({ ...trigger, cronId })
    }
    return { ...rules, triggers: named }
  })

  const timersOf = ({ projectId, sceneId, status, triggers }: Scene, now: number): ReadonlyArray<SceneTimer> =>
    triggers.flatMap((trigger) =>
      trigger._tag === "Cron"
        ? [{
          cronId: trigger.cronId,
          sceneId,
          projectId,
          cron: trigger.cron,
          dueAt: status === "enable" ? nextTime(trigger.cron, timeZone, now) : null
        }]
        : []
    )

  /** The scenes that the actions of a scene may fire. */
  const stepsFrom = Effect.fnUntraced(function*(scene: Scene, start: Scene) {
    const steps: Array<Step> = []
    for (const action of scene.actions) {
      if (action._tag === "RunScene") {
        const target = action.sceneId === start.sceneId
          ? start
          : Option.getOrUndefined(yield* store.get(scene.projectId, action.sceneId))
        if (target !== undefined) steps.push({ to: target, by: "action/rule" })
      }
      if (action._tag !== "SetProperties") continue
      const found = Option.getOrUndefined(yield* devices.get(scene.projectId, { deviceId: action.deviceId }))
      if (found === undefined) continue
      yield* triggers.load([found.device.productKey])
      for (const [propertyId, value] of Object.entries(action.items)) {
        const watchers = triggers.watchersOf(found.device, propertyId).filter(({ sceneId }) =>
          sceneId !== start.sceneId
        )
        for (const to of [...watchers, start]) {
          if (isFiredBy(to, found.device, propertyId, value)) {
            steps.push({ to, by: `${found.device.deviceName} ${propertyId}` })
          }
        }
      }
    }
    return steps
  })

  /** Looks, from the scene on, for a way back to it. */
  const warningsOf = Effect.fnUntraced(function*(start: Scene) {
    const steps = new Map<SceneId, ReadonlyArray<Step>>()
    const waiting = [start]
    let actions = 0
    for (const scene of waiting) {
      if (steps.has(scene.sceneId)) continue
      actions += scene.actions.length
      if (steps.size >= maxVisited || actions > maxVisitedActions) break
      const next = yield* stepsFrom(scene, start)
      steps.set(scene.sceneId, next)
      for (const { to } of next) waiting.push(to)
    }
    const cycle = describeCycle(start, steps)
    return cycle === undefined ? [] : [`The scene may fire itself: ${cycle}`]
  })

  const create = Effect.fn("Scenes.create")(function*(projectId: ProjectId, input: SceneDraft) {
    const draft = yield* decodeDraft(input)
    const now = yield* Clock.currentTimeMillis
    const sceneId = SceneId.make(yield* identifiers.sceneId)
    const scene: Scene = {
      ...yield* withCronIds(yield* rulesOf(projectId, sceneId, draft, now), undefined),
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
    const outcome = yield* store.insert(scene, timersOf(scene, now))
    if (outcome === "taken") return yield* new SceneNameTaken({ name: draft.name })
    if (outcome === "no-project") return yield* new ProjectNotFound({ projectId })
    yield* triggers.changed(undefined, scene)
    return { scene, warnings }
  })

  /** Stores what `change` makes of the scene, from the scene as it is. */
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
    const scene = yield* change(
      projectId,
      sceneId,
      Effect.fnUntraced(function*(before, now) {
        const rules = yield* withCronIds(yield* rulesOf(projectId, sceneId, draft, now), before)
        return { ...before, ...rules, name: draft.name, desc: draft.desc ?? "", status: draft.status }
      })
    )
    return { scene, warnings: yield* warningsOf(scene) }
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
    yield* store.enqueue([execution])
    triggers.wake()
    return execution.executionId
  })

  const executions = Effect.fn("Scenes.executions")(
    function*(projectId: ProjectId, sceneId: SceneId, page: PageRequest) {
      yield* get(projectId, sceneId)
      return yield* store.executions(sceneId, page)
    }
  )

  /** The values of a sample that a report of them would change. */
  const changedBy = (reported: ShadowSide, properties: Readonly<Record<string, Json>>, at: number) =>
    Object.entries(properties).flatMap(([id, value]): ReadonlyArray<readonly [string, ChangedValue]> => {
      const before = Object.hasOwn(reported, id) ? reported[id] : undefined
      if (before === undefined) return [[id, { value, time: at }]]
      return equalJson(before.value, value) ? [] : [[id, { value, time: at, previous: before.value }]]
    })

  /** The sample as an event, and the facts as they would be after it. */
  const sampled = Effect.fnUntraced(function*(scene: Scene, sample: SampleEvent) {
    const { projectId } = scene
    const at = yield* Clock.currentTimeMillis
    if (sample._tag === "Cron") {
      const timers = scene.triggers.filter((trigger) => trigger._tag === "Cron")
      const cronId = sample.cronId ?? timers[0]?.cronId ?? ""
      if (!timers.some((timer) => timer.cronId === cronId)) {
        const message = "Expected the cron_id of a trigger of the scene"
        return yield* new InvalidInput({ issues: [{ path: ["cron_id"], message }] })
      }
      return { event: { _tag: "CronTicked", cronId, at } satisfies SceneEvent, after: (facts: SceneFacts) => facts }
    }
    const found = Option.getOrUndefined(yield* devices.get(projectId, sample))
    if (found === undefined) return yield* DeviceNotFound.of(sample)
    const { deviceId, deviceName, productKey } = deviceIdentity(found)
    const device = { deviceId, productKey, deviceName }
    const ofSample =
      (change: (facts: Exclude<ReturnType<SceneFacts["device"]>, string>) => typeof facts) =>
      (facts: SceneFacts): SceneFacts => ({
        ...facts,
        device: (key, name) => {
          const known = facts.device(key, name)
          return typeof known !== "string" && key === productKey && name === deviceName ? change(known) : known
        }
      })
    switch (sample._tag) {
      case "Property": {
        const shadow = Option.getOrUndefined(yield* shadows.get(deviceId))
        const properties = Object.fromEntries(changedBy(shadow?.reported ?? {}, sample.properties, at))
        const values = Object.fromEntries(
          Object.entries(sample.properties).map(([id, value]) => [id, { value, time: at }])
        )
        return {
          event: { _tag: "PropertiesChanged", device, at, properties } satisfies SceneEvent,
          after: ofSample((known) => ({ ...known, reported: { ...known.reported, ...values } }))
        }
      }
      case "Event": {
        const { eventId, value } = sample
        return {
          event: { _tag: "EventReported", device, at, eventId, time: at, value } satisfies SceneEvent,
          after: ofSample((known) => known)
        }
      }
      case "Status": {
        const { status } = sample
        return {
          event: { _tag: "StatusChanged", device, at, status } satisfies SceneEvent,
          after: ofSample((known) => ({ ...known, status, statusChangedAt: at }))
        }
      }
    }
  })

  const explain = Effect.fn("Scenes.explain")(function*(projectId: ProjectId, sceneId: SceneId, sample: SampleEvent) {
    const scene = yield* get(projectId, sceneId)
    const { after, event } = yield* sampled(scene, sample)
    const facts = after(yield* gatherFacts({ devices, shadows }, scene, event))
    const verdict = evaluate(scene, event, facts)
    if (scene.status === "disable") return { scene, ...verdict, fires: false, reason: "The scene is disabled" }
    if (scene.pausedUntil !== null && facts.now < scene.pausedUntil) {
      const reason = `The scene is paused until ${new Date(scene.pausedUntil).toISOString()}: it has run too often`
      return { scene, ...verdict, fires: false, reason }
    }
    return { scene, ...verdict }
  })

  return Scenes.of({ create, update, setStatus, remove, get, list: store.list, run, executions, explain })
})

type Refused = InvalidInput | SceneNameTaken | StoreError

export class Scenes extends Context.Service<Scenes, {
  /** Products, devices and scenes that it names must exist in the project, and comparisons and values fit their models. */
  readonly create: (projectId: ProjectId, draft: SceneDraft) => Effect.Effect<ChangedScene, ProjectNotFound | Refused>
  /** Replaces everything; what the draft leaves out is empty then. */
  readonly update: (
    projectId: ProjectId,
    sceneId: SceneId,
    draft: SceneDraft
  ) => Effect.Effect<ChangedScene, SceneNotFound | Refused>
  readonly setStatus: (
    projectId: ProjectId,
    sceneId: SceneId,
    status: SceneStatus
  ) => Effect.Effect<void, SceneNotFound | StoreError>
  /** With its executions. */
  readonly remove: (projectId: ProjectId, sceneId: SceneId) => Effect.Effect<void, SceneNotFound | StoreError>
  readonly get: (projectId: ProjectId, sceneId: SceneId) => Effect.Effect<Scene, SceneNotFound | StoreError>
  readonly list: (
    projectId: ProjectId,
    filter: SceneFilter,
    page: PageRequest
  ) => Effect.Effect<Page<Scene>, StoreError>
  /** Runs its actions whatever its triggers and conditions say, also when it is disabled; answers the execution's id. */
  readonly run: (projectId: ProjectId, sceneId: SceneId) => Effect.Effect<string, SceneNotFound | StoreError>
  /** The latest 100, newest first. */
  readonly executions: (
    projectId: ProjectId,
    sceneId: SceneId,
    page: PageRequest
  ) => Effect.Effect<Page<Execution>, SceneNotFound | StoreError>
  /** What the event would do if it happened now. Nothing is done. */
  readonly explain: (
    projectId: ProjectId,
    sceneId: SceneId,
    sample: SampleEvent
  ) => Effect.Effect<Explanation, SceneNotFound | DeviceNotFound | InvalidInput | StoreError>
}>()("@device-cloud/core/scene/definition/Scenes") {
  static readonly layer: Layer.Layer<
    Scenes,
    never,
    | SceneStore
    | ProductStore
    | DeviceStore
    | ShadowStore
    | ModelCache
    | WebhookClient
    | SceneTriggers
    | Identifiers
  > = Layer.effect(Scenes, make)
}
