/**
 * The whole cloud inside a test: storage in memory, devices without a network,
 * time that the test moves.
 */
import {
  type Device,
  DeviceCloud,
  type DeviceDraft,
  type Devices,
  type InvalidInput,
  type Mac,
  type NotACloudGateway,
  type Product,
  type ProductDraft,
  type ProductNotFound,
  type Products,
  type StoreError
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as Fixtures from "./Fixtures.ts"
import * as SimulatedDevice from "./SimulatedDevice.ts"

const make = Effect.gen(function*() {
  const services = yield* Effect.context<Devices | Products>()
  return TestCloud.of({
    createProduct: (draft) => Effect.provide(Fixtures.createProduct(draft), services),
    createDevice: (product, draft) => Effect.provide(Fixtures.createDevice(product, draft), services),
    connect: SimulatedDevice.connect
  })
})

export class TestCloud extends Context.Service<TestCloud, {
  /** A product of the default project; what the draft leaves out is that of a simple direct device. */
  readonly createProduct: (draft?: Partial<ProductDraft>) => Effect.Effect<Product, InvalidInput | StoreError>
  /** A device of the default project, of a new product when none is given. */
  readonly createDevice: (
    product?: Product,
    draft?: DeviceDraft
  ) => Effect.Effect<Device, InvalidInput | ProductNotFound | NotACloudGateway | StoreError>
  /** Connects a device; it disconnects with the scope at the latest. */
  readonly connect: typeof SimulatedDevice.connect
}>()("@device-cloud/testing/TestCloud") {
  /** A cloud of its own wherever it is built. `TestClock.adjust` moves its time. */
  static readonly layer: Layer.Layer<TestCloud | DeviceCloud.DeviceCloud | Mac, StoreError> = Layer.effect(
    TestCloud,
    make
  ).pipe(
    Layer.provideMerge(DeviceCloud.layer),
    Layer.provide(StorageMemory.layer),
    Layer.provideMerge(PlatformNode.layer),
    Layer.provideMerge(TestClock.layer())
  )
}
