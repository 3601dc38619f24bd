/**
 * Reads what the conditions of a scene are about.
 */
import { Clock, Effect, Option } from "effect"
import type { DeviceName } from "../../device/Device.ts"
import type { DeviceStore } from "../../device/DeviceStore.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import type { ProductKey } from "../../product/Product.ts"
import type { ProjectId } from "../../project/Project.ts"
import type { ShadowStore } from "../../shadow/ShadowStore.ts"
import type { CustomCondition } from "../definition/Condition.ts"
import type { Scene } from "../definition/Scene.ts"
import { wildcard } from "../definition/ScenePart.ts"
import { deviceOf, type SceneEvent } from "../matching/SceneEvent.ts"
import { type RegisteredCondition, unregistered } from "./SceneCondition.ts"
import type { DeviceFacts, Finding, SceneFacts } from "./SceneEvaluator.ts"

/** Where facts come from. */
export interface FactSources {
  readonly devices: DeviceStore["Service"]
  readonly shadows: ShadowStore["Service"]
  /** Of windows of time that have none of their own, by its IANA name. */
  readonly timeZone: string
  /** The custom conditions, by URI. */
  readonly conditions: ReadonlyMap<string, RegisteredCondition>
}

const factsOf = Effect.fnUntraced(function*(
  { devices, shadows }: FactSources,
  projectId: ProjectId,
  productKey: ProductKey,
  deviceName: DeviceName
) {
  const found = Option.getOrUndefined(yield* devices.get(projectId, { productKey, deviceName }))
  if (found === undefined) return "deleted"
  const { deviceId, enabled, status, statusChangedAt } = found.device
  if (!enabled) return "disabled"
  const shadow = Option.getOrUndefined(yield* shadows.get(deviceId))
  return { status, statusChangedAt, reported: shadow?.reported ?? {} } satisfies DeviceFacts
})

/** Reads the facts as they are now, and lets custom conditions judge. */
export const gatherFacts = Effect.fnUntraced(function*(
  sources: FactSources,
  { conditions, projectId, sceneId }: Pick<Scene, "conditions" | "projectId" | "sceneId">,
  event: SceneEvent
): Effect.fn.Return<SceneFacts, StoreError> {
  const known = new Map<string, DeviceFacts | "deleted" | "disabled">()
  const custom: Array<CustomCondition> = []
  for (const condition of conditions) {
    if (condition._tag === "TimeRange" || condition._tag === "TimeWindow") continue
    if (condition._tag === "Custom") {
      custom.push(condition)
      continue
    }
    const { productKey } = condition
    const deviceName = condition.deviceName === wildcard ? deviceOf(event)?.deviceName : condition.deviceName
    const key = `${productKey}/${deviceName}`
    if (deviceName === undefined || known.has(key)) continue
    known.set(key, yield* factsOf(sources, projectId, productKey, deviceName as DeviceName))
  }
  const now = yield* Clock.currentTimeMillis
  const findings = new Map<CustomCondition, Finding>()
  if (custom.length > 0) {
    // One slow judge does not add its time to that of the others.
    yield* Effect.forEach(custom, (condition) => {
      const kind = sources.conditions.get(condition.uri)
      if (kind === undefined) return Effect.void
      const judged = kind.judge(condition.params, { projectId, sceneId, event, now })
      return Effect.map(judged, (finding) => findings.set(condition, finding))
    }, { concurrency: "unbounded", discard: true })
  }
  return {
    now,
    timeZone: sources.timeZone,
    device: (productKey, deviceName) => known.get(`${productKey}/${deviceName}`) ?? "deleted",
    custom: (condition) => findings.get(condition) ?? unregistered(condition.uri)
  }
})
