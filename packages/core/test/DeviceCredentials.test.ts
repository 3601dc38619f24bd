import {
  defaultProjectId,
  type Device,
  DeviceAuthenticator,
  DeviceCredentials,
  DeviceName,
  type DeviceProver,
  Devices,
  type PresentedCredentials,
  ProductKey,
  ProofRefused,
  StoreError
} from "@device-cloud/core"
import { TestCloud } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"

/** Takes passwords `{scheme}:{product key}/{device name}`, and refuses those that end with `!`. */
const prover = (scheme: string): DeviceProver => ({ password }) => {
  const [used, name = ""] = password?.split(":") ?? []
  if (used !== scheme) return Effect.succeedNone
  if (name.endsWith("!")) return Effect.fail(new ProofRefused({ reason: "it ends with !" }))
  const [productKey = "", deviceName = ""] = name.split("/")
  return Effect.succeedSome({ productKey: ProductKey.make(productKey), deviceName: DeviceName.make(deviceName) })
}

const unreachable: DeviceProver = ({ password }) =>
  password === "unreachable:"
    ? Effect.fail(new StoreError({ operation: "tokens", retryable: true, cause: "away" }))
    : Effect.succeedNone

const cloud = TestCloud.layer.pipe(
  Layer.provide(Layer.succeed(DeviceCredentials, [prover("first"), prover("second"), unreachable]))
)

/** What becomes of a proof: the device id, `not mine`, or the tag of the failure. */
const prove = Effect.fnUntraced(
  function*(password: string, presented: Partial<PresentedCredentials> = {}) {
    const proved = yield* (yield* DeviceAuthenticator).prove({
      transport: "test",
      address: "192.0.2.1",
      password,
      ...presented
    })
    return Option.match(proved, { onNone: (): string => "not mine", onSome: ({ deviceId }) => deviceId })
  },
  Effect.catch(({ _tag }) => Effect.succeed(_tag))
)

const nameOf = ({ deviceName, productKey }: Pick<Device, "productKey" | "deviceName">) => `${productKey}/${deviceName}`

const createDevice = Effect.flatMap(TestCloud, (testCloud) => testCloud.createDevice())

it.effect("the first prover that takes a proof decides; without one, nothing is proved", () =>
  Effect.gen(function*() {
    const device = yield* createDevice
    for (const scheme of ["first", "second"]) {
      assert.strictEqual(yield* prove(`${scheme}:${nameOf(device)}`), device.deviceId)
    }
    assert.strictEqual(yield* prove("third:"), "not mine")
    assert.strictEqual(yield* prove("second:!"), "ProofRefused")
    assert.strictEqual(yield* prove("unreachable:"), "StoreError")
  }).pipe(Effect.provide(cloud)))

it.effect("without provers nothing is proved", () =>
  Effect.gen(function*() {
    assert.strictEqual(yield* prove(`first:${nameOf(yield* createDevice)}`), "not mine")
  }).pipe(Effect.provide(TestCloud.layer)))

it.effect("a proven device is refused when it does not exist or is disabled", () =>
  Effect.gen(function*() {
    const device = yield* createDevice
    assert.strictEqual(yield* prove("first:nothing/nobody"), "DeviceNotFound")
    yield* (yield* Devices).disable(defaultProjectId, device.deviceId)
    assert.strictEqual(yield* prove(`first:${nameOf(device)}`), "DeviceDisabled")
  }).pipe(Effect.provide(cloud)))

it.effect("a proof of another device than the request names is refused", () =>
  Effect.gen(function*() {
    const device = yield* createDevice
    const other = yield* createDevice
    assert.strictEqual(yield* prove(`first:${nameOf(device)}`, { device }), device.deviceId)
    assert.strictEqual(yield* prove(`first:${nameOf(device)}`, { device: other }), "ProofRefused")
  }).pipe(Effect.provide(cloud)))

it.effect("ten wrong proofs in a minute shut their name out where they came from, fifty their address", () =>
  Effect.gen(function*() {
    const proof = `first:${nameOf(yield* createDevice)}`
    for (let i = 0; i < 50; i++) {
      assert.strictEqual(yield* prove("first:!", { userName: `b${i}`, address: "198.51.100.1" }), "ProofRefused")
    }
    for (let i = 0; i < 10; i++) {
      assert.strictEqual(yield* prove("first:!", { userName: "a", address: "192.0.2.1" }), "ProofRefused")
    }
    assert.strictEqual(yield* prove(proof, { userName: "a", address: "192.0.2.1" }), "TooManyWrongSignatures")
    assert.notStrictEqual(yield* prove(proof, { userName: "b", address: "192.0.2.1" }), "TooManyWrongSignatures")
    assert.notStrictEqual(yield* prove(proof, { userName: "a", address: "203.0.113.1" }), "TooManyWrongSignatures")
    assert.strictEqual(yield* prove(proof, { userName: "c", address: "198.51.100.1" }), "TooManyWrongSignatures")
    assert.notStrictEqual(yield* prove(proof, { userName: "c", address: "203.0.113.1" }), "TooManyWrongSignatures")
    yield* TestClock.adjust("1 minute")
    assert.notStrictEqual(yield* prove(proof, { userName: "a", address: "198.51.100.1" }), "TooManyWrongSignatures")
  }).pipe(Effect.provide(cloud)))
