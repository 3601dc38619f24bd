/**
 * Tenants with everything that a request can name.
 */
import { DeviceId, Devices, ProjectId } from "@device-cloud/core"
import { SimulatedDevice } from "@device-cloud/testing"
import { call, ownerKey, productBody } from "@device-cloud/testing/http"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { createHmac } from "node:crypto"
import { type Operation, operationsOf } from "./ApiDescription.ts"
import * as JsonSchema from "./JsonSchema.ts"
import type { Given } from "./RequestWriter.ts"

/** All operations that the API describes. */
export const operations = Effect.map(
  call("GET", "//openapi.json", { key: null }),
  ({ text }) => operationsOf(JSON.parse(text))
)

const model = {
  properties: [
    { id: "power", name: "Power", accessMode: "rw", dataType: { type: "bool", specs: { 0: "off", 1: "on" } } },
    { id: "label", name: "Label", accessMode: "rw", dataType: { type: "text", length: 64 } },
    { id: "level", name: "Level", accessMode: "rw", dataType: { type: "double", min: -1e300, max: 1e300 } },
    { id: "since", name: "Since", accessMode: "rw", dataType: { type: "date" } },
    { id: "timers", name: "Timers", accessMode: "rw", dataType: { type: "array", size: 10, elementType: "int" } },
    {
      id: "color",
      name: "Color",
      accessMode: "rw",
      dataType: { type: "struct", specs: [{ id: "hue", name: "Hue", dataType: { type: "int", min: 0, max: 360 } }] }
    }
  ],
  events: [{
    id: "overheated",
    name: "Overheated",
    eventType: "info",
    outputData: [{ id: "temperature", name: "Temperature", dataType: { type: "float", min: -40, max: 200 } }]
  }],
  services: [{
    id: "reset",
    name: "Reset",
    callType: "async",
    inputData: [{ id: "delay", name: "Delay", dataType: { type: "int", min: 0, max: 60 } }],
    outputData: []
  }]
}

const image = {
  name: "Lamp firmware",
  oss_path: "https://example.com/firmware.bin",
  algorithms: 1,
  hash: "93230c3bde425a9d7984a594ac55ea1e"
}

/** Values of its properties. */
const values = { power: 1, label: "a", level: 1.5, since: "1795231840050", timers: [1, 2], color: { hue: 5 } }

const newKey = (body: object) =>
  Effect.map(call("POST", "/access-keys", { body: { name: "test", ...body } }), ({ body }) => body.data.key as string)

const newProject = (name: string) =>
  Effect.map(call("POST", "/projects", { body: { name } }), ({ body }) => body.data.id as string)

/** A new project, with keys of each role, and one of an admin of another project. */
export const newTenant = Effect.gen(function*() {
  const project_id = yield* newProject("Fuzzed")
  yield* call("PUT", `/projects/${project_id}/quotas`, { body: { subscriptions: 100_000 } })
  const keys: Given["keys"] = {
    owner: ownerKey,
    admin: yield* newKey({ role: "admin", project_id }),
    operator: yield* newKey({ role: "operator", project_id }),
    viewer: yield* newKey({ role: "viewer", project_id }),
    foreign: yield* newKey({ role: "admin", project_id: yield* newProject("Another") })
  }
  return { project_id, keys }
})

type Tenant = Effect.Success<typeof newTenant>

