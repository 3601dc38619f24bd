/**
 * Events that might happen. They answer what a scene would do.
 */
import { Clock, Effect, Option } from "effect"
import { deviceIdentity, type DeviceName, DeviceNotFound } from "../../device/Device.ts"
import type { ChangedValue } from "../../events/DeviceChange.ts"
import { InvalidInput } from "../../kernel/InvalidInput.ts"
import { equalJson, type Json } from "../../kernel/Json.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import type { ProductKey } from "../../product/Product.ts"
import type { ShadowSide } from "../../shadow/Shadow.ts"
import type { Scene } from "../definition/Scene.ts"
import type { SceneEvent } from "../matching/SceneEvent.ts"
import type { FactSources } from "./GatherFacts.ts"
import type { DeviceFacts, SceneFacts } from "./SceneEvaluator.ts"

type SampleDevice = { readonly productKey: ProductKey; readonly deviceName: DeviceName }

/** An event that might happen. */
export type SampleEvent =
  | SampleDevice & { readonly _tag: "Property"; readonly properties: Readonly<Record<string, Json>> }
  | SampleDevice & { readonly _tag: "Event"; readonly eventId: string; readonly value: Json }
  /** `minutes`: for how long the status has lasted; undefined: it changes now. */
  | SampleDevice & {
    readonly _tag: "Status"
    readonly status: "online" | "offline"
    readonly minutes?: number | undefined
  }
  /** Without an id: the first cron trigger of the scene. */
  | { readonly _tag: "Cron"; readonly cronId: string | undefined }

/** A sample as the scene would see it. */
export interface SampledEvent {
  readonly event: SceneEvent
  /** Makes of the facts as they are those that would hold after the event. */
  readonly after: (facts: SceneFacts) => SceneFacts
}

/** Returns those of the values that a report of them would change. */
const changedBy = (
  reported: ShadowSide,
  properties: Readonly<Record<string, Json>>,
  at: number
): Readonly<Record<string, ChangedValue>> =>
  Object.fromEntries(
    Object.entries(properties).flatMap(([id, value]): ReadonlyArray<readonly [string, ChangedValue]> => {
      const before = Object.hasOwn(reported, id) ? reported[id] : undefined
      if (before === undefined) return [[id, { value, time: at }]]
      return equalJson(before.value, value) ? [] : [[id, { value, time: at, previous: before.value }]]
    })
  )

const sampleTimer = ({ triggers }: Scene, wanted: string | undefined, at: number) => {
  const timers = triggers.filter((trigger) => trigger._tag === "Cron")
  const cronId = wanted ?? timers[0]?.cronId ?? ""
  if (!timers.some((timer) => timer.cronId === cronId)) {
    const message = "Expected the cron_id of a trigger of the scene"
    return Effect.fail(new InvalidInput({ issues: [{ path: ["cron_id"], message }] }))
  }
  const event: SceneEvent = { _tag: "CronTicked", cronId, at }
  return Effect.succeed<SampledEvent>({ event, after: (facts) => facts })
}

/** Makes of a sample the event that it stands for. */
export const sampleEvent = Effect.fnUntraced(function*(
  { devices, shadows }: FactSources,
  scene: Scene,
  sample: SampleEvent
): Effect.fn.Return<SampledEvent, DeviceNotFound | InvalidInput | StoreError> {
  const at = yield* Clock.currentTimeMillis
  if (sample._tag === "Cron") return yield* sampleTimer(scene, sample.cronId, at)
  const found = Option.getOrUndefined(yield* devices.get(scene.projectId, sample))
  if (found === undefined) return yield* DeviceNotFound.of(sample)
  const { deviceId, deviceName, productKey } = deviceIdentity(found)
  const device = { deviceId, productKey, deviceName }
  const changing = (change: (facts: DeviceFacts) => DeviceFacts) => (facts: SceneFacts): SceneFacts => ({
    ...facts,
    device: (key, name) => {
      const known = facts.device(key, name)
      return typeof known !== "string" && key === productKey && name === deviceName ? change(known) : known
    }
  })
  switch (sample._tag) {
    case "Property": {
      const shadow = Option.getOrUndefined(yield* shadows.get(deviceId))
      const properties = changedBy(shadow?.reported ?? {}, sample.properties, at)
      const values = Object.fromEntries(
        Object.entries(sample.properties).map(([id, value]) => [id, { value, time: at }])
      )
      return {
        event: { _tag: "PropertiesChanged", device, at, properties },
        after: changing((known) => ({ ...known, reported: { ...known.reported, ...values } }))
      }
    }
    case "Event": {
      const { eventId, value } = sample
      return {
        event: { _tag: "EventReported", device, at, eventId, time: at, value },
        after: (facts) => facts
      }
    }
    case "Status": {
      const { minutes, status } = sample
      const since = at - 60_000 * (minutes ?? 0)
      return {
        event: minutes === undefined
          ? { _tag: "StatusChanged", device, at, status }
          : { _tag: "StatusLasted", device, at, status, minutes, since },
        after: changing((known) => ({ ...known, status, statusChangedAt: since }))
      }
    }
  }
})
