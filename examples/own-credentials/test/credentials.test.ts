import { connectText, defaultProjectId, type Device, DeviceName, Devices, Mac } from "@device-cloud/core"
import { DevelopmentCertificate, MqttServer } from "@device-cloud/mqtt"
import { Fixtures } from "@device-cloud/testing"
import { assert, layer } from "@effect/vitest"
import { Clock, Context, Effect, Exit, Layer, Redacted } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Cloud from "../src/Cloud.ts"
import { type Factory, makeFactory } from "../src/DeviceCertificate.ts"
import * as DeviceToken from "../src/DeviceToken.ts"
import * as MqttDevice from "../src/MqttDevice.ts"

const accepted = 0
const badCredentials = 4
const notAuthorized = 5

const tokenKey = Redacted.make("the key of the application")

class Setup extends Context.Service<Setup, {
  readonly certificate: DevelopmentCertificate.DevelopmentCertificate
  readonly factory: Factory
}>()("@device-cloud/example-own-credentials/test/Setup") {
  static readonly layer = Layer.effect(
    Setup,
    Effect.gen(function*() {
      const directory = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-own-credentials-"))),
        (directory) => Effect.promise(() => rm(directory, { recursive: true }))
      )
      return Setup.of({
        certificate: yield* DevelopmentCertificate.loadOrMake(directory),
        factory: yield* makeFactory("Factory")
      })
    })
  )
}

const cloud = Layer.unwrap(
  Effect.map(
    Setup,
    ({ certificate, factory }) => Cloud.layer({ tokenKey, certificate, factoryAuthority: factory.authority })
  )
).pipe(Layer.provideMerge(Setup.layer))

const createDevice = Effect.flatMap(Fixtures.createProduct({ validateType: "none" }), Fixtures.createDevice)

/** Returns the return code of the CONNACK. */
const connect = Effect.fnUntraced(function*(presented: Partial<MqttDevice.Presented>) {
  const { mqtts } = yield* MqttServer
  const { certificate } = yield* Setup
  return yield* MqttDevice.connect({ url: mqtts!, authority: certificate.authority }, { clientId: "c", ...presented })
})

const hour = 3_600_000

const tokenFor = Effect.fnUntraced(function*(
  device: Pick<Device, "productKey" | "deviceName">,
  { key = tokenKey, lifetime = hour } = {}
) {
  return yield* DeviceToken.issue(key, device, (yield* Clock.currentTimeMillis) + lifetime)
})

const certificateFor = ({ deviceName, productKey }: Device) =>
  Effect.flatMap(Setup, ({ factory }) => factory.issue(`${productKey}/${deviceName}`))

/** CONNECT fields with a signature of the device's secret. */
const signed = Effect.fnUntraced(function*({ deviceName, deviceSecret, productKey }: Device) {
  return {
    clientId: "c|signmethod=hmacsha256,authType=1|",
    username: `${deviceName}&${productKey}`,
    password: (yield* Mac).sign(
      "hmacsha256",
      deviceSecret,
      connectText({ clientId: "c", deviceName, productKey })
    )
  }
})

const wasOnline = ({ deviceId }: Device) =>
  Effect.flatMap(
    Devices,
    (devices) => Effect.map(devices.get(defaultProjectId, { deviceId }), ({ device }) => device.activatedAt !== null)
  )

layer(cloud, { excludeTestServices: true })("own credentials", (it) => {
  it.effect("a token of the application admits the device that it names", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const password = yield* tokenFor(device)
      assert.strictEqual(yield* connect({ username: "token", password }), accepted)
      assert.isTrue(yield* wasOnline(device))
    }))

  it.effect("a token of another key, an altered one and an expired one are refused", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const other = yield* createDevice
      const token = yield* tokenFor(device)
      const forged = (yield* tokenFor(other)).split(".").with(2, token.split(".")[2]!).join(".")
      for (
        const password of [
          yield* tokenFor(device, { key: Redacted.make("another key") }),
          forged,
          yield* tokenFor(device, { lifetime: -1 })
        ]
      ) {
        assert.strictEqual(yield* connect({ username: "token", password }), badCredentials)
      }
      assert.isFalse(yield* wasOnline(device))
      assert.isFalse(yield* wasOnline(other))
    }))

  it.effect("a certificate of the factory admits the device that it names, without a password", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      assert.strictEqual(yield* connect(yield* certificateFor(device)), accepted)
      assert.isTrue(yield* wasOnline(device))
    }))

  it.effect("a certificate of another authority is refused", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const files = yield* (yield* makeFactory("Other")).issue(`${device.productKey}/${device.deviceName}`)
      assert.strictEqual(yield* connect(files), badCredentials)
      assert.isFalse(yield* wasOnline(device))
    }))

  it.effect("a forged certificate, whose authority has the factory's name and another key, admits nobody", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const files = yield* (yield* makeFactory("Factory")).issue(`${device.productKey}/${device.deviceName}`)
      // OpenSSL ends most of these connections by itself.
      assert.notDeepEqual(yield* Effect.exit(connect(files)), Exit.succeed(accepted))
      assert.isFalse(yield* wasOnline(device))
    }))

  it.effect("a certificate that names no device is refused, and one of a device that does not exist", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const { factory } = yield* Setup
      assert.strictEqual(yield* connect(yield* factory.issue("Router")), badCredentials)
      assert.strictEqual(
        yield* connect(yield* certificateFor({ ...device, deviceName: DeviceName.make("nobody") })),
        badCredentials
      )
    }))

  it.effect("a signature admits a device as before, also beside a certificate of another authority", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      assert.strictEqual(yield* connect(yield* signed(device)), accepted)
      const foreign = yield* (yield* makeFactory("Other")).issue("anything")
      assert.strictEqual(yield* connect({ ...foreign, ...yield* signed(device) }), accepted)
    }))

  it.effect("a device without a proof is refused", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* connect({}), badCredentials)
    }))

  it.effect("a disabled device is refused with each of its proofs", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      yield* (yield* Devices).disable(defaultProjectId, device.deviceId)
      for (
        const presented of [
          { username: "token", password: yield* tokenFor(device) },
          yield* certificateFor(device),
          yield* signed(device)
        ]
      ) {
        assert.strictEqual(yield* connect(presented), notAuthorized)
      }
    }))
})
