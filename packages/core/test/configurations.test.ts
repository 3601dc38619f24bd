import { Configurations, ConfigurationStore, defaultProjectId, DeviceCloud } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Faults, Fixtures, SimulatedDevice } from "@device-cloud/testing"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Queue } from "effect"
import { TestClock } from "effect/testing"

const cloudOn = <E>(stores: Layer.Layer<DeviceCloud.Stores, E>) =>
  DeviceCloud.layer.pipe(
    Layer.provideMerge(stores),
    Layer.provideMerge(PlatformNode.layer),
    Layer.provideMerge(TestClock.layer())
  )

/** Connects so many devices of a product, and pushes its configuration to them. */
const pushTo = Effect.fnUntraced(function*(count: number) {
  const product = yield* Fixtures.createProduct()
  const { productKey } = product
  yield* ConfigurationStore.use((store) =>
    store.insert({ productKey }, {
      configurationId: "c",
      format: "text",
      content: "",
      size: 0,
      sha256: "",
      url: "https://cloud.example.com/objects/c",
      createdAt: 0
    })
  )
  const devices = yield* Fixtures.createDevices(count, product)
  const connected = yield* Effect.forEach(devices, (device) => SimulatedDevice.connect(device))
  yield* TestClock.adjust("1 milli")
  yield* Configurations.use((configurations) => configurations.push(defaultProjectId, { productKey }))
  /** How many messages each device has got. */
  const heard = Effect.forEach(connected, ({ received }) => Queue.size(received))
  return { connected, heard }
})

layer(cloudOn(StorageMemory.layer))("a configuration that is pushed", (it) => {
  it.effect("reaches each device that stays connected, while others leave", () =>
    Effect.gen(function*() {
      const { connected, heard } = yield* pushTo(150)
      // 50 devices a second; a hundred are read at once.
      yield* TestClock.adjust("1 second")
      const first = (yield* heard).flatMap((messages, i) => messages > 0 ? [connected[i]!] : [])
      assert.isAbove(first.length, 40)
      yield* Effect.forEach(first, ({ disconnect }) => disconnect)
      yield* TestClock.adjust("10 seconds")
      assert.isTrue((yield* heard).every((messages) => messages === 1))
    }))
})

const outage = Faults.layer({
  seed: 1,
  faults: [{ on: ["DeviceStore.list", "ConfigurationStore.note"], does: "fail", during: ["500 millis", "5 seconds"] }]
}).pipe(Layer.provide(StorageMemory.layer), Layer.provide(PlatformNode.layer))

layer(cloudOn(outage))("a configuration that is pushed while the storage goes away", (it) => {
  it.effect("reaches each device when the storage is back", () =>
    Effect.gen(function*() {
      const { heard } = yield* pushTo(50)
      yield* TestClock.adjust("4 seconds")
      const told = (yield* heard).filter((messages) => messages > 0).length
      assert.isAbove(told, 0)
      assert.isBelow(told, 50)
      yield* TestClock.adjust("10 seconds")
      assert.isTrue((yield* heard).every((messages) => messages === 1))
    }))
})
