/**
 * Looks whether the scenes that a scene leads to through `action/rule` would go
 * beyond the budget of one execution.
 */
import { Effect, Option } from "effect"
import type { StoreError } from "../../kernel/StoreError.ts"
import type { Scene } from "../definition/Scene.ts"
import type { SceneId } from "../definition/SceneId.ts"
import { maxChain, type SceneLimits } from "../definition/SceneLimits.ts"
import type { SceneStore } from "../definition/SceneStore.ts"

/**
 * Returns a sentence if an execution of the scene would end for its budget, when
 * all conditions on the way hold. `start` counts as it is here, stored or not.
 */
export const treeWarnings = Effect.fnUntraced(function*(
  scenes: SceneStore["Service"],
  { actions: limit }: SceneLimits,
  start: Scene
): Effect.fn.Return<ReadonlyArray<string>, StoreError> {
  const known = new Map<SceneId, Scene | undefined>([[start.sceneId, start]])
  const waiting: Array<{ readonly scene: Scene; readonly chain: ReadonlyArray<SceneId> }> = [
    { scene: start, chain: [start.sceneId] }
  ]
  let actions = start.actions.length
  // Each round adds at least one action, so there are at most as many as the budget has.
  for (const { chain, scene } of waiting) {
    for (const action of scene.actions) {
      if (action._tag !== "RunScene" || chain.length >= maxChain || chain.includes(action.sceneId)) continue
      if (!known.has(action.sceneId)) {
        known.set(action.sceneId, Option.getOrUndefined(yield* scenes.get(start.projectId, action.sceneId)))
      }
      const target = known.get(action.sceneId)
      if (target === undefined || target.status === "disable") continue
      actions += Math.max(1, target.actions.length)
      if (actions > limit) {
        return [`The scene may be stopped: it and the scenes that it runs have more than ${limit} actions together`]
      }
      waiting.push({ scene: target, chain: [...chain, target.sceneId] })
    }
  }
  return []
})
