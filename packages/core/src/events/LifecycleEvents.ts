/**
 * Publishes a domain event when a device is created, deleted, enabled, disabled,
 * bound or unbound.
 */
import { Effect, Layer } from "effect"
import type { DeviceIdentity } from "../device/Device.ts"
import { DeviceLifecycle } from "../device/DeviceLifecycle.ts"
import type { DomainEvent } from "./DomainEvent.ts"
import { EventBus } from "./EventBus.ts"

type Action = (DomainEvent & { readonly _tag: "DeviceLifecycle" })["action"]

export const layer: Layer.Layer<never, never, DeviceLifecycle | EventBus> = Layer.effectDiscard(
  Effect.gen(function*() {
    const events = yield* EventBus
    const lifecycle = yield* DeviceLifecycle
    const publish = (action: Action) => (devices: ReadonlyArray<DeviceIdentity>, at: number) =>
      events.publish(devices.map((device) => ({ _tag: "DeviceLifecycle", device, at, action })))
    yield* lifecycle.register({
      stage: "event",
      created: publish("create"),
      enabled: publish("enable"),
      disabled: publish("disable"),
      bound: publish("bind"),
      unbound: publish("unbind"),
      deleting: () => Effect.succeed(publish("delete"))
    })
  })
)
