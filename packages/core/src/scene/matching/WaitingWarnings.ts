/**
 * Looks whether so many scenes wait for a status to last that another one does not.
 */
import { Effect } from "effect"
import type { StoreError } from "../../kernel/StoreError.ts"
import type { Scene } from "../definition/Scene.ts"
import { maxWaiting } from "../definition/SceneLimits.ts"
import type { SceneTriggers } from "./SceneTriggers.ts"

/** Returns a sentence for each trigger that waits behind `maxWaiting` others. */
export const waitingWarnings = Effect.fnUntraced(function*(
  triggers: SceneTriggers["Service"],
  scene: Scene
): Effect.fn.Return<ReadonlyArray<string>, StoreError> {
  const warnings: Array<string> = []
  for (const trigger of scene.triggers) {
    if (trigger._tag !== "Status" || trigger.minutes === undefined || trigger.status === "*") continue
    yield* triggers.load([trigger.productKey])
    const others = triggers.waitersOf(trigger, trigger.status).filter(({ sceneId }) => sceneId !== scene.sceneId)
    if (others.length >= maxWaiting) {
      warnings.push(
        `${maxWaiting} triggers wait already for ${trigger.productKey}/${trigger.deviceName} to stay ${trigger.status}; ` +
          "those of newer scenes do not fire"
      )
    }
  }
  return warnings
})
