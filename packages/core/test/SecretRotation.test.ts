import {
  connectText,
  defaultProjectId,
  type Device,
  DeviceAuthenticator,
  DeviceCloud,
  Devices,
  fieldsText,
  generatorText,
  Mac,
  Products,
  Provisioning,
  tokenText,
  uplinkText
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"

const stores = StorageMemory.layer.pipe(Layer.provideMerge(PlatformNode.layer))

/** One node of a cloud whose nodes share their stores. */
const startNode = Layer.build(Layer.fresh(DeviceCloud.layer.pipe(Layer.provide(StorageMemory.layerNode))))

/** Whether each way in which a device signs with its secret is let in. */
const waysIn = Effect.fnUntraced(function*({ deviceName, productKey, projectId }: Device, secret: string) {
  const authenticator = yield* DeviceAuthenticator
  const mac = yield* Mac
  // An address of its own for each attempt: wrong signatures are counted.
  const claimed = { productKey, deviceName, clientId: "c", random: "12345678", signMethod: "hmacsha1" } as const
  const signed = (text: string) => ({
    ...claimed,
    address: `${text} ${secret}`,
    signature: mac.sign("hmacsha1", secret, text)
  })
  const fields = { deviceName, productKey, clientId: "c" }
  const ways = {
    connect: authenticator.authenticate(signed(connectText(claimed))),
    token: authenticator.authenticateToken({
      ...claimed,
      address: `token ${secret}`,
      token: mac.sign("hmacsha256", secret, tokenText(claimed))
    }),
    uplink: Effect.map(authenticator.authenticateUplink(signed(uplinkText(claimed))), ({ device }) => device),
    subDevice: authenticator.authenticateSubDevice({ ...signed(fieldsText(fields)), projectId, fields })
  }
  return yield* Effect.forEach(
    Object.values(ways),
    (way) => way.pipe(Effect.as(true), Effect.catchTag("WrongSignature", () => Effect.succeed(false)))
  )
})

const all = [true, true, true, true]
const none = [false, false, false, false]

it.effect("two secrets of a device count everywhere while they overlap, on all nodes", () =>
  Effect.gen(function*() {
    const nodes = [yield* startNode, yield* startNode]
    // A node hears the others a moment after its start.
    yield* TestClock.adjust("1 milli")
    const device = yield* Effect.provide(
      Effect.flatMap(Fixtures.createProduct(), Fixtures.createDevice),
      nodes[0]!
    )
    const expect = Effect.fnUntraced(function*(secret: string, outcome: ReadonlyArray<boolean>) {
      for (const node of nodes) assert.deepStrictEqual(yield* Effect.provide(waysIn(device, secret), node), outcome)
    })
    const rotate = Effect.fnUntraced(function*(overlap?: number) {
      const { deviceSecret, previousSecret } = yield* Effect.provide(
        Devices.use((devices) =>
          devices.rotateSecret(defaultProjectId, device.deviceId, overlap === undefined ? {} : { overlap })
        ),
        nodes[0]!
      )
      // What one node tells, the other hears.
      yield* TestClock.adjust("1 milli")
      return { deviceSecret, previousSecret }
    })
    yield* expect(device.deviceSecret, all)
    const { deviceSecret: second, previousSecret } = yield* rotate()
    assert.deepStrictEqual(previousSecret, { secret: device.deviceSecret, until: 3_600_001 })
    yield* expect(device.deviceSecret, all)
    yield* expect(second, all)
    // Only the last two count.
    const { deviceSecret: third } = yield* rotate(90)
    yield* expect(device.deviceSecret, none)
    yield* expect(second, all)
    yield* expect(third, all)
    yield* TestClock.adjust("90 seconds")
    yield* expect(second, none)
    yield* expect(third, all)
    const { deviceSecret: fourth, previousSecret: withoutOverlap } = yield* rotate(0)
    assert.isNull(withoutOverlap)
    yield* TestClock.adjust("2 minutes")
    yield* expect(third, none)
    yield* expect(fourth, all)
  }).pipe(Effect.provide(stores)))

it.effect("two secrets of a product count for registration while they overlap", () =>
  Effect.gen(function*() {
    const node = yield* startNode
    const outcome = yield* Effect.gen(function*() {
      const product = yield* Fixtures.createProduct({ dynamicRegister: true })
      const { productKey, productSecret } = product
      const mac = yield* Mac
      const provisioning = yield* Provisioning
      const products = yield* Products
      const register = (secret: string) => {
        const request = { productKey, deviceName: "thermometer1", random: "12345", signMethod: "hmacsha1" } as const
        const sign = mac.sign("hmacsha1", secret, generatorText(request))
        return provisioning.generate({ ...request, sign }, "192.0.2.1").pipe(
          Effect.as("registered"),
          Effect.catch(({ _tag }) => Effect.succeed(_tag))
        )
      }
      const rotated = yield* products.rotateSecret(defaultProjectId, productKey, { overlap: 60 })
      const during = [yield* register(productSecret), yield* register(rotated.productSecret)]
      yield* TestClock.adjust("1 minute")
      const after = [yield* register(productSecret), yield* register(rotated.productSecret)]
      return { during, after }
    }).pipe(Effect.provide(node))
    assert.deepStrictEqual(outcome, {
      during: ["registered", "registered"],
      after: ["WrongSignature", "registered"]
    })
  }).pipe(Effect.provide(stores)))
