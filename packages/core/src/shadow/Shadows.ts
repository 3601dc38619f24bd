/**
 * Reads and changes shadows on behalf of the application.
 */
import { Clock, Context, Effect, Layer, Option, Record, Schema } from "effect"
import type { NodeBus } from "../cluster/NodeBus.ts"
import type { DeviceSessions } from "../connection/DeviceSessions.ts"
import type { PresenceStore } from "../connection/PresenceStore.ts"
import { type Device, type DeviceId, DeviceNotFound } from "../device/Device.ts"
import { DeviceLifecycle } from "../device/DeviceLifecycle.ts"
import { Devices } from "../device/Devices.ts"
import { DomainError } from "../kernel/DomainError.ts"
import { expectObject, InvalidInput } from "../kernel/InvalidInput.ts"
import type { Json } from "../kernel/Json.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"
import { checkValues, type InvalidValues } from "../thing-model/InvalidValues.ts"
import { ModelCache } from "../thing-model/ModelCache.ts"
import { ReportedValues } from "../thing-model/ReportedValues.ts"
import { clearDesired, type Shadow, ShadowDraft } from "./Shadow.ts"
import * as ShadowPush from "./ShadowPush.ts"
import { ShadowStore } from "./ShadowStore.ts"

export class Shadows extends Context.Service<Shadows, {
  /** Returns the shadow and its device. */
  readonly get: (
    projectId: ProjectId,
    deviceId: DeviceId
  ) => Effect.Effect<{ readonly device: Device; readonly shadow: Shadow }, DeviceNotFound | StoreError>
  /**
   * Merges `desired` into the desired values of the device: null removes a
   * property; arrays and objects are replaced as a whole. Tells the device if it
   * is connected, as soon as it listens to its shadow. Fails with `ShadowVersionConflict` if `version` is
   * given and is not the version of the shadow, with `InvalidValues` if a value
   * does not fit the thing model, and with `InvalidInput` if `desired` is no object
   * or the shadow would break a limit.
   */
  readonly desire: (
    projectId: ProjectId,
    deviceId: DeviceId,
    desired: Readonly<Record<string, Json>>,
    version?: number
  ) => Effect.Effect<Shadow, DeviceNotFound | InvalidInput | InvalidValues | ShadowVersionConflict | StoreError>
  /**
   * Removes a reported value, for example one that a device no longer has. Fails
   * with `PropertyNotReported` if the shadow has none.
   */
  readonly removeReported: (
    projectId: ProjectId,
    deviceId: DeviceId,
    propertyId: string
  ) => Effect.Effect<void, DeviceNotFound | PropertyNotReported | StoreError>
}>()("@device-cloud/core/shadow/Shadows") {
  static readonly layer: Layer.Layer<
    Shadows,
    never,
    ShadowStore | PresenceStore | NodeBus | Devices | DeviceLifecycle | ModelCache | DeviceSessions
  > = Layer.effect(Shadows, Effect.suspend(() => make))

  /** Reads the values for `ReportedValues` from the shadows. */
  static readonly layerReportedValues: Layer.Layer<ReportedValues, never, ShadowStore> = Layer.effect(
    ReportedValues,
    Effect.map(ShadowStore, (store) => ({
      sample: (productKey, limit) =>
        Effect.map(
          store.sample(productKey, limit),
          (shadows) => shadows.map(({ reported }) => Record.map(reported, ({ value }) => value))
        )
    }))
  )
}

/** The shadow does not have the version that the caller expects. */
export class ShadowVersionConflict extends DomainError<ShadowVersionConflict>()(
  "ShadowVersionConflict",
  {
    deviceId: Schema.String,
    /** The version of the shadow. */
    version: Schema.Int
  },
  ({ deviceId, version }) => `The shadow of device ${deviceId} is in version ${version}`
) {}

/** The shadow has no reported value of the property. */
export class PropertyNotReported extends DomainError<PropertyNotReported>()(
  "PropertyNotReported",
  {
    deviceId: Schema.String,
    propertyId: Schema.String
  },
  ({ deviceId, propertyId }) => `Device ${deviceId} has reported no property ${propertyId}`
) {}

const make = Effect.gen(function*() {
  const store = yield* ShadowStore
  const devices = yield* Devices
  const models = yield* ModelCache
  const push = yield* ShadowPush.makeAnywhere
  const lifecycle = yield* DeviceLifecycle

  yield* lifecycle.register({
    stage: "feature",
    unbound: (devices, at) =>
      store.modify(devices.map(({ deviceId }) => ({
        deviceId,
        modify: (shadow: Shadow) => [undefined, clearDesired(shadow, at)] as const
      })))
  })

  const get = Effect.fn("Shadows.get")(function*(projectId: ProjectId, deviceId: DeviceId) {
    const { device } = yield* devices.get(projectId, { deviceId })
    const shadow = yield* Effect.fromOption(yield* store.get(deviceId), () => DeviceNotFound.of({ deviceId }))
    return { device, shadow }
  })

  const desire = Effect.fn("Shadows.desire")(function*(
    projectId: ProjectId,
    deviceId: DeviceId,
    desired: Readonly<Record<string, Json>>,
    version?: number
  ) {
    yield* expectObject(desired, ["state", "desired"])
    const { device } = yield* devices.get(projectId, { deviceId })
    const model = Option.getOrUndefined(yield* models.ofProduct(device.productKey))
    const values = model === undefined ? desired : yield* checkValues(
      desired,
      (id, value) => value === null ? value : model.desired(id, value),
      ["state", "desired"]
    )
    const at = yield* Clock.currentTimeMillis
    const [result] = yield* store.modify<Shadow | ShadowVersionConflict | InvalidInput>([{
      deviceId,
      modify: (shadow) => {
        if (version !== undefined && version !== shadow.version) {
          return [new ShadowVersionConflict({ deviceId, version: shadow.version }), shadow]
        }
        const draft = new ShadowDraft(shadow, model?.hasProperty)
        for (const [id, value] of Object.entries(values)) {
          const reason = value === null ? draft.remove("desired", id) : draft.desire(id, value, at)
          if (reason !== undefined) {
            return [new InvalidInput({ issues: [{ path: ["state", "desired", id], message: reason }] }), shadow]
          }
        }
        draft.accept(at)
        const after = draft.finish()
        return [after, after]
      }
    }])
    const after = yield* Effect.fromOption(result!, () => DeviceNotFound.of({ deviceId }))
    if ("_tag" in after) return yield* after
    yield* push(deviceId)
    return after
  })

  const removeReported = Effect.fn("Shadows.removeReported")(
    function*(projectId: ProjectId, deviceId: DeviceId, propertyId: string) {
      yield* devices.get(projectId, { deviceId })
      const at = yield* Clock.currentTimeMillis
      const [result] = yield* store.modify([{
        deviceId,
        modify: (shadow) => {
          if (!Object.hasOwn(shadow.reported, propertyId)) return [false, shadow]
          const draft = new ShadowDraft(shadow)
          draft.remove("reported", propertyId)
          draft.accept(at)
          return [true, draft.finish()]
        }
      }])
      const isRemoved = yield* Effect.fromOption(result!, () => DeviceNotFound.of({ deviceId }))
      if (!isRemoved) return yield* new PropertyNotReported({ deviceId, propertyId })
    }
  )

  return Shadows.of({ get, desire, removeReported })
})
