/**
 * Looks for ways on which a scene may fire itself.
 */
import { Effect, Option } from "effect"
import type { DeviceStore } from "../../device/DeviceStore.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import type { Scene } from "../definition/Scene.ts"
import { describeCycle, isFiredBy, type Step } from "../definition/SceneGraph.ts"
import type { SceneId } from "../definition/SceneId.ts"
import type { SceneStore } from "../definition/SceneStore.ts"
import type { SceneTriggers } from "./SceneTriggers.ts"

/** How many scenes and how many of their actions are looked at: each may cost a look-up. */
const maxVisited = 500
const maxVisitedActions = 1000

interface Sources {
  readonly scenes: SceneStore["Service"]
  readonly devices: DeviceStore["Service"]
  readonly triggers: SceneTriggers["Service"]
}

/** Finds the scenes that the actions of a scene may fire. `start` counts as it is here, stored or not. */
const stepsFrom = Effect.fnUntraced(function*({ devices, scenes, triggers }: Sources, scene: Scene, start: Scene) {
  const steps: Array<Step> = []
  for (const action of scene.actions) {
    if (action._tag === "RunScene") {
      const target = action.sceneId === start.sceneId
        ? start
        : Option.getOrUndefined(yield* scenes.get(scene.projectId, action.sceneId))
      if (target !== undefined) steps.push({ to: target, by: "action/rule" })
    }
    if (action._tag !== "SetProperties") continue
    const found = Option.getOrUndefined(yield* devices.get(scene.projectId, { deviceId: action.deviceId }))
    if (found === undefined) continue
    yield* triggers.load([found.device.productKey])
    for (const [propertyId, value] of Object.entries(action.items)) {
      const watchers = triggers.watchersOf(found.device, propertyId)
        .filter(({ sceneId }) => sceneId !== start.sceneId)
      for (const to of [...watchers, start]) {
        if (isFiredBy(to, found.device, propertyId, value)) {
          steps.push({ to, by: `${found.device.deviceName} ${propertyId}` })
        }
      }
    }
  }
  return steps
})

/** Returns a sentence if the scene may fire itself. Looks at a bounded number of scenes. */
export const cycleWarnings = Effect.fnUntraced(
  function*(sources: Sources, start: Scene): Effect.fn.Return<ReadonlyArray<string>, StoreError> {
    const steps = new Map<SceneId, ReadonlyArray<Step>>()
    const waiting = [start]
    let actions = 0
    for (const scene of waiting) {
      if (steps.has(scene.sceneId)) continue
      actions += scene.actions.length
      if (steps.size >= maxVisited || actions > maxVisitedActions) break
      const next = yield* stepsFrom(sources, scene, start)
      steps.set(scene.sceneId, next)
      for (const { to } of next) waiting.push(to)
    }
    const cycle = describeCycle(start, steps)
    return cycle === undefined ? [] : [`The scene may fire itself: ${cycle}`]
  }
)
