/**
 * Records in the feed that devices are created, deleted, enabled, disabled, bound
 * or unbound, in the transaction of the change.
 */
import { Effect, Layer } from "effect"
import type { DeviceIdentity } from "../device/Device.ts"
import { DeviceLifecycle } from "../device/DeviceLifecycle.ts"
import type { DomainEvent } from "../events/DomainEvent.ts"
import { FeedStore } from "./FeedStore.ts"

type Action = (DomainEvent & { readonly _tag: "DeviceLifecycle" })["action"]

export const layer: Layer.Layer<never, never, DeviceLifecycle | FeedStore> = Layer.effectDiscard(
  Effect.gen(function*() {
    const feed = yield* FeedStore
    const lifecycle = yield* DeviceLifecycle
    const record = (action: Action) => (devices: ReadonlyArray<DeviceIdentity>, at: number) =>
      feed.append(devices.map((device) => ({ _tag: "DeviceLifecycle", device, at, action })))
    yield* lifecycle.register({
      stage: "record",
      created: record("create"),
      enabled: record("enable"),
      disabled: record("disable"),
      bound: record("bind"),
      unbound: record("unbind"),
      deleting: () => Effect.succeed(record("delete"))
    })
  })
)
