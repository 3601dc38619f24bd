/**
 * Port: stores the bindings of devices.
 */
import { Context, type Effect } from "effect"
import type { DeviceId } from "../device/Device.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { Binding } from "./Binding.ts"

/**
 * Laws: each call is one transaction. A device without a binding is `unbound`. A
 * binding goes with its device.
 */
export class BindingStore extends Context.Service<BindingStore, {
  /** Returns the binding of the device. */
  readonly get: (deviceId: DeviceId) => Effect.Effect<Binding, StoreError>
  /**
   * Stores the binding that `change` returns; undefined leaves the binding as it
   * is. No concurrent change is lost. Returns false if nothing is stored, because
   * `change` returns undefined or the device does not exist.
   */
  readonly modify: (
    deviceId: DeviceId,
    change: (binding: Binding) => Binding | undefined
  ) => Effect.Effect<boolean, StoreError>
}>()("@device-cloud/core/provisioning/BindingStore") {}
