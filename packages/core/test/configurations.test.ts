import { Configurations, ConfigurationStore, defaultProjectId, DeviceCloud } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures, SimulatedDevice } from "@device-cloud/testing"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Queue } from "effect"
import { TestClock } from "effect/testing"

const cloud = DeviceCloud.layer.pipe(
  Layer.provideMerge(StorageMemory.layer),
  Layer.provideMerge(PlatformNode.layer),
  Layer.provideMerge(TestClock.layer())
)

layer(cloud)("a configuration that is pushed", (it) => {
  it.effect("reaches each device that stays connected, while others leave", () =>
    Effect.gen(function*() {
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
      const devices = yield* Fixtures.createDevices(150, product)
      const connected = yield* Effect.forEach(devices, (device) => SimulatedDevice.connect(device))
      yield* TestClock.adjust("1 milli")
      yield* Configurations.use((configurations) => configurations.push(defaultProjectId, { productKey }))
      const heard = Effect.forEach(connected, ({ received }) => Queue.size(received))
      // 50 devices a second; a hundred are read at once.
      yield* TestClock.adjust("1 second")
      const first = (yield* heard).flatMap((messages, i) => messages > 0 ? [connected[i]!] : [])
      assert.isAbove(first.length, 40)
      yield* Effect.forEach(first, ({ disconnect }) => disconnect)
      yield* TestClock.adjust("10 seconds")
      assert.isTrue((yield* heard).every((messages) => messages === 1))
    }))
})
