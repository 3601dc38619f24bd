import { DeviceCloud, DeviceStore, Mac, type Product, Products, Projects, Provisioning } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Latch, Layer } from "effect"

/** The cloud on a storage whose look for a device, or creation of it, is `around` that of the storage in memory. */
const cloud = (
  around: (
    deviceName: string,
    creates: boolean,
    claim: ReturnType<DeviceStore["Service"]["claimByName"]>
  ) => typeof claim
) => {
  const storage = Layer.effect(
    DeviceStore,
    Effect.map(DeviceStore, (store) =>
      DeviceStore.of({
        ...store,
        claimByName: (productKey, deviceName, draft) =>
          around(deviceName, draft !== undefined, store.claimByName(productKey, deviceName, draft))
      }))
  ).pipe(Layer.provideMerge(StorageMemory.layer))
  return DeviceCloud.layer.pipe(Layer.provide(storage), Layer.provideMerge(PlatformNode.layer))
}

/** A product of the first project, one of another, and how devices register with them. */
const twoProjects = Effect.gen(function*() {
  const provisioning = yield* Provisioning
  const mac = yield* Mac
  const { id } = yield* (yield* Projects).create({ name: "Another" })
  return {
    many: yield* Fixtures.createProduct({ dynamicRegister: true }),
    one: yield* (yield* Products).create(id, Fixtures.productDraft({ dynamicRegister: true })),
    register: ({ productKey, productSecret }: Product, deviceName: string) =>
      provisioning.generate({
        productKey,
        deviceName,
        random: "12345",
        signMethod: "hmacsha1",
        sign: mac.sign("hmacsha1", productSecret, `deviceName${deviceName}productKey${productKey}random12345`)
      }, "192.0.2.1")
  }
})

it.effect("projects take turns with registrations, a few of which are carried out at once", () => {
  let underway = 0
  let most = 0
  const order: Array<string> = []
  return Effect.gen(function*() {
    const { many, one, register } = yield* twoProjects
    const requests = [
      ...Array.from({ length: 50 }, (_, i) => register(many, `device${i}`)),
      register(one, "another")
    ]
    yield* Effect.all(requests, { concurrency: "unbounded" })
    assert.strictEqual(order.length, 51)
    assert.isAtMost(most, 4)
    assert.isBelow(order.indexOf("another"), 10)
  }).pipe(Effect.provide(cloud((deviceName, creates, claim) =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        most = Math.max(most, ++underway)
        if (creates) order.push(deviceName)
      }),
      () => Effect.andThen(Effect.yieldNow, claim),
      () => Effect.sync(() => underway--)
    )
  )))
})

it.effect("registrations of a project that wait for the storage leave a place for those of another", () => {
  const gate = Latch.makeUnsafe()
  return Effect.gen(function*() {
    const { many, one, register } = yield* twoProjects
    const waiting = yield* Effect.forEach(
      Array.from({ length: 10 }),
      (_, i) => Effect.forkChild(register(many, `device${i}`), { startImmediately: true })
    )
    assert.strictEqual((yield* register(one, "another")).deviceName, "another")
    yield* gate.open
    assert.lengthOf(yield* Fiber.joinAll(waiting), 10)
  }).pipe(
    Effect.provide(
      cloud((deviceName, _, claim) => deviceName === "another" ? claim : Effect.andThen(gate.await, claim))
    )
  )
})
