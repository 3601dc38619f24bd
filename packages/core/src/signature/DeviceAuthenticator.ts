/**
 * Finds out whether a device is who it says it is.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { type DeviceIdentity, deviceIdentity, type DeviceName, DeviceNotFound } from "../device/Device.ts"
import { DeviceStore } from "../device/DeviceStore.ts"
import type { ProductKey } from "../product/Product.ts"
import type { StoreError } from "../StoreError.ts"
import { Mac, type SignMethod } from "./Mac.ts"
import { connectText, equalInConstantTime } from "./Signature.ts"

/** What a connecting device presents. */
export interface ConnectCredentials {
  readonly productKey: ProductKey
  readonly deviceName: DeviceName
  /** The identifier that the device chose for itself; it is signed, not trusted. */
  readonly clientId: string
  readonly timestamp?: string | undefined
  readonly signMethod: SignMethod
  /** Hex of either case. */
  readonly signature: string
}

export class WrongSignature extends Schema.TaggedError<WrongSignature>()("WrongSignature", {
  productKey: Schema.String,
  deviceName: Schema.String
}) {}

export class DeviceDisabled extends Schema.TaggedError<DeviceDisabled>()("DeviceDisabled", {
  productKey: Schema.String,
  deviceName: Schema.String
}) {}

const make = Effect.gen(function*() {
  const store = yield* DeviceStore
  const mac = yield* Mac

  const authenticate = Effect.fnUntraced(function*(credentials: ConnectCredentials) {
    const { deviceName, productKey } = credentials
    const found = yield* store.findByName(productKey, deviceName)
    if (Option.isNone(found)) return yield* DeviceNotFound.of({ productKey, deviceName })
    const { device } = found.value
    const expected = mac.sign(credentials.signMethod, device.deviceSecret, connectText(credentials))
    if (!equalInConstantTime(expected, credentials.signature.toLowerCase())) {
      return yield* new WrongSignature({ productKey, deviceName })
    }
    if (!device.enabled) return yield* new DeviceDisabled({ productKey, deviceName })
    return deviceIdentity(found.value)
  })

  return DeviceAuthenticator.of({ authenticate })
})

export class DeviceAuthenticator extends Context.Service<DeviceAuthenticator, {
  /** A device that is disabled learns so only with a right signature. */
  readonly authenticate: (
    credentials: ConnectCredentials
  ) => Effect.Effect<DeviceIdentity, DeviceNotFound | WrongSignature | DeviceDisabled | StoreError>
}>()("@device-cloud/core/signature/DeviceAuthenticator") {
  static readonly layer: Layer.Layer<DeviceAuthenticator, never, DeviceStore | Mac> = Layer.effect(
    DeviceAuthenticator,
    make
  )
}
