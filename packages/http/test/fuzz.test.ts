/**
 * Whatever is sent, the API answers, as it always does; and what it refuses
 * changes nothing.
 */
import { DeviceId, Devices, ProjectId } from "@device-cloud/core"
import { SimulatedDevice } from "@device-cloud/testing"
import { call, ownerKey, productBody, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { HttpServer } from "effect/http"
import { createHmac } from "node:crypto"
import { connect } from "node:net"
import { storages } from "../../../vitest.storages.ts"
import { type Operation, operationsOf } from "./ApiDescription.ts"
import * as JsonSchema from "./JsonSchema.ts"
import { encode, oddHeaders, segments, texts } from "./OddValues.ts"
import * as RawRequest from "./RawRequest.ts"
import { type Case, describe, type Given, hopelessCases, uncertainCases, wrongSignatureCases } from "./RequestCases.ts"
import * as SeededRandom from "./SeededRandom.ts"

const seed = 20_261_121

/** Requests under way at the same time. */
const concurrency = 16

const operations = Effect.map(
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
const newTenant = Effect.gen(function*() {
  const project_id = yield* newProject("Fuzzed")
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
const makeGiven = Effect.fnUntraced(function*({ keys, project_id }: Tenant, hasModel: boolean) {
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
  const { product_info: cloudGateway } = yield* ask("POST", "/products", productBody)
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

const givenFor = ({ method, path }: Operation, given: Given): Given => ({
  ...given,
  values: { ...given.values, ...own[`${method} ${path}`]?.(given.values) }
})

/** What is no JSON where all went well: files, lists of triples, streams of events. */
const isPlain = /^(?:text\/csv|text\/event-stream|application\/octet-stream)/

/** What is wrong with an answer. */
const complaintsOf = (made: Case, { headers, status, text }: RawRequest.RawAnswer): ReadonlyArray<string> => {
  const complaints: Array<string> = []
  const expect = (holds: boolean, what: string) => {
    if (!holds) complaints.push(`${what}: ${status} ${text.slice(0, 500)} TO ${describe(made)}`)
  }
  expect(status !== 0, "there was no answer")
  if (status === 0) return complaints
  expect(status < 500, "the server failed")
  expect(headers["x-request-id"] !== undefined, "there is no request id")
  expect(!/node_modules|\.ts:\d+/.test(text), "inner details are told")
  if (made.hopeless) expect(status >= 400, "it was taken")
  if (status === 429) expect(headers["retry-after"] !== undefined, "there is no time to try again")
  if (status === 405) expect(headers["allow"] !== undefined, "the allowed methods are not told")
  if (made.request.method === "HEAD" || status === 304) {
    expect(text === "", "there is a body")
    return complaints
  }
  const mediaType = String(headers["content-type"])
  if (status < 300 && isPlain.test(mediaType)) return complaints
  expect(mediaType.startsWith("application/json"), "it is no JSON")
  if (complaints.length > 0) return complaints
  const body = JSON.parse(text)
  expect(Number.isInteger(body.code), "there is no code")
  expect(typeof body.message === "string" && body.message !== "", "there is no message")
  expect(status === 200 ? body.code === 0 : Math.floor(body.code / 100) === status, "code and status differ")
  // A message may carry the signature of another device.
  if (made.signed && body.data?.device_code === undefined) {
    expect(body.code !== 40110, "a right signature is taken for a wrong one")
  }
  if (body.code === 40001 && body.data?.device_code === undefined) {
    const issues = Object.values(body.data?.issues ?? {})
    expect(issues.length > 0 && issues.every((messages) => Array.isArray(messages)), "no field is named")
  }
  return complaints
}

/** All that the API shows of two projects, and of projects; by where it shows it. */
const snapshot = Effect.fnUntraced(function*(send: RawRequest.Send, { admin, foreign, owner }: Given["keys"]) {
  const seen = new Map<string, string>()
  const note = (path: string, value: unknown) => seen.set(path, JSON.stringify(value))
  const read = Effect.fnUntraced(function*(path: string, key: string) {
    const { status, text } = yield* send({
      method: "GET",
      path: `/openapi/v1${path}`,
      headers: { authorization: `Bearer ${key}` }
    })
    assert.strictEqual(status, 200, `${path} ${text}`)
    return JSON.parse(text).data
  })
  const all = Effect.fnUntraced(function*(path: string, key: string) {
    const items: Array<Readonly<Record<string, string>>> = []
    for (let page = 1, pages = 1; page <= pages; page++) {
      const data = yield* read(`${path}?page=${page}&page_size=100`, key)
      items.push(...data.results)
      pages = data.pages
    }
    return items
  })
  for (const project of yield* all("/projects", owner)) note(`/projects/${project["id"]}`, project)
  for (const key of [admin, foreign]) {
    const products = yield* all("/products", key)
    const devices = yield* all("/things", key)
    for (const accessKey of yield* all("/access-keys", key)) note(`/access-keys/${accessKey["id"]}`, accessKey)
    for (const product of products) note(`/products/${product["product_key"]}`, product)
    for (const device of devices) note(`/things/${device["device_id"]}`, device)
    const noteOf = (path: string) => Effect.map(read(path, key), (data) => note(path, data))
    yield* Effect.forEach(products, ({ product_key }) => noteOf(`/products/${product_key}/thing-model/versions`), {
      concurrency
    })
    const scenes = yield* all("/rule-engine/scenes", key)
    for (const scene of scenes) note(`/rule-engine/scenes/${scene["id"]}`, scene)
    note("/rule-engine/webhook-key", yield* read("/rule-engine/webhook-key", key))
    const firmwares = yield* all("/ota/firmwares", key)
    for (const firmware of firmwares) note(`/ota/firmwares/${firmware["id"]}`, firmware)
    yield* Effect.forEach(firmwares, ({ id }) =>
      Effect.gen(function*() {
        note(`/ota/firmwares/${id}/upgrade-tasks`, yield* all(`/ota/firmwares/${id}/upgrade-tasks`, key))
        yield* noteOf(`/ota/firmwares/${id}/verify-task`)
      }), { concurrency })
    for (const network of yield* all("/mesh/networks", key)) {
      const path = `/mesh/networks/${network["network_key"]}`
      note(path, network)
      note(`${path}/nodes`, yield* all(`${path}/nodes`, key))
    }
    yield* Effect.forEach(devices, ({ device_id }) =>
      Effect.gen(function*() {
        yield* noteOf(`/things/${device_id}/shadow`)
        yield* noteOf(`/things/${device_id}/events`)
        // Their states change with time.
        const messages = yield* all(`/things/${device_id}/messages`, key)
        note(`/things/${device_id}/messages`, messages.map(({ message_id }) => message_id))
      }), { concurrency })
  }
  return seen
})

/** What two snapshots show differently. */
const differences = (before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>) =>
  [...new Set([...before.keys(), ...after.keys()])]
    .filter((path) => before.get(path) !== after.get(path))
    .map((path) => `${path}: ${before.get(path)} BECAME ${after.get(path)}`)

const assertNone = (complaints: ReadonlyArray<string>) =>
  assert.isEmpty(complaints, `${complaints.length} of them:\n${complaints.slice(0, 25).join("\n")}\n`)

/** A request that no description has made. */
const caseOf = (
  method: string,
  path: string,
  headers: RawRequest.RawRequest["headers"] = {},
  body?: string
): Case => ({
  operation: `${method} ${path}`,
  oddity: "",
  request: { method, path, headers, body: body === undefined ? undefined : Buffer.from(body) },
  hopeless: false,
  signed: false
})

/** An address of its own, where the machine has them: many wrong signatures from one are not looked at. */
const addressOf = (i: number): string | undefined =>
  process.platform === "linux" ? `127.1.${i >> 8}.${i & 255}` : undefined

/** Sends bytes, and answers with the first line that comes back; empty: the connection was closed without one. */
const exchange = (bytes: string) =>
  Effect.flatMap(HttpServer.HttpServer, ({ address }) =>
    Effect.callback<string>((resume) => {
      assert("port" in address)
      const socket = connect(address.port, "127.0.0.1", () => socket.write(bytes, "latin1"))
      let text = ""
      socket.on("data", (chunk) => {
        text += chunk.toString("latin1")
        if (text.includes("\r\n")) socket.destroy()
      })
      socket.on("error", () => {})
      socket.on("close", () => resume(Effect.succeed(text.split("\r\n")[0]!)))
      return Effect.sync(() => socket.destroy())
    }))

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`fuzzed on ${name}`, (it) => {
    it.effect("answers whatever it is asked, and what it refuses changes nothing", () =>
      Effect.gen(function*() {
        const send = yield* RawRequest.make
        const tenant = yield* newTenant
        const complaints: Array<string> = []
        const refused: Array<Case> = []
        const ask = Effect.fnUntraced(function*(made: Case) {
          const answer = yield* send(made.request)
          complaints.push(...complaintsOf(made, answer))
          return answer
        })
        const shared = yield* makeGiven(tenant, true)
        const blocks = yield* Effect.forEach(yield* operations, (operation) =>
          Effect.gen(function*() {
            const { method, path } = operation
            const givens = [method === "GET" ? shared : yield* makeGiven(tenant, true)]
            // What a model refuses is taken without one.
            if (method === "POST" && /thing-uplink|device_id/.test(path)) givens.push(yield* makeGiven(tenant, false))
            const random = SeededRandom.make(seed)
            return givens.map((given) => uncertainCases(operation, givenFor(operation, given), random))
          }), { concurrency })
        yield* Effect.forEach(blocks.flat(), (cases) =>
          Effect.gen(function*() {
            for (const made of cases) {
              const { status, text } = yield* ask(made)
              if (status >= 400) refused.push(made)
              if (status === 200 && made.operation.startsWith("POST") && made.operation.endsWith("/batch-things")) {
                // Not to be read again with each snapshot.
                const path = made.request.path.split("?")[0]!.replace("/openapi/v1", "")
                yield* call("DELETE", `${path}/${JSON.parse(text).data.batch_id}`, { key: tenant.keys.admin })
              }
            }
          }), { concurrency })
        assertNone(complaints)
        assert.isAbove(blocks.flat(2).length, 2000)

        // What was refused once is mostly refused again; the few others are left out.
        let again: ReadonlyArray<Case> = refused
        let changes: ReadonlyArray<string> = []
        for (let round = 0; round < 3; round++) {
          const before = yield* snapshot(send, tenant.keys)
          const stillRefused = yield* Effect.filter(
            again,
            (made) => Effect.map(ask(made), ({ status }) => status >= 400),
            { concurrency }
          )
          changes = differences(before, yield* snapshot(send, tenant.keys))
          if (stillRefused.length === again.length) break
          again = stillRefused
        }
        assertNone([...complaints, ...changes])
        assert.isAbove(again.length, 500)
      }).pipe(Effect.scoped), 60_000)

    it.effect("refuses what it does not describe, and that changes nothing", () =>
      Effect.gen(function*() {
        const send = yield* RawRequest.make
        const tenant = yield* newTenant
        const given = yield* makeGiven(tenant, true)
        const cases = (yield* operations).flatMap((operation) =>
          hopelessCases(operation, givenFor(operation, given), SeededRandom.make(seed))
        )
        assert.isAbove(cases.length, 4000)
        const before = yield* snapshot(send, tenant.keys)
        const complaints = yield* Effect.forEach(
          cases,
          (made) => Effect.map(send(made.request), (answer) => complaintsOf(made, answer)),
          { concurrency }
        )
        assertNone([...complaints.flat(), ...differences(before, yield* snapshot(send, tenant.keys))])
      }).pipe(Effect.scoped))

    it.effect("refuses the same at once, and that changes nothing", () =>
      Effect.gen(function*() {
        const send = yield* RawRequest.make
        const tenant = yield* newTenant
        const { values } = yield* makeGiven(tenant, true)
        const { device_id, id, product_key } = values as Readonly<Record<string, string>>
        const { firmware_id, task_id } = values as Readonly<Record<string, ReadonlyArray<number>>>
        const key = { authorization: `Bearer ${tenant.keys.admin}`, "content-type": "application/json" }
        const foreign = { ...key, authorization: `Bearer ${tenant.keys.foreign}` }
        const cases = [
          caseOf("DELETE", `/openapi/v1/products/${product_key}`, key),
          caseOf("DELETE", `/openapi/v1/things/${device_id}`, foreign),
          caseOf("DELETE", `/openapi/v1/access-keys/${id}`, foreign),
          caseOf("PUT", `/openapi/v1/things/${device_id}/shadow`, key, "{\"state\":{\"desired\":{\"unknown\":1}}}"),
          caseOf("POST", `/openapi/v1/things/${device_id}/properties`, key, "{\"params\":{\"power\":5}}"),
          caseOf("POST", `/openapi/v1/things/${device_id}/upgrade`, key, `{"task_id":${task_id![0]}}`),
          caseOf("PUT", `/openapi/v1/ota/verify-tasks/${task_id![0]}`, key, "{\"result\":true}"),
          ...firmware_id!.map((firmware) =>
            caseOf("POST", `/openapi/v1/ota/firmwares/${firmware}/verify-task`, key, "{\"device_ids\":[\"unknown\"]}")
          )
        ]
        const before = yield* snapshot(send, tenant.keys)
        const complaints = yield* Effect.forEach(
          Array.from({ length: 10 }, () => cases).flat(),
          (made) => Effect.map(send(made.request), (answer) => complaintsOf({ ...made, hopeless: true }, answer)),
          { concurrency: "unbounded" }
        )
        assertNone([...complaints.flat(), ...differences(before, yield* snapshot(send, tenant.keys))])
      }).pipe(Effect.scoped))

    it.effect("answers on any path, and any method", () =>
      Effect.gen(function*() {
        const send = yield* RawRequest.make
        const authorization = `Bearer ${ownerKey}`
        const all = yield* operations
        const paths = [...new Set(all.map(({ path }) => path.replaceAll(/[{}]/g, "")))]
        const others = [
          "/healthz",
          "/readyz",
          "/metrics",
          "/docs",
          "/openapi.json",
          "/objects/x/y",
          "/",
          "//",
          "/%",
          "*"
        ]
        const methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "QUERY"]
        const uploaded = yield* call("POST", "/oss", {
          raw: "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\ncontent\r\n--x--\r\n",
          headers: { "content-type": "multipart/form-data; boundary=x" }
        })
        const { pathname } = new URL(uploaded.body.data.url)
        const ranges = [
          "bytes=0-",
          "bytes=-0",
          "bytes=9-1",
          "bytes=1e3-",
          "bytes=0-0,2-2",
          `bytes=${"9".repeat(400)}-`,
          "x"
        ]
        const cases = [
          ...[...paths, ...others].flatMap((path) => methods.map((method) => caseOf(method, path, { authorization }))),
          ...segments.flatMap((segment) => [
            caseOf("GET", `/${segment}`),
            caseOf("POST", `/openapi/${segment}/products`, { authorization }),
            caseOf("GET", `/objects/${segment}/a`),
            caseOf("DELETE", `${pathname}${segment}x`, { authorization })
          ]),
          ...ranges.flatMap((range) => [
            caseOf("GET", pathname, { range }),
            caseOf("GET", pathname, { range, "if-range": texts[21]! }),
            caseOf("HEAD", pathname, { range })
          ]),
          ...["*", "W/\"x\"", ",,,", "\"".repeat(5000)].map((etag) =>
            caseOf("GET", pathname, { "if-none-match": etag })
          ),
          ...oddHeaders.map(([, headers]) => caseOf("GET", pathname, headers))
        ]
        const plain = /^\/(?:metrics|docs|openapi\.json)/
        const complaints = yield* Effect.forEach(
          cases,
          (made) =>
            Effect.map(
              send(made.request),
              (answer) => plain.test(made.request.path) && answer.status === 200 ? [] : complaintsOf(made, answer)
            ),
          { concurrency }
        )
        assertNone(complaints.flat())
      }).pipe(Effect.scoped))

    it.effect("what is no HTTP ends its own connection at most", () =>
      Effect.gen(function*() {
        const lines = [
          "GET /healthz HTTP/1.1\r\n\r\n",
          "GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n",
          "get /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
          "GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
          "GET / spaces HTTP/1.1\r\nHost: x\r\n\r\n",
          "GET /healthz HTTP/1.1\r\nHost x\r\n\r\n",
          "GET /healthz HTTP/1.1\r\nHost: x\r\nX: \0\r\n\r\n",
          "GET /healthz HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n",
          "CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n",
          "GET http://example.com/healthz HTTP/1.1\r\nHost: x\r\n\r\n",
          `GET /${"x".repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
          `GET /healthz HTTP/1.1\r\nHost: x\r\n${"X: y\r\n".repeat(5000)}\r\n`,
          "POST /openapi/v1/products HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
          "POST /openapi/v1/products HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n{}",
          "POST /openapi/v1/products HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
          "POST /openapi/v1/products HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
          "POST /openapi/v1/products HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n{}",
          "GET /openapi/v1/products HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
          "GET /openapi/v1/products HTTP/1.1\r\nHost: x\r\nConnection: upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n",
          "POST /openapi/v1/products HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Length: 2\r\n\r\n{}",
          "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
          "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
          "\x10\x0f\x00\x04MQTT\x04\x02\x00\x3c\x00\x03abc",
          "\0".repeat(100),
          "' OR 1=1 --\r\n\r\n"
        ]
        const answers = yield* Effect.forEach(lines, exchange, { concurrency: "unbounded" })
        assertNone(answers.flatMap((answer, i) =>
          /^(?:$|HTTP\/1\.1 [1-4])/.test(answer) ? [] : [`${answer} TO ${JSON.stringify(lines[i]!.slice(0, 200))}`]
        ))
        assert.strictEqual((yield* call("GET", "//healthz", { key: null })).status, 200)
      }))

    it.effect("goes on working", () =>
      Effect.gen(function*() {
        const { keys: { admin: key }, project_id } = yield* newTenant
        const ask = (method: string, path: string, body?: object) =>
          Effect.map(call(method, path, { key, body }), ({ body, status }) => {
            assert.deepStrictEqual([status, body.code], [200, 0], `${method} ${path} ${body.message}`)
            return body.data
          })
        const { product_info: { product_key } } = yield* ask("POST", "/products", {
          name: "Lamp",
          node_type: "direct",
          network_type: "wifi",
          validate_type: "weak",
          data_format: "json",
          auth_type: "secret"
        })
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
      }).pipe(Effect.scoped))

    // After this, the address of the test is not looked at for a minute.
    it.effect("refuses wrong signatures, and they change nothing", () =>
      Effect.gen(function*() {
        const send = yield* RawRequest.make
        const tenant = yield* newTenant
        const given = yield* makeGiven(tenant, true)
        const cases = (yield* operations).filter(({ secured }) => !secured).flatMap((operation) =>
          wrongSignatureCases(operation, givenFor(operation, given), SeededRandom.make(seed))
        )
        const { device_name, product_key } = given.values as Readonly<Record<string, string>>
        const fields = { productKey: product_key!, deviceName: device_name!, random: "abcdefgh", sign: "00" }
        const forms = Object.keys({ ...fields, signMethod: "" }).flatMap((name) =>
          texts.map((text) => {
            const form = { ...fields, signMethod: "hmacsha1", [name]: text }
            const body = Object.entries(form).map(([name, value]) => `${name}=${encode(value)}`).join("&")
            const headers = { "content-type": "application/x-www-form-urlencoded" }
            return caseOf("POST", "/auth/register/device", headers, body)
          })
        )
        const before = yield* snapshot(send, tenant.keys)
        const complaints = yield* Effect.forEach(
          cases,
          (made, i) =>
            Effect.map(send({ ...made.request, from: addressOf(i) }), (answer) => complaintsOf(made, answer)),
          { concurrency }
        )
        const told = yield* Effect.forEach(
          forms,
          (made, i) =>
            Effect.map(send({ ...made.request, from: addressOf(cases.length + i) }), ({ status, text }) => {
              const { code, message } = JSON.parse(text)
              const isRefusal = status === 200 && Number.isInteger(code) && code !== 200 && typeof message === "string"
              return isRefusal ? [] : [`${status} ${text} TO ${describe(made)}`]
            }),
          { concurrency }
        )
        assertNone([...complaints.flat(), ...told.flat(), ...differences(before, yield* snapshot(send, tenant.keys))])
      }).pipe(Effect.scoped))
  })
}
