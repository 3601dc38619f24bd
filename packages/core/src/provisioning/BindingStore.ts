/**
 * Port: where is kept which devices have joined.
 */
import { Context, type Effect } from "effect"
import type { DeviceId } from "../device/Device.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { Binding } from "./Binding.ts"

/**
 * Laws: each call is one transaction. A device without a binding is `unbound`.
 * With a device goes its binding.
 */
export class BindingStore extends Context.Service<BindingStore, {
  readonly get: (deviceId: DeviceId) => Effect.Effect<Binding, StoreError>
  /**
   * Stores what `change` makes of the binding; undefined: it stays as it is. No
   * change is lost to another at the same time. False: nothing was stored, also
   * because there is no such device.
   */
  readonly modify: (
    deviceId: DeviceId,
    change: (binding: Binding) => Binding | undefined
  ) => Effect.Effect<boolean, StoreError>
}>()("@device-cloud/core/provisioning/BindingStore") {}