/** What a device says over HTTP. */
const messagesOf = (
  { device_name, product_key, ...node }: Readonly<
    Record<"product_key" | "device_name" | "sign" | "sign_method", string>
  >,
  messageId: string,
  networkKey: string
) => {
  const device = { device_name, product_key }
  const message = (action: string, body: object, query: Readonly<Record<string, string>> = {}) => ({
    query: { action, ...query },
    body
  })
  return [
    message("PostProperty", { id: "1", version: "1.0", params: values }),
    message("PostProperty", { params: { power: { value: 1, time: 1_795_231_554_300 }, label: "b" } }),
    message("PostEvent", { params: { value: { temperature: 99 }, time: 1_795_231_554_300 } }, {
      event_id: "overheated"
    }),
    message("PostServiceReply", { id: messageId, code: 200, message: "done", data: { ok: 1 } }, {
      service_id: "reset",
      pull: "1"
    }),
    message("PostHex", { params: { data: "00ff" } }),
    message("PostSubHex", { params: { data: "00ff", ...device } }),
    message("PostModbus", { id: 1, version: "1.0", method: "edge.get", params: { register: 4 } }),
    message("PostModbusSub", { id: 1, version: "1.0", method: "edge.get", params: device }),
    message("PostStarTopo", { params: [device] }, { method: "add" }),
    message("PostMeshTopo", { params: { network_key: networkKey } }, { method: "get" }),
    message("PostMeshTopo", { params: { network_key: networkKey, ...device, ...node, node_type: 1 } }, {
      method: "add"
    }),
    message("PostMeshTopo", { params: { network_key: networkKey, ...device } }, { method: "delete" }),
    message("PostShadow", { method: "update", state: { reported: { power: 0, label: "c" } }, version: 1000 }),
    message("PostShadow", { method: "update", state: { reported: { power: 0 }, desired: "null" }, version: 2000 }),
    message("PostShadow", { method: "get" }),
    message("PostShadow", { method: "delete", state: { reported: { label: "null" } }, version: 3000 }),
    message("PostOTA", { method: "thing.ota.inform", params: { version: "1.0.0", module: "default" } }),
    message("PostNTP", { deviceSendTime: "1795231840050" }),
    message("PostSysMsg", { method: "thing.deviceinfo.update", params: [{ attrKey: "room", attrValue: "kitchen" }] }),
    message("PostSysMsg", { method: "thing.deviceinfo.delete", params: [{ attrKey: "room" }] }),
    message("PostSysMsg", { method: "thing.config.get", params: { configScope: "product", getType: "file" } }),
    message("PostSysMsg", { method: "thing.bind.post", params: { random: "0123456789abcdef" } }),
    message("PostSysMsg", {
      method: "thing.log.post",
      params: [{ utcTime: "2026/11/21 11:31:19", logLevel: "WARN", module: "APP", logContent: "hello" }]
    }),
    message("PostRemoteDiagnosis", { params: { model: "format=simple", p: { wifi: { rssi: -75 } } } })
  ]
}

