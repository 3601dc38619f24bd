/**
 * Reads and changes shadows on behalf of the application.
 */
import { Context, Effect, Layer } from "effect"
import { type Device, type DeviceId, DeviceNotFound } from "../device/Device.ts"
import { Devices } from "../device/Devices.ts"
import type { ProjectId } from "../project/Project.ts"
import type { StoreError } from "../StoreError.ts"
import type { Shadow } from "./Shadow.ts"
import { ShadowStore } from "./ShadowStore.ts"

const make = Effect.gen(function*() {
  const store = yield* ShadowStore
  const devices = yield* Devices

  const get = Effect.fn("Shadows.get")(function*(projectId: ProjectId, deviceId: DeviceId) {
    const { device } = yield* devices.get(projectId, { deviceId })
    const shadow = yield* Effect.fromOption(yield* store.get(deviceId), () => DeviceNotFound.of({ deviceId }))
    return { device, shadow }
  })

  return Shadows.of({ get })
})

export class Shadows extends Context.Service<Shadows, {
  /** The shadow with the device that it belongs to. */
  readonly get: (
    projectId: ProjectId,
    deviceId: DeviceId
  ) => Effect.Effect<{ readonly device: Device; readonly shadow: Shadow }, DeviceNotFound | StoreError>
}>()("@device-cloud/core/shadow/Shadows") {
  static readonly layer: Layer.Layer<Shadows, never, ShadowStore | Devices> = Layer.effect(Shadows, make)
}
