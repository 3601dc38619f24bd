/**
 * Self-tests of devices: a service of Acme's, and the device method that fills
 * it.
 */
import { type DeviceId, DeviceMethod, DeviceReply } from "@device-cloud/core"
import { Context, Effect, Layer, Schema } from "effect"

/** What a device says after a self-test. */
export const SelfTest = Schema.Struct({
  /** The parts of the device that it has tested. */
  parts: Schema.Array(Schema.Struct({ name: Schema.String, passed: Schema.Boolean })).check(
    Schema.isMinLength(1),
    Schema.isMaxLength(32)
  )
})
/** What a device says after a self-test. */
export type SelfTest = typeof SelfTest.Type

/** Milliseconds until the next self-test, after one that has passed and after one that has failed. */
const pause = { passed: 86_400_000, failed: 60_000 }

export class SelfTests extends Context.Service<SelfTests, {
  /** Keeps the newest self-test of a device. Returns whether all parts have passed. */
  readonly keep: (deviceId: DeviceId, selfTest: SelfTest) => Effect.Effect<boolean>
  /** Returns the newest self-test of a device; undefined: it has reported none. */
  readonly newest: (deviceId: DeviceId) => Effect.Effect<SelfTest | undefined>
}>()("acme/SelfTests") {
  static readonly layer: Layer.Layer<SelfTests> = Layer.sync(SelfTests, () => {
    const newest = new Map<DeviceId, SelfTest>()
    return SelfTests.of({
      keep: (deviceId, selfTest) =>
        Effect.sync(() => {
          newest.set(deviceId, selfTest)
          return selfTest.parts.every(({ passed }) => passed)
        }),
      newest: (deviceId) => Effect.sync(() => newest.get(deviceId))
    })
  })
}

/**
 * A request: it runs after the messages before it are stored, uses a service,
 * and replies when the next self-test is due.
 */
export const selfTest = DeviceMethod.request({
  name: "thing.acme.selftest",
  action: "PostAcme",
  decode: SelfTest,
  handle: (reported, { device }) =>
    Effect.map(
      SelfTests.use((selfTests) => selfTests.keep(device.deviceId, reported)),
      (passed) => DeviceReply.success({ passed, next: passed ? pause.passed : pause.failed })
    )
})