/** Everything that a request can name: a product with or without a model, a device that has reported, more. */
export const makeGiven = Effect.fnUntraced(function*({ keys, project_id }: Tenant, hasModel: boolean) {
  const ask = (method: string, path: string, body?: object) =>
    Effect.map(call(method, path, { key: keys.admin, body }), ({ body }) => {
      assert.strictEqual(body.code, 0, body.message)
      return body.data
    })
  const product = {
    name: "Lamp",
    node_type: "gateway",
    network_type: "wifi",
    validate_type: hasModel ? "weak" : "none",
    data_format: "json",
    auth_type: "secret",
    dynamic_register: true
  }
  const { product_info: { product_key, product_secret } } = yield* ask("POST", "/products", product)
  const { product_info: cloudGateway } = yield* ask("POST", "/products", { ...product, data_source: 3 })
  const modelOf = (type: string) =>
    Effect.map(
      ask("GET", `/products/${hasModel ? product_key : cloudGateway.product_key}/thing-model?model_type=${type}`),
      ({ thing_model }) => thing_model
    )
  yield* ask("POST", `/products/${hasModel ? product_key : cloudGateway.product_key}/thing-model`, {
    model_type: "metadata",
    model_data: JSON.stringify(model)
  })
  const gatewayProduct = yield* ask("POST", "/products", { ...product, node_type: "gateway" })
  const subProduct = yield* ask("POST", "/products", {
    ...product,
    node_type: "gateway-sub",
    network_type: "",
    protocol_type: "zigbee"
  })
  const sub_product_key = subProduct.product_info.product_key as string
  const gateway = yield* ask("POST", `/products/${gatewayProduct.product_info.product_key}/things`)
  const sub = yield* ask("POST", `/products/${sub_product_key}/things`)
  const { session_id } = yield* ask("PUT", `/things/${gateway.device_id}/topo`, { action: "sub.add.start" })
  const subDevice = {
    device_name: sub.device_name,
    product_key: sub_product_key,
    sign_method: "hmacsha1",
    sign: createHmac("sha1", sub.device_secret).update(`deviceName${sub.device_name}productKey${sub_product_key}`)
      .digest("hex")
  }
  yield* ask("POST", `/things/${gateway.device_id}/topo/sub-devices?session_id=${session_id}`, {
    params: [subDevice]
  })
  const { device_id, device_name, device_secret } = yield* ask("POST", `/products/${product_key}/things`)
  const other = yield* ask("POST", `/products/${product_key}/things`)
  const { batch_id } = yield* ask("POST", `/products/${product_key}/batch-things`, { num: 1 })
  const { group_id } = yield* ask("POST", "/device-groups", { name: `Given ${device_id}` })
  yield* ask("POST", `/device-groups/${group_id}/things`, { device_ids: [device_id] })
  const { subscription_id } = yield* ask("POST", "/subscriptions", { name: `Given ${device_id}` })
  const { message_id } = yield* ask("POST", `/things/${device_id}/properties`, { params: { power: 1 } })
  const { id } = yield* ask("POST", "/access-keys", { name: "Disposable", role: "viewer" })
  yield* ask("PUT", `/things/${device_id}/shadow`, { state: { desired: { label: "desired" } } })
  const random = "abcdefgh"
  const text = `productKey${product_key}deviceName${device_name}random${random}`
  const sign = createHmac("sha256", device_secret).update(text).digest("hex")
  const query = new URLSearchParams({
    product_key,
    device_name,
    random,
    sign,
    sign_method: "hmacsha256",
    action: "PostProperty"
  })
  // A device that speaks is online, also when what it says is refused.
  yield* ask("POST", `/thing-uplink?${query.toString()}`, { params: { power: 1 } })
  const firmware = (version: string) =>
    Effect.map(
      ask("POST", `/products/${product_key}/ota/firmwares`, { ...image, version }),
      ({ id }) => id as number
    )
  const [released, verified, idle] = [yield* firmware("1.0.0"), yield* firmware("1.1.0"), yield* firmware("1.2.0")]
  const { task_id } = yield* ask("POST", `/ota/firmwares/${released}/upgrade-tasks`, {
    scope_mode: 1,
    device_ids: [device_id],
    need_app_confirm: true
  })
  yield* ask("POST", `/ota/firmwares/${verified}/verify-task`, { device_ids: [other.device_id] })
  const { network_key } = yield* ask("POST", "/mesh/networks")
  const node = {
    product_key,
    device_name,
    sign_method: "hmacsha1",
    sign: createHmac("sha1", device_secret).update(`deviceName${device_name}productKey${product_key}`).digest("hex")
  }
  yield* ask("POST", `/mesh/networks/${network_key}/nodes`, { ...node, node_type: 2 })
  const devices = { product_key, device_name }
  const scenes = {
    triggers: [
      { URI: "trigger/device/property", params: { ...devices, property_id: "power" } },
      {
        URI: "trigger/device/property",
        params: { ...devices, device_name: "*", property_id: "level", compare_type: "between", compare_val: "1,2" }
      },
      { URI: "trigger/device/event", params: { ...devices, event_id: "*" } },
      { URI: "trigger/device/status", params: { ...devices, status: "*" } },
      { URI: "trigger/cron", params: { cron: "0 0 1 1 *" } }
    ],
    conditions: [
      { URI: "condition/device/status", params: { ...devices, status: "online", status_duration: 0 } },
      { URI: "condition/time/range", params: { time_range: { start_timestamp: 0, end_timestamp: 9_000_000_000 } } }
    ],
    actions: [
      { URI: "action/device/property", params: { device_id, items: { label: "c" } } },
      { URI: "action/webhook", params: { URL: "https://hook.invalid/x", method: "POST", connect_timeout: 1 } }
    ]
  }
  const scene = yield* ask("POST", "/rule-engine/scenes", {
    ...scenes,
    actions: scenes.actions.slice(0, 1),
    name: `Given ${device_id}`,
    status: "enable"
  })
  const verification = yield* ask("GET", `/ota/firmwares/${verified}/verify-task`)
  const given: Given = {
    values: {
      ...image,
      firmware_id: [released, verified, idle],
      task_id: [task_id, verification.task_id],
      device_ids: [[device_id], [other.device_id], [device_id, other.device_id]],
      scope_mode: 1,
      module: ["default", "radio"],
      scene_id: scene.id,
      ...Object.fromEntries(
        Object.entries(scenes).map(([list, parts]) => [list, [[], ...parts.map((part) => [part])]])
      ),
      product_key,
      source_product_key: cloudGateway.product_key,
      device_id,
      device_name,
      batch_id,
      group_id,
      subscription_id,
      message_id,
      id,
      project_id: yield* newProject("Disposable"),
      own_project_id: project_id,
      service_id: "reset",
      property_id: "power",
      event_id: "overheated",
      models: { metadata: yield* modelOf("metadata"), tsl: yield* modelOf("tsl"), sdf: yield* modelOf("sdf") },
      model_type: "metadata",
      model_data: JSON.stringify(model),
      node_type: "direct",
      network_type: "wifi",
      protocol_type: JsonSchema.leaveOut,
      version: JsonSchema.leaveOut,
      params: [values, { power: 0 }],
      desired: [values, { label: "b" }],
      tags: { room: "kitchen", floor: "1" },
      num: [1, 2],
      random,
      mac: "AA:BB:CC:DD:EE:FF",
      expires_at: "2999-01-01T00:00:00Z",
      tag: "room:kitchen",
      gateway_id: gateway.device_id,
      sub_product_key,
      sub_device: subDevice,
      session_id,
      network_key,
      sign: node.sign,
      cipher: "0cddca1f872c3c2b3e80326124593c37",
      raw_data: ["00", "d101ff"]
    },
    messages: messagesOf(node, message_id, network_key),
    deviceSecret: device_secret,
    productSecret: product_secret,
    keys
  }
  return given
})

