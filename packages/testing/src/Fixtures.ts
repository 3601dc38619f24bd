/**
 * Products, devices and a thing model to test with.
 */
import {
  defaultProjectId,
  type DeviceDraft,
  Devices,
  type Product,
  type ProductDraft,
  Products,
  ThingModels
} from "@device-cloud/core"
import { Effect } from "effect"

/**
 * A direct Wi-Fi device that reports JSON, whose reports are checked weakly;
 * of node type `gateway-sub`, a Zigbee device.
 */
export const productDraft = (fields: Partial<ProductDraft> = {}): ProductDraft => ({
  name: "Thermometer",
  nodeType: "direct",
  ...fields.nodeType === "gateway-sub" ? { protocolType: "zigbee" } : { networkType: "wifi" },
  validateType: "weak",
  dataFormat: "json",
  authType: "secret",
  ...fields
})

/**
 * A thing model in the format `metadata`: the properties `power` (0 or 1) and
 * `level` (0 to 10), the event `alarm` with an output `code`, the service
 * `reset` with an input `hard`.
 */
export const thingModel = {
  properties: [
    { id: "power", name: "Power", accessMode: "rw", dataType: { type: "bool", specs: { 0: "off", 1: "on" } } },
    { id: "level", name: "Level", accessMode: "rw", dataType: { type: "int", min: 0, max: 10 } }
  ],
  events: [{
    id: "alarm",
    name: "Alarm",
    eventType: "alert",
    outputData: [{ id: "code", name: "Code", dataType: { type: "int" } }]
  }],
  services: [{
    id: "reset",
    name: "Reset",
    callType: "async",
    inputData: [{ id: "hard", name: "Hard", dataType: { type: "int" } }]
  }]
}

/** Creates a product of the default project: {@link productDraft}. Fails with `InvalidInput` if the fields do not fit. */
export const createProduct = Effect.fnUntraced(function*(fields: Partial<ProductDraft> = {}) {
  return yield* (yield* Products).create(defaultProjectId, productDraft(fields))
})

/**
 * Creates a product like {@link createProduct} that has a thing model, in the
 * format `metadata`. Default: {@link thingModel}. Fails with
 * `InvalidThingModel` if it is none.
 */
export const createProductWithModel = Effect.fnUntraced(
  function*(model: object = thingModel, fields: Partial<ProductDraft> = {}) {
    const product = yield* createProduct(fields)
    const models = yield* ThingModels
    yield* models.importFrom(defaultProjectId, product.productKey, "metadata", JSON.stringify(model))
    return product
  }
)

/**
 * Creates a device of the default project. Default: of a product of its own.
 * Fails with `ProductNotFound`, `InvalidInput` or `NotACloudGateway`.
 */
export const createDevice = Effect.fnUntraced(
  function*(product?: Pick<Product, "productKey">, draft: DeviceDraft = {}) {
    const { productKey } = product ?? (yield* createProduct())
    return yield* (yield* Devices).create(defaultProjectId, productKey, draft)
  }
)

/** Creates that many devices of one product. Default: of a product of their own. */
export const createDevices = Effect.fnUntraced(function*(count: number, product?: Pick<Product, "productKey">) {
  const of = product ?? (yield* createProduct())
  return yield* Effect.forEach(Array.from({ length: count }), () => createDevice(of))
})
