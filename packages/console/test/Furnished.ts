/**
 * A server of the console with something on each page, and a browser, for the tests of a file.
 */
import { DeviceName, ProductKey } from "@device-cloud/core"
import { ownerKey } from "@device-cloud/testing/http"
import { MqttDevice } from "@device-cloud/testing/mqtt"
import { assert } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { freePort } from "../../../vitest.ports.ts"
import { launch, serve } from "./ConsolePage.ts"

const model = {
  properties: [
    { id: "Temperature", name: "Temperature", accessMode: "r", dataType: { type: "float", unit: "°C" } },
    { id: "PowerSwitch", name: "Power", accessMode: "rw", dataType: { type: "bool", specs: { 0: "off", 1: "on" } } },
    { id: "LastSeen", name: "Last seen", accessMode: "rw", dataType: { type: "date" } },
    { id: "Target", name: "Target", accessMode: "rw", dataType: { type: "int", unit: "°C" } }
  ],
  events: [{ id: "Error", name: "Error", eventType: "error", outputData: [] }],
  services: [{ id: "Restart", name: "Restart", callType: "async", inputData: [], outputData: [] }]
}

/** The `data` of a response: a test looks into whatever came. */
// oxlint-disable-next-line typescript/no-explicit-any
type Answer = Readonly<Record<string, any>>

export class Furnished extends Context.Service<Furnished, Effect.Success<typeof make>>()(
  "@device-cloud/console/test/Furnished"
) {
  static readonly layer = Layer.effect(Furnished, Effect.suspend(() => make))
}

