/**
 * The whole cloud inside a test: storage in memory, devices without a network,
 * time that the test moves.
 */
import {
  defaultProjectId,
  type Device,
  DeviceCloud,
  type DeviceDraft,
  Devices,
  type InvalidInput,
  type Mac,
  type NotACloudGateway,
  type Product,
  type ProductDraft,
  type ProductNotFound,
  Products,
  type StoreError
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as SimulatedDevice from "./SimulatedDevice.ts"

/** A direct Wi-Fi device that reports JSON and whose reports are checked weakly. */
const someProduct: ProductDraft = {
  name: "Thermometer",
  nodeType: "direct",
  networkType: "wifi",
  validateType: "weak",
  dataFormat: "json",
  authType: "secret"
}

const make = Effect.gen(function*() {
  const products = yield* Products
  const devices = yield* Devices

  const createProduct = (draft: Partial<ProductDraft> = {}) =>
    products.create(defaultProjectId, { ...someProduct, ...draft })

  const createDevice = Effect.fnUntraced(function*(product?: Product, draft: DeviceDraft = {}) {
    const { productKey } = product ?? (yield* createProduct())
    return yield* devices.create(defaultProjectId, productKey, draft)
  })

  return TestCloud.of({ createProduct, createDevice, connect: SimulatedDevice.connect })
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
