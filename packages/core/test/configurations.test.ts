import { Configurations, ConfigurationStore, defaultProjectId, DeviceCloud, Objects } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Faults, Fixtures, SimulatedDevice } from "@device-cloud/testing"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Queue } from "effect"
import { TestClock } from "effect/testing"

const cloudOn = <A, E>(stores: Layer.Layer<DeviceCloud.Stores | A, E>) =>
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

const lossy = Faults.layer({
  seed: 1,
  faults: [{ on: "ConfigurationStore.insert", does: "loseAnswer", calls: (n) => n === 1 }]
}).pipe(Layer.provide(StorageMemory.layer), Layer.provide(PlatformNode.layer))

const files = Layer.provideMerge(
  Objects.layer,
  Layer.mergeAll(lossy, PlatformNode.MemoryObjectStore.layer, PlatformNode.layer)
)

layer(cloudOn(files))("a configuration that is stored while the answer of the storage is lost", (it) => {
  it.effect("has its file", () =>
    Effect.gen(function*() {
      const configurations = yield* Configurations
      const { productKey } = yield* Fixtures.createProduct()
      const draft = { format: "text", content: "on" } as const
      const put = configurations.put(
        defaultProjectId,
        { productKey },
        draft,
        ({ fileName, objectId }) => Effect.succeed(`https://cloud.example.com/objects/${objectId}/${fileName}`)
      )
      assert.strictEqual((yield* Effect.flip(put))._tag, "StoreError")
      const [stored] = yield* configurations.versions(defaultProjectId, { productKey })
      const { size } = yield* Objects.use((objects) => objects.get(stored!.url.split("/").at(-2)!))
      assert.strictEqual(size, draft.content.length)
    }))
})
