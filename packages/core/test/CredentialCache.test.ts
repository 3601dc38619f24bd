import {
  defaultProjectId,
  type Device,
  DeviceAuthenticator,
  DeviceCloud,
  Devices,
  DeviceStore,
  Mac,
  uplinkText
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { type Context, Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"

const stores = StorageMemory.layer.pipe(Layer.provideMerge(PlatformNode.layer))

/** One node of a cloud whose nodes share their stores. */
const startNode = Layer.build(Layer.fresh(DeviceCloud.layer.pipe(Layer.provide(StorageMemory.layerNode))))

const createDevice = Effect.flatMap(Fixtures.createProduct({ validateType: "none" }), Fixtures.createDevice)
/** What becomes of a device that shows its signature: `accepted`, or the tag of what it is refused with. */
const authenticate = Effect.fnUntraced(
  function*({ deviceName, deviceSecret, productKey }: Device) {
    const claimed = { productKey, deviceName, random: "12345678" }
    const signature = (yield* Mac).sign("hmacsha256", deviceSecret, uplinkText(claimed))
    const authenticator = yield* DeviceAuthenticator
    yield* authenticator.authenticateUplink({ ...claimed, address: "192.0.2.1", signMethod: "hmacsha256", signature })
    return "accepted"
  },
  Effect.catch(({ _tag }) => Effect.succeed(_tag))
)

const change = (action: "enable" | "disable" | "remove", { deviceId }: Device) =>
  Effect.flatMap(Devices, (devices) => devices[action](defaultProjectId, deviceId))

it.effect("a device is refused at once when it was disabled or deleted, on whatever node", () =>
  Effect.gen(function*() {
    const nodes = [yield* startNode, yield* startNode]
    // A node hears the others a moment after its start.
    yield* TestClock.adjust("1 milli")
    const device = yield* Effect.provide(createDevice, nodes[0]!)
    const outcomes = Effect.forEach(nodes, (node) => Effect.provide(authenticate(device), node))
    assert.deepStrictEqual(yield* outcomes, ["accepted", "accepted"])
    for (
      const [action, outcome] of [
        ["disable", "DeviceDisabled"],
        ["enable", "accepted"],
        ["remove", "DeviceNotFound"]
      ] as const
    ) {
      yield* Effect.provide(change(action, device), nodes[0]!)
      // What one node tells, the other hears.
      yield* TestClock.adjust("1 milli")
      assert.deepStrictEqual(yield* outcomes, [outcome, outcome], action)
    }
  }).pipe(Effect.provide(stores)))

it.effect("a device that shows its signature often is looked up once a minute", () =>
  Effect.gen(function*() {
    let lookUps = 0
    const store = yield* DeviceStore
    const node = yield* Effect.provideService(startNode, DeviceStore, {
      ...store,
      credentials: (productKey, deviceName) =>
        Effect.suspend(() => {
          lookUps++
          return store.credentials(productKey, deviceName)
        })
    })
    const device = yield* Effect.provide(createDevice, node)
    for (let i = 0; i < 3; i++) assert.strictEqual(yield* Effect.provide(authenticate(device), node), "accepted")
    assert.strictEqual(lookUps, 1)
    yield* TestClock.adjust("1 minute")
    assert.strictEqual(yield* Effect.provide(authenticate(device), node), "accepted")
    assert.strictEqual(lookUps, 2)
  }).pipe(Effect.provide(stores)))

it.effect("what was looked up before a device was disabled is not remembered", () =>
  Effect.gen(function*() {
    const lookedUp = yield* Deferred.make<void>()
    const disabled = yield* Deferred.make<void>()
    const store = yield* DeviceStore
    const node: Context.Context<DeviceCloud.DeviceCloud> = yield* Effect.provideService(startNode, DeviceStore, {
      ...store,
      credentials: (productKey, deviceName) =>
        Effect.tap(
          store.credentials(productKey, deviceName),
          () => Effect.andThen(Deferred.succeed(lookedUp, undefined), Deferred.await(disabled))
        )
    })
    const device = yield* Effect.provide(createDevice, node)
    const first = yield* Effect.forkChild(Effect.provide(authenticate(device), node))
    yield* Deferred.await(lookedUp)
    yield* Effect.provide(change("disable", device), node)
    yield* Deferred.succeed(disabled, undefined)
    assert.strictEqual(yield* Fiber.join(first), "accepted")
    assert.strictEqual(yield* Effect.provide(authenticate(device), node), "DeviceDisabled")
  }).pipe(Effect.provide(stores)))
