/**
 * The device methods that every cloud has: reports, shadow, desired values, tags,
 * thing model, settings, time, and replies to commands.
 */
import { Effect, Layer } from "effect"
import type { DeviceSessions } from "../connection/DeviceSessions.ts"
import { DeviceLifecycle } from "../device/DeviceLifecycle.ts"
import type { DeviceStore } from "../device/DeviceStore.ts"
import type { ThingModelStore } from "../thing-model/ThingModelStore.ts"
import * as CommandReplies from "./CommandReplies.ts"
import * as DesiredProperties from "./DesiredProperties.ts"
import { DeviceMethods } from "./DeviceMethods.ts"
import * as DeviceModel from "./DeviceModel.ts"
import * as DeviceSettings from "./DeviceSettings.ts"
import * as DeviceTags from "./DeviceTags.ts"
import * as NetworkTime from "./NetworkTime.ts"
import * as PackMessages from "./PackMessages.ts"
import * as PropertyMessages from "./PropertyMessages.ts"
import * as RecordMessages from "./RecordMessages.ts"
import * as ShadowMessages from "./ShadowMessages.ts"

export const layer: Layer.Layer<
  never,
  never,
  DeviceMethods | DeviceStore | ThingModelStore | DeviceSessions | DeviceLifecycle
> = Layer.effectDiscard(
  Effect.gen(function*() {
    const registry = yield* DeviceMethods
    const lifecycle = yield* DeviceLifecycle
    yield* registry.register([
      ...PropertyMessages.methods,
      ...PackMessages.methods,
      ...RecordMessages.methods,
      ...DesiredProperties.methods,
      ...ShadowMessages.methods,
      ...NetworkTime.methods,
      ...CommandReplies.methods
    ])
    yield* registry.register([...DeviceTags.methods, ...DeviceSettings.methods])
    yield* registry.register(DeviceModel.methods)
    yield* lifecycle.register(yield* DeviceSettings.lifecycleHook)
  }).pipe(Effect.orDie)
)
