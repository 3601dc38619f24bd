/**
 * The whole cloud inside a test: storage in memory, devices without a network,
 * time that the test moves.
 */
import {
  type Device,
  DeviceCloud,
  type DeviceDraft,
  type DeviceNamesTaken,
  type Devices,
  type InvalidInput,
  type Mac,
  type NotACloudGateway,
  type Product,
  type ProductDraft,
  type ProductNotFound,
  type Products,
  type ProjectNotFound,
  type QuotaExceeded,
  type StoreError
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as Fixtures from "./Fixtures.ts"
import type { StartedTestCloud, StartOptions } from "./PromisedTestCloud.ts"
import * as SimulatedDevice from "./SimulatedDevice.ts"

/** Products, devices and connections in a cloud of its own. */
export class TestCloud extends Context.Service<TestCloud, {
  /**
   * Creates a product of the default project. Default: a direct Wi-Fi device
   * whose reports are checked weakly. Fails with `InvalidInput` if the fields do
   * not fit each other.
   */
  readonly createProduct: (
    draft?: Partial<ProductDraft>
  ) => Effect.Effect<Product, InvalidInput | ProjectNotFound | QuotaExceeded | StoreError>
  /** Creates a device of the default project. Default: of a product of its own. */
  readonly createDevice: (
    product?: Product,
    draft?: DeviceDraft
  ) => Effect.Effect<
    Device,
    InvalidInput | ProjectNotFound | ProductNotFound | NotACloudGateway | DeviceNamesTaken | QuotaExceeded | StoreError
  >
  /** Connects a device; it disconnects with the scope at the latest. */
  readonly connect: typeof SimulatedDevice.connect
}>()("@device-cloud/testing/TestCloud") {
  /**
   * A cloud with storage in memory, another one wherever it is built. Its time
   * stands still until the test calls `TestClock.adjust`.
   *
   * ```ts
   * it.layer(TestCloud.layer, { excludeTestServices: true })("lamps", (it) => {
   *   it.effect("report their power", () =>
   *     Effect.gen(function*() {
   *       const cloud = yield* TestCloud
   *       const lamp = yield* cloud.connect(yield* cloud.createDevice())
   *       assert.strictEqual((yield* lamp.postProperties({ power: 1 })).code, 200)
   *     }))
   * })
   * ```
   */
  static readonly layer: Layer.Layer<TestCloud | DeviceCloud.DeviceCloud | Mac, StoreError> = Layer.effect(
    TestCloud,
    Effect.suspend(() => make)
  ).pipe(
    Layer.provideMerge(DeviceCloud.layer),
    Layer.provide(StorageMemory.layer),
    Layer.provideMerge(PlatformNode.layer),
    Layer.provideMerge(TestClock.layer())
  )

  /**
   * The same with promises, in any test runner. It ends with the block of
   * `await using`, or with `close`. With ports, for tests of firmware from outside,
   * time flows; without, it stands still until the test lets it pass.
   *
   * ```ts
   * await using cloud = await TestCloud.start()
   * const lamp = await cloud.connect(await cloud.createDevice(), { on: { set: () => {} } })
   * await cloud.commands.setProperties("default", lamp.device.deviceId, { power: 1 })
   * await cloud.advance("5 minutes")
   * ```
   */
  static readonly start = async (options?: StartOptions): Promise<StartedTestCloud> =>
    (await import("./PromisedTestCloud.ts")).start(options)
}

const make = Effect.gen(function*() {
  const services = yield* Effect.context<Devices | Products>()
  return TestCloud.of({
    createProduct: (draft) => Effect.provide(Fixtures.createProduct(draft), services),
    createDevice: (product, draft) => Effect.provide(Fixtures.createDevice(product, draft), services),
    connect: SimulatedDevice.connect
  })
})