const [power] = model.properties

/** What some operations take instead of what others take by the same names. */
const own: Readonly<Record<string, (values: Given["values"]) => object>> = {
  "POST /openapi/v1/auth/generator/device": () => ({ device_name: ["Device0001", "Device0002", "012345"] }),
  "POST /openapi/v1/access-keys": ({ own_project_id }) => ({ project_id: own_project_id }),
  "POST /openapi/v1/products/{product_key}/ota/firmwares": () => ({
    version: Array.from({ length: 200 }, (_, i) => `2.0.${i}`)
  }),
  ...Object.fromEntries(
    ["PUT ", "GET ", "POST ", "DELETE "].flatMap((method) =>
      ["", "/sub-devices"].map((rest) => [
        `${method}/openapi/v1/things/{device_id}/topo${rest}`,
        ({ gateway_id, sub_device, sub_product_key }: Given["values"]) => ({
          device_id: gateway_id,
          product_keys: [[sub_product_key], []],
          timeout: [1, 60],
          params: rest === "" ? JsonSchema.leaveOut : [[sub_device]]
        })
      ])
    )
  ),
  "POST /openapi/v1/mesh/networks": () => ({ network_key: JsonSchema.leaveOut, app_key: JsonSchema.leaveOut }),
  "POST /openapi/v1/mesh/networks/{network_key}/nodes": () => ({
    sign_method: "hmacsha1",
    node_type: 1,
    mesh_addr: Array.from({ length: 200 }, (_, i) => 0x0200 + i)
  }),
  "POST /openapi/v1/auth/ble/products/{product_key}/identity": () => ({
    random: "000102030405060708090a0b0c0d0e0f"
  }),
  ...Object.fromEntries(
    [
      "GET /openapi/v1/rule-engine/scenes/{id}",
      "PUT /openapi/v1/rule-engine/scenes/{id}",
      "DELETE /openapi/v1/rule-engine/scenes/{id}",
      "PUT /openapi/v1/rule-engine/scenes/{id}/status",
      "POST /openapi/v1/rule-engine/scenes/{id}/actions",
      "POST /openapi/v1/rule-engine/scenes/{id}/explain",
      "GET /openapi/v1/rule-engine/scenes/{id}/executions"
    ].map((operation) => [
      operation,
      ({ scene_id }: Given["values"]) => ({ id: scene_id, status: JsonSchema.leaveOut, value: { temperature: 5 } })
    ])
  ),
  "POST /openapi/v1/rule-engine/scenes": () => ({ name: Array.from({ length: 200 }, (_, i) => `Scene ${i}`) }),
  "GET /openapi/v1/events": () => ({ type: ["status", "property,event"] }),
  "GET /openapi/v1/subscriptions/{subscription_id}/events": () => ({ wait: 0 }),
  "POST /openapi/v1/products/{product_key}/things": ({ source_product_key }) => ({
    product_key: source_product_key,
    clientid: "client",
    username: "user"
  }),
  "POST /openapi/v1/products/{product_key}/thing-model-element": () => ({
    type: "property",
    element: Array.from({ length: 200 }, (_, i) => ({ ...power, id: `added${i}` }))
  }),
  "PUT /openapi/v1/products/{product_key}/thing-model-element": () => ({ type: "property", element: power }),
  "DELETE /openapi/v1/products/{product_key}/thing-model-element": () => ({
    type: "property",
    id: model.properties.map(({ id }) => id)
  })
}

