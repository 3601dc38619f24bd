/**
 * The product and the devices of `device-cloud simulate`: those that are there, or
 * new ones.
 */
import { DeviceCloudClient } from "@device-cloud/http"
import { Effect, Option, Stream } from "effect"
import { explain, failure, usage } from "./CommandFailure.ts"
import { masked } from "./Output.ts"
import { patiently, Server } from "./Server.ts"
import type { Model } from "./SimulatedValues.ts"

/** Who a simulated device is. */
export interface Triple {
  readonly productKey: string
  readonly deviceName: string
  readonly deviceSecret: string
}

const productName = "Simulated thermostat"

/** What devices do when nobody says what they are. */
const sampleModel = {
  properties: [
    {
      id: "Temperature",
      name: "Temperature",
      accessMode: "r",
      dataType: { type: "float", min: -20, max: 60, step: 0.1, unit: "°C" }
    },
    { id: "Humidity", name: "Humidity", accessMode: "r", dataType: { type: "int", min: 0, max: 100, unit: "%" } },
    {
      id: "TargetTemperature",
      name: "Target temperature",
      accessMode: "rw",
      dataType: { type: "float", min: 5, max: 35, step: 0.5, unit: "°C" }
    },
    { id: "PowerSwitch", name: "Power", accessMode: "rw", dataType: { type: "bool", specs: { 0: "off", 1: "on" } } }
  ],
  services: [{ id: "Restart", name: "Restart", callType: "async", inputData: [], outputData: [] }]
}

/** The product of earlier simulations, or a new one. */
const sampleProduct = Effect.fnUntraced(function*(cloud: DeviceCloudClient["Service"]) {
  const products = yield* Stream.paginate(1, (page) =>
    Effect.map(
      patiently(cloud.products.listProducts({ query: { page, page_size: 100 } })),
      ({ data }) => [data.results, page < data.pages ? Option.some(page + 1) : Option.none()] as const
    )).pipe(Stream.filter(({ name }) => name === productName), Stream.take(1), Stream.runCollect)
  if (products[0] !== undefined) return products[0].product_key
  const { data } = yield* patiently(cloud.products.createProduct({
    payload: {
      name: productName as never,
      node_type: "direct",
      network_type: "wifi",
      validate_type: "weak",
      data_format: "json",
      auth_type: "secret"
    }
  }))
  const { product_key } = data.product_info
  yield* patiently(cloud.thingModels.importThingModel({
    params: { product_key: product_key as never },
    payload: { model_type: "metadata", model_data: JSON.stringify(sampleModel) }
  }))
  return product_key
})

/** Returns the product of that key; without one, the product of earlier simulations, or a new one. */
export const findProduct = Effect.fnUntraced(function*(given: string | undefined) {
  const { url } = yield* Server
  const cloud = yield* DeviceCloudClient
  const productKey = given ?? (yield* Effect.mapError(sampleProduct(cloud), explain(url)))
  const { data } = yield* patiently(cloud.thingModels.getThingModel({
    params: { product_key: productKey as never },
    query: { model_type: "metadata" }
  })).pipe(Effect.mapError(explain(url)))
  const model = data.thing_model as unknown as Model
  return model.properties.length === 0
    ? yield* usage(`The product ${productKey} has no properties: \`device-cloud models import\` gives it a thing model`)
    : { productKey, model }
})

/** The devices of a product by these names; makes those that are missing. */
export const findDevices = Effect.fnUntraced(
  function*(productKey: string, names: ReadonlyArray<string>, prefix: string) {
    const { url } = yield* Server
    const cloud = yield* DeviceCloudClient
    const wanted = new Set(names)

    const read = Stream.paginate(1, (page) =>
      patiently(cloud.devices.listDevices({
        query: { page, page_size: 100, product_key: productKey as never, keyword: prefix as never }
      })).pipe(
        Effect.map(({ data }) => [data.results, page < data.pages ? Option.some(page + 1) : Option.none()] as const)
      )).pipe(
        Stream.filter(({ device_name }) => wanted.has(device_name)),
        Stream.map(({ device_name, device_secret }): Triple => ({
          productKey,
          deviceName: device_name,
          deviceSecret: device_secret
        })),
        Stream.runCollect,
        Effect.mapError(explain(url))
      )

    const found = yield* read
    if (found[0]?.deviceSecret === masked) {
      return yield* failure("The access key may not read the secrets of devices: it needs the role operator")
    }
    const missing = names.filter((name) => !found.some(({ deviceName }) => deviceName === name))
    if (missing.length === 0) return found
    yield* patiently(cloud.batches.createBatch({
      params: { product_key: productKey as never },
      payload: { device_names: missing as never, desc: "simulate" as never }
    })).pipe(Effect.mapError(explain(url)))
    return yield* read
  }
)
