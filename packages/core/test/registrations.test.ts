import { DeviceCloud, DeviceStore, Mac, Products, Projects, Provisioning } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"

it.effect("projects take turns with registrations, a few of which are carried out at once", () => {
  let underway = 0
  let most = 0
  const order: Array<string> = []
  const slow = Layer.effect(
    DeviceStore,
    Effect.map(DeviceStore, (store) =>
      DeviceStore.of({
        ...store,
        claimByName: (productKey, deviceName, draft) =>
          Effect.acquireUseRelease(
            Effect.sync(() => {
              most = Math.max(most, ++underway)
              if (draft !== undefined) order.push(deviceName)
            }),
            () => Effect.andThen(Effect.yieldNow, store.claimByName(productKey, deviceName, draft)),
            () => Effect.sync(() => underway--)
          )
      }))
  ).pipe(Layer.provideMerge(StorageMemory.layer))
  return Effect.gen(function*() {
    const provisioning = yield* Provisioning
    const mac = yield* Mac
    const { id } = yield* (yield* Projects).create({ name: "Another" })
    const many = yield* Fixtures.createProduct({ dynamicRegister: true })
    const one = yield* (yield* Products).create(id, Fixtures.productDraft({ dynamicRegister: true }))
    const register = ({ productKey, productSecret }: typeof many, deviceName: string) =>
      provisioning.generate({
        productKey,
        deviceName,
        random: "12345",
        signMethod: "hmacsha1",
        sign: mac.sign("hmacsha1", productSecret, `deviceName${deviceName}productKey${productKey}random12345`)
      }, "192.0.2.1")
    const requests = [
      ...Array.from({ length: 50 }, (_, i) => register(many, `device${i}`)),
      register(one, "another")
    ]
    yield* Effect.all(requests, { concurrency: "unbounded" })
    assert.strictEqual(order.length, 51)
    assert.isAtMost(most, 4)
    assert.isBelow(order.indexOf("another"), 10)
  }).pipe(
    Effect.provide(DeviceCloud.layer.pipe(Layer.provide(slow), Layer.provideMerge(PlatformNode.layer)))
  )
})