/** What a request of the operation can name. */
export const givenFor = ({ method, path }: Operation, given: Given): Given => ({
  ...given,
  values: { ...given.values, ...own[`${method} ${path}`]?.(given.values) }
})

/** A tenant of its own does what tenants do. */
export const goesOnWorking = Effect.gen(function*() {
  const { keys: { admin: key }, project_id } = yield* newTenant
  const ask = (method: string, path: string, body?: object) =>
    Effect.map(call(method, path, { key, body }), ({ body, status }) => {
      assert.deepStrictEqual([status, body.code], [200, 0], `${method} ${path} ${body.message}`)
      return body.data
    })
  const { product_info: { product_key } } = yield* ask("POST", "/products", productBody)
  yield* ask("POST", `/products/${product_key}/thing-model`, {
    model_type: "metadata",
    model_data: JSON.stringify(model)
  })
  const { device_id } = yield* ask("POST", `/products/${product_key}/things`, { nickname: "Kitchen" })
  const { batch_id } = yield* ask("POST", `/products/${product_key}/batch-things`, { num: 100 })
  assert.strictEqual((yield* ask("GET", `/things?batch_id=${batch_id}`)).total, 100)
  const { message_id } = yield* ask("POST", `/things/${device_id}/properties`, { params: { power: true } })
  const devices = yield* Devices
  const { device } = yield* devices.get(ProjectId.make(project_id), { deviceId: DeviceId.make(device_id) })
  const simulated = yield* SimulatedDevice.connect(device)
  assert.strictEqual((yield* simulated.postProperties({ ...values, unknown: 1 })).code, 200)
  assert.deepStrictEqual((yield* ask("GET", `/things/${device_id}/properties`)).properties, values)
  assert.strictEqual((yield* ask("GET", `/things/${device_id}/status`)).status, "online")
  yield* simulated.disconnect
  assert.strictEqual((yield* ask("GET", `/things/${device_id}/messages/${message_id}`)).message_id, message_id)
  yield* ask("DELETE", `/products/${product_key}/batch-things/${batch_id}`)
  yield* ask("DELETE", `/things/${device_id}`)
  yield* ask("DELETE", `/products/${product_key}`)
  assert.strictEqual((yield* ask("GET", "/products")).total, 0)
}).pipe(Effect.scoped)
