/**
 * Scenes that fire each other, as far as their rules show: through an action that
 * runs a scene, or through a property that an action sets.
 */
import type { Json } from "../../kernel/Json.ts"
import { compileComparison } from "./Comparison.ts"
import type { Scene } from "./Scene.ts"
import type { SceneId } from "./SceneId.ts"
import { wildcard } from "./ScenePart.ts"

/** A way from one scene to the next. */
export interface Step {
  readonly to: Scene
  /** What leads to the next scene, for example `action/rule`. */
  readonly by: string
}

/** Returns whether one of the triggers fires when the device reports the value. */
export const isFiredBy = (
  { triggers }: Pick<Scene, "triggers">,
  device: { readonly productKey: string; readonly deviceName: string },
  propertyId: string,
  value: Json
): boolean =>
  triggers.some((trigger) =>
    trigger._tag === "Property" && trigger.productKey === device.productKey &&
    (trigger.deviceName === wildcard || trigger.deviceName === device.deviceName) &&
    (trigger.propertyId === wildcard || trigger.propertyId === propertyId) &&
    (trigger.comparison === null || compileComparison(trigger.comparison)(value))
  )

/** Describes a shortest way from the scene back to itself; undefined: no step leads back. */
export const describeCycle = (start: Scene, stepsOf: ReadonlyMap<SceneId, ReadonlyArray<Step>>): string | undefined => {
  const cameFrom = new Map<SceneId, { readonly scene: Scene; readonly by: string }>()
  const waiting = [start]
  for (const scene of waiting) {
    for (const { by, to } of stepsOf.get(scene.sceneId) ?? []) {
      if (cameFrom.has(to.sceneId)) continue
      cameFrom.set(to.sceneId, { scene, by })
      if (to.sceneId !== start.sceneId) {
        waiting.push(to)
        continue
      }
      const names = [start.name]
      for (let at = cameFrom.get(start.sceneId)!;; at = cameFrom.get(at.scene.sceneId)!) {
        names.unshift(`${at.scene.name} (${at.by})`)
        if (at.scene.sceneId === start.sceneId) return names.join(" → ")
      }
    }
  }
  return undefined
}
