/**
 * Reads what the conditions of a scene are about.
 */
import { Clock, Effect, Option } from "effect"
import type { DeviceName } from "../../device/Device.ts"
import type { DeviceStore } from "../../device/DeviceStore.ts"
import type { ProductKey } from "../../product/Product.ts"
import type { ProjectId } from "../../project/Project.ts"
import type { ShadowStore } from "../../shadow/ShadowStore.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import { type Scene, wildcard } from "../definition/Scene.ts"
import type { DeviceFacts, SceneFacts } from "./SceneEvaluator.ts"
import { deviceOf, type SceneEvent } from "../matching/SceneEvent.ts"

interface Stores {
  readonly devices: DeviceStore["Service"]
  readonly shadows: ShadowStore["Service"]
}

const factsOf = Effect.fnUntraced(function*(
  { devices, shadows }: Stores,
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

/** The facts as they are now. */
export const gatherFacts = Effect.fnUntraced(function*(
  stores: Stores,
  { conditions, projectId }: Pick<Scene, "conditions" | "projectId">,
  event: SceneEvent
): Effect.fn.Return<SceneFacts, StoreError> {
  const known = new Map<string, DeviceFacts | "deleted" | "disabled">()
  for (const condition of conditions) {
    if (condition._tag === "TimeRange") continue
    const { productKey } = condition
    const deviceName = condition.deviceName === wildcard ? deviceOf(event)?.deviceName : condition.deviceName
    const key = `${productKey}/${deviceName}`
    if (deviceName === undefined || known.has(key)) continue
    known.set(key, yield* factsOf(stores, projectId, productKey, deviceName as DeviceName))
  }
  return {
    now: yield* Clock.currentTimeMillis,
    device: (productKey, deviceName) => known.get(`${productKey}/${deviceName}`) ?? "deleted"
  }
})
