/**
 * Checks devices for applications that speak to them over Bluetooth
 * (docs/api/provisioning.md).
 */
import { Clock, Context, Effect, Layer, Result } from "effect"
import { Hex } from "effect/encoding"
import { DeviceDisabled, type DeviceNotFound } from "../device/Device.ts"
import { Devices } from "../device/Devices.ts"
import { decodeInput, type InvalidInput } from "../kernel/InvalidInput.ts"
import type { ProductKey } from "../product/Product.ts"
import type { ProjectId } from "../project/Project.ts"
import { equalInConstantTime, Mac } from "../kernel/Mac.ts"
import { rightSecret } from "../kernel/RotatedSecret.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { bleAnswer, BleProof, WrongCipher } from "./BleIdentity.ts"

export class BleIdentities extends Context.Service<BleIdentities, {
  /**
   * Checks the cipher of a device. Returns the key that protects the traffic
   * between device and application: 32 lower-case hex digits.
   */
  readonly check: (
    projectId: ProjectId,
    productKey: ProductKey,
    proof: BleProof
  ) => Effect.Effect<string, InvalidInput | DeviceNotFound | DeviceDisabled | WrongCipher | StoreError>
}>()("@device-cloud/core/provisioning/BleIdentities") {
  static readonly layer: Layer.Layer<BleIdentities, never, Devices | Mac> = Layer.effect(
    BleIdentities,
    Effect.suspend(() => make)
  )
}

const decodeProof = decodeInput(BleProof)

const make = Effect.gen(function*() {
  const devices = yield* Devices
  const mac = yield* Mac

  const check = Effect.fn("BleIdentities.check")(
    function*(projectId: ProjectId, productKey: ProductKey, input: BleProof) {
      const { cipher, deviceName, random } = yield* decodeProof(input)
      const { device } = yield* devices.get(projectId, { productKey, deviceName })
      const answerWith = (deviceSecret: string) =>
        bleAnswer(mac, { productKey, deviceName, deviceSecret }, Result.getOrThrow(Hex.decode(random)))
      const isRight = (secret: string) => equalInConstantTime(answerWith(secret).cipher, cipher.toLowerCase())
      const now = yield* Clock.currentTimeMillis
      const secret = rightSecret(device.deviceSecret, device.previousSecret, now, isRight)
      if (secret === undefined) return yield* new WrongCipher({ productKey, deviceName })
      if (!device.enabled) return yield* new DeviceDisabled({ productKey, deviceName })
      return answerWith(secret).bleKey
    }
  )

  return BleIdentities.of({ check })
})
