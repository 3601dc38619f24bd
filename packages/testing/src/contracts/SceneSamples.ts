/**
 * Scenes and executions that contracts store.
 */
import {
  type Execution,
  ExecutionStore,
  type NewExecution,
  type ProductKey,
  type Project,
  type Scene,
  SceneId,
  SceneStore,
  type SceneTimer
} from "@device-cloud/core"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { epoch, unique } from "./Samples.ts"

export const newScene = ({ id }: Project, fields: Partial<Scene> = {}): Scene => ({
  sceneId: SceneId.make(unique("s")),
  projectId: id,
  name: unique("Scene "),
  desc: "Cools",
  status: "enable",
  triggers: [],
  conditions: [{ _tag: "TimeRange", start: 1, end: 2 }],
  actions: [],
  pausedUntil: null,
  revision: 1,
  createdAt: epoch,
  updatedAt: epoch,
  ...fields
})

export const trigger = (productKey: ProductKey): Scene["triggers"][number] => ({
  _tag: "Property",
  productKey,
  deviceName: "*",
  propertyId: "temperature",
  comparison: { type: ">", value: "30" }
})

export const insert = Effect.fnUntraced(
  function*(project: Project, fields: Partial<Scene> = {}, timers: ReadonlyArray<SceneTimer> = []) {
    const scene = newScene(project, fields)
    assert.strictEqual(yield* (yield* SceneStore).insert(scene, timers), "inserted")
    return scene
  }
)

export const firing = ({ projectId, sceneId }: Scene, at = epoch): NewExecution => ({
  executionId: unique("e"),
  sceneId,
  projectId,
  at,
  event: { _tag: "RunByHand", at },
  chain: [SceneId.make("before")]
})

export const timer = ({ projectId, sceneId }: Scene, dueAt: number | null): SceneTimer => ({
  cronId: unique("c"),
  sceneId,
  projectId,
  cron: "0 * * * * *",
  timeZone: "Asia/Tokyo",
  dueAt
})

export const all = { page: 1, pageSize: 100 }

/** Claims the due executions of these scenes. Those of other tests may be due as well. */
export const claim = Effect.fnUntraced(function*(scenes: ReadonlyArray<Scene>, now: number, again = now + 1000) {
  const claimed = yield* (yield* ExecutionStore).claim({ now, again, limit: 1000, except: [] })
  return claimed.filter(({ sceneId }) => scenes.some((scene) => scene.sceneId === sceneId))
})

export const ended = (execution: Execution, fields: Partial<Execution> = {}): Execution => ({
  ...execution,
  status: "succeeded",
  reason: "A trigger has fired",
  verdict: { fires: true, reason: "A trigger has fired", triggers: [], conditions: [] },
  dueAt: null,
  updatedAt: epoch + 5,
  ...fields
})