const make = Effect.gen(function*() {
  const [http, mqtt] = [yield* freePort, yield* freePort]
  const site = `http://127.0.0.1:${http}`
  yield* serve({ STORAGE: "memory", HTTP_PORT: String(http), MQTT_PORT: String(mqtt) })
  const call = (method: string, path: string, body?: object) =>
    Effect.promise(async () => {
      const response = await fetch(`${site}/openapi/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${ownerKey}`, "content-type": "application/json" },
        ...body === undefined ? {} : { body: JSON.stringify(body) }
      })
      const { code, data, message } = await response.json() as {
        readonly code: number
        readonly message: string
        readonly data: never
      }
      assert.strictEqual(code, 0, message)
      return data as Answer
    })
  const product = (name: string, node_type: string) =>
    Effect.map(
      call("POST", "/products", {
        name,
        node_type,
        network_type: "wifi",
        validate_type: "weak",
        data_format: "json",
        auth_type: "secret"
      }),
      ({ product_info }) => product_info.product_key as string
    )
  const key = yield* product("Thermostat", "direct")
  const gateways = yield* product("Hub", "gateway")
  yield* call("POST", `/products/${key}/thing-model`, { model_type: "metadata", model_data: JSON.stringify(model) })
  const hub = yield* call("POST", `/products/${gateways}/things`, { device_name: "hub01" })
  yield* call("POST", `/products/${key}/batch-things`, { num: 30, desc: "first" })
  const { results: [batched] } = yield* call("GET", `/things?product_key=${key}&page_size=1`)
  const device = yield* call("POST", `/products/${key}/things`, { device_name: "thermostat01" })
  const scene = yield* call("POST", "/rule-engine/scenes", {
    name: "Too hot",
    status: "enable",
    triggers: [{
      URI: "trigger/device/property",
      params: { product_key: key, device_name: "*", property_id: "Temperature", compare_type: ">", compare_val: "30" }
    }, { URI: "trigger/cron", params: { cron: "0 0 7 * * *" } }],
    actions: [{ URI: "action/device/property", params: { device_id: device["device_id"], items: { PowerSwitch: 1 } } }]
  })
  const firmware = yield* call("POST", `/products/${key}/ota/firmwares`, {
    name: "Thermostat",
    version: "1.1.0",
    oss_path: "https://example.com/firmware.bin",
    algorithms: 1,
    hash: "93230c3bde425a9d7984a594ac55ea1e"
  })
  const { task_id } = yield* call("POST", `/ota/firmwares/${firmware["id"]}/upgrade-tasks`, { scope_mode: 0 })
  const network = yield* call("POST", "/mesh/networks")
  yield* call("PUT", `/products/${key}/configuration`, { format: "json", content: "{}" })
  const group = yield* call("POST", "/device-groups", { name: "Hall" })
  yield* call("POST", `/device-groups/${group["group_id"]}/things`, { device_ids: [device["device_id"]] })
  const certified = yield* call("POST", "/products", {
    name: "Lock",
    node_type: "direct",
    network_type: "wifi",
    validate_type: "none",
    data_format: "raw",
    auth_type: "certificate"
  })
  const lock = yield* call("POST", `/products/${certified["product_info"].product_key}/things`, {
    device_name: "lock01"
  })
  yield* call("POST", `/things/${lock["device_id"]}/certificates`, { valid_days: 30 })
  const pushed = yield* call("POST", "/subscriptions", { name: "Push", webhook: { url: "https://hooks.invalid/" } })
  const job = yield* call("POST", "/jobs", { name: "Calibrate", document: { zero: true }, product_key: key })
  const connected = yield* MqttDevice.connectTo({ url: `mqtt://127.0.0.1:${mqtt}` }, {
    productKey: ProductKey.make(key),
    deviceName: DeviceName.make("thermostat01"),
    deviceSecret: device["device_secret"]!
  })
  yield* connected.post({ Temperature: 31, PowerSwitch: 0 }, { qos: 1 })
  yield* connected.say("thing/ota/progress", { id: "1", params: { step: "-1", desc: "no space left" } })
  const post = (values: Readonly<Record<string, unknown>>) => Effect.runPromise(connected.post(values, { qos: 1 }))
  const keyOf = (name: string, scopes: object) =>
    Effect.map(call("POST", "/access-keys", { name, role: "operator", scopes }), (made) => made["key"] as string)
  const viewer = yield* call("POST", "/access-keys", { name: "dashboard", role: "viewer" })
  const at = (path: string) => `/console${path}`
  const d = `/devices/${device["device_id"]}`
  return {
    browser: yield* launch,
    site,
    device: at(d),
    batched: at(`/devices/${batched["device_id"]}`),
    connect: at(`/devices/connect?product=${key}&device=${device["device_id"]}`),
    product: at(`/products/${key}`),
    codec: at(`/products/${certified["product_info"].product_key}/codec`),
    hub: at(`/devices/${hub["device_id"]}`),
    lock: at(`/devices/${lock["device_id"]}`),
    scene: at(`/scenes/${scene["id"]}`),
    viewerKey: viewer["key"] as string,
    ofProductKey: yield* keyOf("product", { products: [key] }),
    ofProductsKey: yield* keyOf("products", { products: [certified["product_info"].product_key, key] }),
    ofProductsAloneKey: yield* keyOf("products alone", { actions: ["products:read"] }),
    withoutEventsKey: yield* keyOf("no events", { actions: ["devices:read", "thingModels:read"] }),
    /** Somebody else, who calls the API. */
    call: (method: string, path: string, body?: object) => Effect.runPromise(call(method, path, body)),
    post,
    report: (temperature: number) => post({ Temperature: temperature }),
    secret: device["device_secret"] as string,
    pages: [
      "",
      "/products",
      `/products/${key}`,
      `/products/${key}/model`,
      `/products/${key}/versions`,
      `/products/${key}/configuration`,
      `/products/${certified["product_info"].product_key}/codec`,
      "/devices",
      "/devices?view=groups",
      `/devices?view=groups&group=${group["group_id"]}`,
      `/devices?view=batches&product=${key}`,
      "/devices?view=bulk",
      "/devices?view=authorities",
      `/devices/connect?product=${key}&device=${device["device_id"]}`,
      ...["", "/data", "/shadow", "/control", "/commands", "/events", "/firmware", "/trace", "/diagnosis"].map((tab) =>
        `${d}${tab}`
      ),
      "/firmware",
      `/firmware/${firmware["id"]}`,
      `/firmware/${firmware["id"]}/campaigns/${task_id}`,
      "/scenes",
      "/scenes/new",
      ...["", "/dry", "/executions", "/picture"].map((tab) => `/scenes/${scene["id"]}${tab}`),
      `/gateways?product=${gateways}`,
      "/mesh",
      `/mesh/${network["network_key"]}`,
      "/jobs",
      `/jobs/${job["job_id"]}`,
      "/events",
      "/subscriptions",
      `/subscriptions/${pushed["subscription_id"]}`,
      "/keys",
      "/projects",
      "/audit",
      "/nowhere"
    ].map(at)
  }
})
