import {
  connectText,
  defaultProjectId,
  type Device,
  DeviceAuthenticator,
  DeviceCloud,
  DeviceCredentials,
  DeviceId,
  type DeviceProver,
  fieldsText,
  Mac,
  ProjectId,
  ProofRefused,
  Provisioning
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import { Fixtures } from "@device-cloud/testing"
import { assert, it, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import * as StorageMemory from "@device-cloud/storage-memory"
import { storages } from "../../../vitest.storages.ts"

/** The address of most attempts. */
const here = "192.0.2.1"
const elsewhere = "198.51.100.7"

/** What becomes of an attempt: `accepted`, or the tag of the refusal. */
const outcome = <A, E extends { readonly _tag: string }, R>(attempt: Effect.Effect<A, E, R>) =>
  Effect.match(attempt, { onSuccess: () => "accepted", onFailure: ({ _tag }) => _tag })

const connect = Effect.fnUntraced(function*(device: Device, address: string, secret = device.deviceSecret) {
  const { deviceName, productKey } = device
  const text = connectText({ clientId: "c", deviceName, productKey })
  const signature = (yield* Mac).sign("hmacsha1", secret, text)
  const authenticator = yield* DeviceAuthenticator
  return yield* outcome(authenticator.authenticate({
    productKey,
    deviceName,
    address,
    clientId: "c",
    signMethod: "hmacsha1",
    signature
  }))
})

/** So many attempts at once. Returns how often each outcome came. */
const storm = <R>(attempts: ReadonlyArray<Effect.Effect<string, never, R>>) =>
  Effect.map(Effect.all(attempts, { concurrency: "unbounded" }), (outcomes) => {
    const counts: Record<string, number> = {}
    for (const each of outcomes) counts[each] = (counts[each] ?? 0) + 1
    return counts
  })

const times = <A>(count: number, make: (i: number) => A): ReadonlyArray<A> =>
  Array.from({ length: count }, (_, i) => make(i))

const cloudOn = <A extends DeviceCloud.Stores, E>(stores: Layer.Layer<A, E>) =>
  DeviceCloud.layer.pipe(Layer.provide(stores), Layer.provideMerge(PlatformNode.layer))

for (const [name, storage] of storages) {
  layer(cloudOn(storage), { excludeTestServices: true })(`lock-outs on ${name}`, (it) => {
    it.effect("of any number of simultaneous wrong signatures for a device no more than ten are judged", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const counts = yield* storm(times(2000, () => connect(device, here, "wrong")))
        assert.deepStrictEqual(counts, { WrongSignature: 10, TooManyWrongSignatures: 1990 })
        // The secret does not help from there; from elsewhere nothing has happened.
        assert.strictEqual(yield* connect(device, here), "TooManyWrongSignatures")
        assert.strictEqual(yield* connect(device, elsewhere), "accepted")
      }))

    it.effect("fifty from one address, at whatever devices, refuse that address alone", () =>
      Effect.gen(function*() {
        const [device, other] = [yield* Fixtures.createDevice(), yield* Fixtures.createDevice()]
        const guess = (i: number) => ({ ...device, deviceName: `guess${i}` as Device["deviceName"] })
        const counts = yield* storm(times(500, (i) => connect(guess(i), "203.0.113.1")))
        assert.deepStrictEqual(counts, { DeviceNotFound: 50, TooManyWrongSignatures: 450 })
        assert.strictEqual(yield* connect(other, "203.0.113.1"), "TooManyWrongSignatures")
        assert.strictEqual(yield* connect(other, elsewhere), "accepted")
      }))

    it.effect("five thousand right signatures at once from one address all get in, also after some wrong ones", () =>
      Effect.gen(function*() {
        const product = yield* Fixtures.createProduct()
        const devices = yield* Fixtures.createDevices(100, product)
        yield* storm(times(9, () => connect(devices[0]!, "203.0.113.2", "wrong")))
        const counts = yield* storm(times(5000, (i) => connect(devices[i % 100]!, "203.0.113.2")))
        assert.deepStrictEqual(counts, { accepted: 5000 })
      }))

    it.effect("an IPv6 client is counted by its network of 64 bits", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        for (let i = 0; i < 10; i++) {
          assert.strictEqual(yield* connect(device, `2001:db8:1:2::${i}`, "wrong"), "WrongSignature")
        }
        assert.strictEqual(yield* connect(device, "2001:DB8:1:2:ffff::1"), "TooManyWrongSignatures")
        assert.strictEqual(yield* connect(device, "2001:db8:1:3::1"), "accepted")
      }))

    it.effect("gateways of other projects, and other gateways, do not count against a sub-device", () =>
      Effect.gen(function*() {
        const { deviceName, deviceSecret, productKey } = yield* Fixtures.createDevice(
          yield* Fixtures.createProduct({ nodeType: "gateway-sub" })
        )
        const fields = { productKey, deviceName }
        const authenticator = yield* DeviceAuthenticator
        const mac = yield* Mac
        const login = (gateway: string, projectId: ProjectId, secret: string) =>
          outcome(authenticator.authenticateSubDevice({
            ...fields,
            fields,
            projectId,
            address: DeviceId.make(gateway),
            signMethod: "hmacsha1",
            signature: mac.sign("hmacsha1", secret, fieldsText(fields))
          }))
        const stranger = ProjectId.make("stranger")
        assert.deepStrictEqual(yield* storm(times(40, () => login("foreign", stranger, "wrong"))), {
          DeviceNotFound: 10,
          TooManyWrongSignatures: 30
        })
        yield* storm(times(40, () => login("other", defaultProjectId, "wrong")))
        assert.strictEqual(yield* login("own", defaultProjectId, deviceSecret), "accepted")
      }))

    it.effect("guesses at the secret of a product count for the product and their address", () =>
      Effect.gen(function*() {
        const { productKey, productSecret } = yield* Fixtures.createProduct({ dynamicRegister: true })
        const provisioning = yield* Provisioning
        const mac = yield* Mac
        const register = (deviceName: string, address: string, secret: string) =>
          outcome(provisioning.generate({
            productKey,
            deviceName,
            random: "12345",
            signMethod: "hmacsha1",
            sign: mac.sign("hmacsha1", secret, `deviceName${deviceName}productKey${productKey}random12345`)
          }, address))
        assert.deepStrictEqual(yield* storm(times(200, (i) => register(`device${i}`, "203.0.113.3", "wrong"))), {
          WrongSignature: 10,
          TooManyWrongSignatures: 190
        })
        assert.strictEqual(yield* register("device1", "203.0.113.3", productSecret), "TooManyWrongSignatures")
        assert.strictEqual(yield* register("device1", elsewhere, productSecret), "accepted")
      }))
  })
}

