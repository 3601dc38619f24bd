/**
 * Tells applications which devices have joined (docs/api/provisioning.md).
 */
import { Clock, Context, Effect, Layer } from "effect"
import { type DeviceName, DeviceNotFound } from "../device/Device.ts"
import { DeviceLifecycle } from "../device/DeviceLifecycle.ts"
import { Devices } from "../device/Devices.ts"
import { Identifiers } from "../kernel/Identifiers.ts"
import type { ProductKey } from "../product/Product.ts"
import type { ProjectId } from "../project/Project.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { DeviceMethods } from "../uplink/DeviceMethods.ts"
import { expectRandom, RandomNotReported, unbound } from "./Binding.ts"
import { BindingStore } from "./BindingStore.ts"
import * as BindMethods from "./BindMethods.ts"

export class Bindings extends Context.Service<Bindings, {
  /** Returns the random that the device has reported after it joined. */
  readonly random: (
    projectId: ProjectId,
    productKey: ProductKey,
    deviceName: DeviceName
  ) => Effect.Effect<string, DeviceNotFound | RandomNotReported | StoreError>
  /**
   * Makes and returns a random of 32 hex digits. Only this random counts for ten
   * minutes; an earlier report is forgotten.
   */
  readonly expect: (
    projectId: ProjectId,
    productKey: ProductKey,
    deviceName: DeviceName
  ) => Effect.Effect<string, DeviceNotFound | StoreError>
}>()("@device-cloud/core/provisioning/Bindings") {
  static readonly layer: Layer.Layer<
    Bindings,
    never,
    BindingStore | Devices | DeviceLifecycle | DeviceMethods | Identifiers
  > = Layer.effect(Bindings, Effect.suspend(() => make))
}

const make = Effect.gen(function*() {
  const store = yield* BindingStore
  const devices = yield* Devices
  const identifiers = yield* Identifiers
  const lifecycle = yield* DeviceLifecycle

  yield* (yield* DeviceMethods).register(BindMethods.methods).pipe(Effect.orDie)
  yield* lifecycle.register({
    stage: "feature",
    unbound: (devices) =>
      Effect.forEach(devices, ({ deviceId }) => store.modify(deviceId, () => unbound), { discard: true })
  })

  const find = (projectId: ProjectId, productKey: ProductKey, deviceName: DeviceName) =>
    Effect.map(devices.get(projectId, { productKey, deviceName }), ({ device }) => device.deviceId)

  const random = Effect.fn("Bindings.random")(
    function*(projectId: ProjectId, productKey: ProductKey, deviceName: DeviceName) {
      const { reported } = yield* store.get(yield* find(projectId, productKey, deviceName))
      if (reported === null) return yield* new RandomNotReported({ device: `${productKey}/${deviceName}` })
      return reported
    }
  )

  const expect = Effect.fn("Bindings.expect")(
    function*(projectId: ProjectId, productKey: ProductKey, deviceName: DeviceName) {
      const deviceId = yield* find(projectId, productKey, deviceName)
      const made = yield* identifiers.hexKey
      const at = yield* Clock.currentTimeMillis
      const isStored = yield* store.modify(deviceId, () => expectRandom(made, at))
      if (!isStored) return yield* DeviceNotFound.of({ productKey, deviceName })
      return made
    }
  )

  return Bindings.of({ random, expect })
})
