/**
 * Registers the device methods that every cloud has. Each file in `methods/`
 * declares those of one subject; other features register their own.
 */
import { Effect, Layer } from "effect"
import type { DeviceSessions } from "../connection/DeviceSessions.ts"
import { DeviceLifecycle } from "../device/DeviceLifecycle.ts"
import type { DeviceStore } from "../device/DeviceStore.ts"
import type { ModelCache } from "../thing-model/ModelCache.ts"
import { DeviceMethods } from "./DeviceMethods.ts"
import * as CommandReplyMethods from "./methods/CommandReplyMethods.ts"
import * as DesiredMethods from "./methods/DesiredMethods.ts"
import * as ModelMethods from "./methods/ModelMethods.ts"
import * as PackMethods from "./methods/PackMethods.ts"
import * as PropertyMethods from "./methods/PropertyMethods.ts"
import * as RecordMethods from "./methods/RecordMethods.ts"
import * as SettingMethods from "./methods/SettingMethods.ts"
import * as ShadowMethods from "./methods/ShadowMethods.ts"
import * as TagMethods from "./methods/TagMethods.ts"
import * as TimeMethods from "./methods/TimeMethods.ts"

export const layer: Layer.Layer<
  never,
  never,
  DeviceMethods | DeviceStore | ModelCache | DeviceSessions | DeviceLifecycle
> = Layer.effectDiscard(
  Effect.gen(function*() {
    const registry = yield* DeviceMethods
    const lifecycle = yield* DeviceLifecycle
    yield* registry.register([
      ...PropertyMethods.methods,
      ...PackMethods.methods,
      ...RecordMethods.methods,
      ...DesiredMethods.methods,
      ...ShadowMethods.methods,
      ...TimeMethods.methods,
      ...CommandReplyMethods.methods
    ])
    yield* registry.register([...TagMethods.methods, ...SettingMethods.methods])
    yield* registry.register(ModelMethods.methods)
    yield* lifecycle.register(yield* SettingMethods.lifecycleHook)
  }).pipe(Effect.orDie)
)