it.effect("proofs whose check takes time wait for their turn, and no more are checked than may fail", () => {
  let underway = 0
  let most = 0
  const slow: ReadonlyArray<DeviceProver> = [({ device, password }) =>
    Effect.gen(function*() {
      most = Math.max(most, ++underway)
      yield* Effect.ensuring(Effect.sleep("10 millis"), Effect.sync(() => underway--))
      return password === "right"
        ? Option.some(device!)
        : yield* new ProofRefused({ reason: "the password is wrong" })
    })]
  return Effect.gen(function*() {
    const devices = yield* Fixtures.createDevices(20)
    const authenticator = yield* DeviceAuthenticator
    const prove = (i: number, password: string) =>
      outcome(authenticator.prove({ transport: "test", address: here, device: devices[i % 20]!, password }))
    const run = Effect.fnUntraced(function*(count: number, password: string) {
      const fiber = yield* Effect.forkChild(storm(times(count, (i) => prove(i, password))))
      yield* TestClock.adjust("1 second")
      return yield* Fiber.join(fiber)
    })
    assert.deepStrictEqual(yield* run(1000, "right"), { accepted: 1000 })
    assert.strictEqual(most, 50)
    assert.deepStrictEqual(yield* run(1000, "wrong"), { ProofRefused: 50, TooManyWrongSignatures: 950 })
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(yield* run(20, "right"), { accepted: 20 })
  }).pipe(Effect.provide(cloudOn(StorageMemory.layer).pipe(Layer.provide(Layer.succeed(DeviceCredentials, slow)))))
})
