/**
 * The tables of the specification: fields of resources, endpoints, limits.
 */
import { createCipheriv, createHash, createHmac } from "node:crypto"

/** What a field holds. */
export type Kind =
  | "string"
  | "int"
  | "bool"
  /** Unix time. */
  | "seconds"
  /** RFC 3339 with offset; unset: empty or null. */
  | "date"
  | "object"
  | "list"
  /** Present; its type is not shown. */
  | "any"
  | { readonly oneOf: ReadonlyArray<string | number> }
  | { readonly members: Fields }
  | { readonly each: Fields }

export interface Fields {
  readonly [name: string]: Kind
}

const oneOf = (...values: ReadonlyArray<string | number>): Kind => ({ oneOf: values })
export const members = (fields: Fields): Kind => ({ members: fields })
export const listOf = (fields: Fields): Kind => ({ each: fields })

// Resources and their fields

const product: Fields = {
  product_key: "string",
  product_secret: "string",
  name: "string",
  device_type: "string",
  network_type: oneOf("wifi", "ethernet", "cellular", "lorawan", "others", "wifi+ble-mesh", ""),
  node_type: oneOf("direct", "gateway", "gateway-sub"),
  protocol_type: oneOf("zigbee", "ble", "ble-mesh", ""),
  validate_type: oneOf("none", "weak"),
  data_format: oneOf("json", "raw"),
  register_at: "date",
  created_at: "date",
  updated_at: "date",
  dynamic_register: "bool",
  status: oneOf("developing", "released"),
  auth_type: oneOf("secret"),
  platform: oneOf(0, 1, 2, 3, 4),
  platform_name: "string",
  data_source: oneOf(0, 1, 2, 3),
  id: "any",
  project_id: "any",
  description: "any",
  photo_url: "any",
  configuration: "any"
}

const deviceStatus = oneOf("online", "offline", "unactive")
const enabledStatus = oneOf("enable", "disable")

const device: Fields = {
  device_id: "string",
  device_name: "string",
  product_key: "string",
  device_secret: "string",
  product_secret: "string",
  product_name: "string",
  nickname: "string",
  node_type: product["node_type"]!,
  protocol_type: product["protocol_type"]!,
  validate_type: product["validate_type"]!,
  data_format: product["data_format"]!,
  auth_type: product["auth_type"]!,
  status: deviceStatus,
  enabled_status: enabledStatus,
  register_at: "date",
  updated_at: "date",
  created_at: "date",
  batch_id: "int",
  ip: "string",
  firmware_version: "string",
  time_zone: "string",
  platform: product["platform"]!,
  data_source: product["data_source"]!,
  platform_name: "string",
  access_key: "any",
  device_type: "any",
  cloud_gtw_mqtt_param: "any",
  cloud_gtw_device_uuid: "any",
  topics: "any",
  product_id: "any",
  sub_amount: "any",
  is_mocker: "any"
}

const listedDevice: Fields = { ...device, iot_platform: "int", diagnosis_enabled: "bool" }

/** The answer to the creation of a device. */
const deviceRecord: Fields = {
  device_id: "string",
  product_key: "string",
  device_name: "string",
  device_secret: "string",
  nickname: "string",
  status: deviceStatus,
  created_at: "date",
  register_at: "date",
  updated_at: "date",
  batch_id: "int",
  enabled_status: enabledStatus,
  ip: "string",
  firmware_version: "string"
}

const dataType = members({ type: "string" })
export const parameter: Fields = { id: "string", name: "string", dataType }
const element: Fields = {
  id: "string",
  name: "string",
  required: "bool",
  standard: "bool",
  desc: "string",
  method: "string",
  outputData: listOf(parameter)
}

/** The metadata form. */
const thingModel = members({
  properties: listOf({
    id: "string",
    name: "string",
    required: "bool",
    standard: "bool",
    funcType: oneOf("property"),
    accessMode: oneOf("r", "w", "rw"),
    dataType
  }),
  events: listOf({ ...element, funcType: oneOf("event"), eventType: "string" }),
  services: listOf({
    ...element,
    funcType: oneOf("service"),
    callType: "string",
    // Of the services that are not generated: `parameter`.
    inputData: listOf({ id: "string" })
  })
})

const thingShadow = members({
  state: members({ desired: "object", reported: "object" }),
  metadata: members({
    desired: members({ power: members({ timestamp: "seconds" }) }),
    reported: members({ temperature: members({ timestamp: "seconds" }) })
  }),
  id: "int",
  timestamp: "seconds",
  status: deviceStatus
})

const firmware: Fields = {
  id: "int",
  name: "string",
  version: "string",
  oss_path: "string",
  algorithms: oneOf(1),
  hash: "string",
  status: oneOf(0, 1, 2, 3, 4),
  ongoing: "bool",
  remark: "string",
  module: "string",
  created_at: "date",
  updated_at: "date",
  product_key: "string",
  product_name: "string"
}

/** In a list. */
const upgradeTask: Fields = {
  task_id: "int",
  firmware_id: "int",
  upgrade_type: oneOf(1),
  upgrade_policy: "int",
  status: oneOf(0, 1, 2, 3, 4),
  scope_mode: oneOf(0, 1),
  created_at: "date",
  updated_at: "date",
  need_app_confirm: "bool",
  is_app_confirmed: "bool"
}

const deviceTask: Fields = {
  device_id: "string",
  device_name: "string",
  version: "string",
  step: "int",
  status: oneOf(1, 2, 3, 4, 5),
  updated_at: "date",
  thing_status: deviceStatus,
  need_app_confirm: "bool",
  is_app_confirm: "bool"
}

const upgradeInfo: Fields = {
  size: "int",
  sign: "string",
  sign_method: oneOf("md5"),
  version: "string",
  url: "string",
  module: "string",
  task_id: "int",
  description: "string",
  need_app_confirm: "bool",
  is_app_confirmed: "bool"
}

const meshNetwork: Fields = {
  network_key: "string",
  app_key: "string",
  unicast_cursor: "int",
  provisioner_cursor: "int",
  created_at: "date",
  updated_at: "date"
}

const paged = (item: Fields): Fields => ({
  results: listOf(item),
  total: "int",
  page: "int",
  page_size: "int",
  pages: "int"
})

const page: Fields = { page: "int", page_size: "int" }

const triple: Fields = { product_key: "string", device_name: "string", device_secret: "string" }

// Endpoints

/** What the paths, bodies and queries below name. */
export interface Given {
  readonly product_key: string
  readonly product_secret: string
  /** Of a product without devices. */
  readonly empty_product_key: string
  /** Of a product whose devices reach the cloud through another one. */
  readonly cloud_gateway_product_key: string
  readonly source_product_key: string
  readonly device_id: string
  readonly device_name: string
  readonly device_secret: string
  readonly batch_id: number
  readonly service_id: string
  readonly gateway_id: string
  readonly gateway_product_key: string
  readonly gateway_name: string
  readonly gateway_secret: string
  /** An add-session of the gateway. */
  readonly session_id: string
  readonly sub_product_key: string
  /** That belongs to the gateway, and one that does not. */
  readonly sub_name: string
  readonly free_sub_name: string
  readonly free_sub_secret: string
  /** Of a call that waits for the device. */
  readonly message_id: string
  /** That the device is to be upgraded to, by a task. */
  readonly firmware_id: number
  readonly task_id: number
  /** That nothing happens to. */
  readonly idle_firmware_id: number
  /** A task that awaits its confirmation. */
  readonly confirmable_task_id: number
  readonly verified_firmware_id: number
  readonly verify_task_id: number
  /** Of a network that the gateway is a node of. */
  readonly network_key: string
  /** Of a network without nodes. */
  readonly empty_network_key: string
  readonly scene_id: string
}

export interface Input {
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly body?: Readonly<Record<string, unknown>>
  /** A form with this in its field `file`. */
  readonly file?: string
}

export interface Operation {
  readonly method: string
  readonly path: string
  readonly query?: Fields
  readonly body?: Fields
  /** Paths in query and body. */
  readonly required?: ReadonlyArray<string>
  /** Calls that succeed. The path names something else for them where `on` says so. */
  readonly calls?: (given: Given) => ReadonlyArray<Input>
  readonly on?: Readonly<Record<string, keyof Given>>
  /** What is connected while it is called. */
  readonly connected?: "device_id" | "gateway_id"
  /** Adds the signature of a device, which has no access key. */
  readonly sign?: (given: Given, input: Input) => Input
  /** Absent: envelope only. */
  readonly data?: Fields | "list"
  /** More that is refused: a change of the first call, and the field that is named. */
  readonly refuses?: ReadonlyArray<readonly [Readonly<Record<string, unknown>>, string]>
}

const hmac = (signMethod: unknown, secret: string, text: string) =>
  createHmac(String(signMethod).replace("hmac", ""), secret).update(text).digest("hex")

const isHmac = (signMethod: unknown) => /^hmac(?:md5|sha1|sha256)$/.test(String(signMethod))

/** Signs a registration. The text begins with the field that names the device. */
const signRegistration = (label: string, field: string) => ({ product_secret }: Given, { body = {} }: Input): Input => {
  const text = `${label}${body[field]}productKey${body["product_key"]}random${body["random"]}`
  return { body: { sign: isHmac(body["sign_method"]) ? hmac(body["sign_method"], product_secret, text) : "", ...body } }
}

const signUplink = (given: Given, { query = {}, ...input }: Input): Input => {
  const { device_name, product_key, random, sign_method } = query
  const secret = device_name === given.gateway_name ? given.gateway_secret : given.device_secret
  const text = `productKey${product_key}deviceName${device_name}random${random}`
  return { ...input, query: { sign: isHmac(sign_method) ? hmac(sign_method, secret, text) : "", ...query } }
}

const bleRandom = "000102030405060708090a0b0c0d0e0f"

/** What a device makes of a random over Bluetooth. */
const bleCipher = (random: unknown, { device_name, device_secret, product_key }: Given): string => {
  const bytes = Buffer.from(String(random), "hex")
  const names = Buffer.from(`,${product_key},${device_name},${device_secret}`)
  const key = createHash("sha256").update(Buffer.concat([bytes, names])).digest().subarray(0, 16)
  return createCipheriv("aes-128-cbc", key, "123aqwed#*$!(4ju").update(bytes).toString("hex")
}

const devices: ReadonlyArray<Operation> = [
  {
    method: "POST",
    path: "/things/{device_id}/properties",
    body: { params: "object" },
    required: ["params"],
    calls: () => [{ body: { params: { power: 1 } } }],
    data: { message_id: "string" }
  },
  {
    method: "POST",
    path: "/things/{device_id}/services/{service_id}",
    body: { params: "object" },
    required: ["params"],
    calls: () => [{ body: { params: { delay: 5 } } }],
    data: { message_id: "string" }
  },
  { method: "GET", path: "/things/{device_id}/detail", data: { device_info: members(device) } },
  {
    method: "GET",
    path: "/products/{product_key}/device-names/{device_name}/detail",
    data: { device_info: members(device) }
  },
  { method: "GET", path: "/things/{device_id}/status", data: { status: deviceStatus } },
  {
    method: "PUT",
    path: "/things/{device_id}/status",
    body: { action: oneOf("enable", "disble", "unbind", "bind") },
    required: ["action"],
    calls: () => ["disble", "enable", "bind", "unbind"].map((action) => ({ body: { action } }))
  },
  {
    method: "POST",
    path: "/auth/ble/products/{product_key}/identity",
    body: { device_name: "string", random: "string", cipher: "string" },
    required: ["device_name", "random", "cipher"],
    calls: (given) => {
      const { device_name, product_key } = given
      const body = { device_name, random: bleRandom, cipher: bleCipher(bleRandom, given) }
      return [{ body }, { body: { ...body, product_key } }]
    },
    data: { ble_key: "string" }
  },
  {
    method: "GET",
    path: "/products/{product_key}/device-names/{device_name}/bind",
    data: { random: "string" }
  },
  { method: "GET", path: "/things/{device_id}/properties", data: { properties: members({ temperature: "any" }) } },
  {
    method: "POST",
    path: "/products/{product_key}/things",
    body: {
      nickname: "string",
      clientid: "string",
      username: "string",
      password: "string",
      cloud_gtw_device_uuid: "string"
    },
    calls: () => [{ body: { nickname: "Kitchen" } }, { body: {} }, {}],
    data: deviceRecord
  },
  {
    method: "POST",
    path: "/products/{product_key}/things",
    on: { product_key: "cloud_gateway_product_key" },
    calls: () => [
      {
        body: { nickname: "Far", clientid: "c1", username: "u1", password: "p1", cloud_gtw_device_uuid: "uuid" }
      },
      { body: { clientid: "c2", username: "u2", password: "", cloud_gtw_device_uuid: "" } },
      { body: { clientid: "c3", username: "u3" } }
    ],
    data: deviceRecord,
    refuses: [
      [{ clientid: undefined }, "clientid"],
      [{ clientid: "" }, "clientid"],
      [{ username: undefined }, "username"],
      [{ username: "" }, "username"]
    ]
  },
  { method: "DELETE", path: "/things/{device_id}" },
  {
    method: "POST",
    path: "/products/{product_key}/batch-things",
    body: { num: "int", desc: "string" },
    required: ["num"],
    calls: () => [{ body: { num: 3, desc: "First run" } }],
    data: { batch_id: "int" }
  },
  { method: "DELETE", path: "/products/{product_key}/batch-things/{batch_id}", data: { batch_id: "int" } },
  {
    method: "GET",
    path: "/things",
    query: {
      ...page,
      product_key: "string",
      batch_id: "int",
      enabled_status: enabledStatus,
      status: oneOf("online", "offline")
    },
    calls: ({ batch_id, product_key }) => [
      {},
      { query: { page: "1", page_size: "5" } },
      { query: { product_key } },
      { query: { product_key, batch_id: String(batch_id) } },
      { query: { product_key, enabled_status: "enable", status: "online" } },
      {
        query: {
          page: "1",
          page_size: "10",
          product_key,
          batch_id: "0",
          enabled_status: "disable",
          status: "offline"
        }
      }
    ],
    data: paged(listedDevice)
  }
]

const createProductBody: Fields = {
  name: "string",
  network_type: oneOf("wifi", "ethernet", "cellular", "lorawan", "wifi+ble-mesh"),
  node_type: oneOf("direct", "gateway", "gateway-sub"),
  protocol_type: oneOf("zigbee", "ble", "ble-mesh"),
  validate_type: oneOf("none", "weak"),
  data_format: oneOf("json", "raw"),
  dynamic_register: "bool",
  auth_type: oneOf("secret"),
  photo_url: "string",
  description: "string"
}

const oneProduct = {
  name: "Lamp",
  validate_type: "none",
  data_format: "raw",
  dynamic_register: true,
  auth_type: "secret",
  photo_url: "https://example.com/lamp.png",
  description: "It shines"
}

const signSubDevice = (signMethod: string, productKey: string, deviceName: string, secret = "") =>
  hmac(signMethod, secret, `deviceName${deviceName}productKey${productKey}`)

const subDeviceName: Fields = { device_name: "string", product_key: "string" }
const subDevice: Fields = { ...subDeviceName, device_id: "string" }
const onGateway = { device_id: "gateway_id" } as const
const topologyAction: Fields = {
  action: oneOf("sub.add.start", "sub.add.stop"),
  session_id: "string",
  params: members({ timeout: "int", product_keys: "list" })
}

const topology: ReadonlyArray<Operation> = [
  {
    method: "PUT",
    path: "/things/{device_id}/topo",
    body: topologyAction,
    required: ["action"],
    on: onGateway,
    calls: ({ sub_product_key }) => [
      {
        body: { action: "sub.add.start", session_id: "any", params: { timeout: 60, product_keys: [sub_product_key] } }
      },
      { body: { action: "sub.add.start" } }
    ],
    data: { session_id: "string" }
  },
  {
    method: "PUT",
    path: "/things/{device_id}/topo",
    body: topologyAction,
    required: ["action", "session_id"],
    on: onGateway,
    calls: ({ session_id }) => [{ body: { action: "sub.add.stop", session_id, params: {} } }]
  },
  {
    method: "DELETE",
    path: "/things/{device_id}/topo/sub-devices",
    body: { params: listOf(subDeviceName) },
    required: ["params"],
    on: onGateway,
    calls: ({ sub_name, sub_product_key }) => [
      { body: { params: [{ device_name: sub_name, product_key: sub_product_key }] } }
    ]
  },
  {
    method: "GET",
    path: "/things/{device_id}/topo/sub-devices",
    query: { session_id: "string" },
    required: ["session_id"],
    on: onGateway,
    calls: ({ session_id }) => [{ query: { session_id } }],
    data: { sub_devices: listOf(subDevice) }
  },
  {
    method: "POST",
    path: "/things/{device_id}/topo/sub-devices",
    query: { session_id: "string" },
    body: {
      params: listOf({ ...subDeviceName, sign_method: oneOf("hmacmd5", "hmacsha1"), sign: "string" })
    },
    required: ["session_id", "params"],
    on: onGateway,
    calls: ({ free_sub_name, free_sub_secret, session_id, sub_product_key }) =>
      ["hmacmd5", "hmacsha1"].map((sign_method) => ({
        query: { session_id },
        body: {
          params: [{
            device_name: free_sub_name,
            product_key: sub_product_key,
            sign_method,
            sign: signSubDevice(sign_method, sub_product_key, free_sub_name, free_sub_secret)
          }]
        }
      })),
    data: "list"
  }
]

const products: ReadonlyArray<Operation> = [
  { method: "GET", path: "/products/{product_key}", data: { product_info: members(product) } },
  {
    method: "GET",
    path: "/products",
    query: page,
    calls: () => [{}, { query: { page: "1", page_size: "2" } }],
    data: paged(product)
  },
  {
    method: "POST",
    path: "/products",
    body: createProductBody,
    required: ["name", "node_type", "validate_type", "data_format", "auth_type"],
    calls: () => [
      { body: { ...oneProduct, node_type: "direct", network_type: "wifi" } },
      { body: { ...oneProduct, node_type: "direct", network_type: "ethernet", validate_type: "weak" } },
      { body: { ...oneProduct, node_type: "direct", network_type: "cellular", data_format: "json" } },
      { body: { ...oneProduct, node_type: "direct", network_type: "lorawan" } },
      { body: { ...oneProduct, node_type: "direct", network_type: "wifi+ble-mesh" } },
      { body: { ...oneProduct, node_type: "gateway", network_type: "ethernet" } },
      { body: { ...oneProduct, node_type: "gateway" } },
      { body: { ...oneProduct, node_type: "gateway-sub", protocol_type: "zigbee" } },
      { body: { ...oneProduct, node_type: "gateway-sub", protocol_type: "ble" } },
      { body: { ...oneProduct, node_type: "gateway-sub", protocol_type: "ble-mesh" } },
      {
        body: {
          ...oneProduct,
          node_type: "direct",
          network_type: "wifi",
          product_key: "a1b2c3d4e5f",
          product_secret: "0123456789abcdef",
          device_type: "Light"
        }
      },
      {
        body: {
          name: "Smallest",
          node_type: "direct",
          network_type: "wifi",
          validate_type: "none",
          data_format: "json",
          auth_type: "secret"
        }
      }
    ],
    data: { product_info: members(product) },
    refuses: [
      [{ network_type: undefined }, "network_type"],
      [{ node_type: "gateway-sub", network_type: undefined }, "protocol_type"]
    ]
  },
  { method: "DELETE", path: "/products/{product_key}", on: { product_key: "empty_product_key" } },
  {
    method: "PUT",
    path: "/products/{product_key}",
    body: { name: "string", dynamic_register: "bool", photo_url: "string", description: "string" },
    required: ["name", "dynamic_register", "photo_url"],
    calls: () => [
      { body: { name: "New", dynamic_register: true, photo_url: "https://example.com/new.png", description: "Text" } },
      { body: { name: "New", dynamic_register: false, photo_url: "" } }
    ]
  },
  {
    method: "PUT",
    path: "/products/{product_key}/status",
    body: { status: oneOf("developing", "released") },
    required: ["status"],
    calls: () => ["released", "developing"].map((status) => ({ body: { status } }))
  }
]

const onOff = { 0: "off", 1: "on" }

/** A property, an event and a service in the metadata form. */
export const model = {
  properties: [
    { id: "power", name: "Power", accessMode: "rw", required: true, dataType: { type: "bool", specs: onOff } },
    { id: "temperature", name: "Temperature", accessMode: "r", dataType: { type: "float", min: -40, max: 120 } },
    { id: "label", name: "Label", accessMode: "rw", dataType: { type: "text", length: 64 } },
    { id: "timers", name: "Timers", accessMode: "rw", dataType: { type: "array", size: 10, elementType: "int" } }
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

const changedModel: Fields = { thing_model: thingModel }

const thingModels: ReadonlyArray<Operation> = [
  {
    method: "GET",
    path: "/products/{product_key}/thing-model",
    query: { model_type: oneOf("metadata", "tsl", "sdf") },
    required: ["model_type"],
    calls: () => [{ query: { model_type: "metadata" } }],
    data: { thing_model: thingModel }
  },
  {
    method: "GET",
    path: "/products/{product_key}/thing-model",
    calls: () => ["tsl", "sdf"].map((model_type) => ({ query: { model_type } })),
    data: { thing_model: "object" }
  },
  {
    method: "POST",
    path: "/products/{product_key}/thing-model",
    body: { model_type: oneOf("metadata", "tsl", "sdf"), model_data: "string" },
    required: ["model_type", "model_data"],
    calls: () => [{ body: { model_type: "metadata", model_data: JSON.stringify(model) } }],
    data: changedModel
  },
  {
    method: "PUT",
    path: "/products/{product_key}/thing-model",
    query: { source_product_key: "string" },
    required: ["source_product_key"],
    calls: ({ source_product_key }) => [{ query: { source_product_key } }],
    data: changedModel
  },
  { method: "DELETE", path: "/products/{product_key}/thing-model", data: changedModel },
  {
    method: "POST",
    path: "/products/{product_key}/thing-model-element",
    body: { type: oneOf("property", "event", "service"), element: "object" },
    required: ["type", "element"],
    calls: () => [
      { body: { type: "property", element: { ...model.properties[0]!, id: "added" } } },
      { body: { type: "event", element: { ...model.events[0]!, id: "happened" } } },
      { body: { type: "service", element: { ...model.services[0]!, id: "serve" } } }
    ],
    data: changedModel
  },
  {
    method: "PUT",
    path: "/products/{product_key}/thing-model-element",
    body: { type: oneOf("property", "event", "service"), element: "object" },
    required: ["type", "element"],
    calls: () => [
      { body: { type: "property", element: { ...model.properties[0]!, name: "Switch" } } },
      { body: { type: "event", element: { ...model.events[0]!, name: "Hot" } } },
      { body: { type: "service", element: { ...model.services[0]!, name: "Restart" } } }
    ],
    data: changedModel
  },
  {
    method: "DELETE",
    path: "/products/{product_key}/thing-model-element",
    calls: () => [
      { body: { type: "property", id: "power" } },
      { body: { type: "event", id: "overheated" } },
      { query: { type: "service", id: "reset" } }
    ],
    data: changedModel
  }
]

const shadows: ReadonlyArray<Operation> = [
  { method: "GET", path: "/things/{device_id}/shadow", data: { thing_shadow: thingShadow } },
  {
    method: "PUT",
    path: "/things/{device_id}/shadow",
    body: { state: members({ desired: "object" }) },
    required: ["state", "state.desired"],
    calls: () => [{ body: { state: { desired: { power: 0 } } } }]
  }
]

const module: Fields = { module: "string" }

const conduct: Fields = { cloud_push: "bool", timeout: "int", upgrade_type: oneOf(1), need_app_confirm: "bool" }

const rejected: Fields = { rejected_thing_status: deviceStatus }

/** What is the same of all firmware here. */
export const image = {
  name: "Lamp firmware",
  oss_path: "https://example.com/firmware.bin",
  algorithms: 1,
  hash: "93230c3bde425a9d7984a594ac55ea1e",
  remark: "Shines brighter"
}

const upgrades: ReadonlyArray<Operation> = [
  {
    method: "GET",
    path: "/things/{device_id}/upgrade",
    query: module,
    calls: () => [{}, { query: { module: "default" } }],
    data: upgradeInfo
  },
  {
    method: "POST",
    path: "/things/{device_id}/upgrade",
    body: { task_id: "int" },
    required: ["task_id"],
    connected: "device_id",
    calls: ({ task_id }) => [{ body: { task_id } }]
  },
  {
    method: "GET",
    path: "/things/{device_id}/upgrade-step",
    query: { task_id: "int" },
    calls: ({ task_id }) => [{}, { query: { task_id: String(task_id) } }],
    data: { step: "int" }
  },
  {
    method: "GET",
    path: "/things/{device_id}/version",
    query: module,
    calls: () => [{}, { query: { module: "default" } }],
    data: { version: "string" }
  },
  {
    method: "GET",
    path: "/things/upgrade",
    query: module,
    required: ["device_ids"],
    calls: ({ device_id }) => [
      { body: { device_ids: [device_id] } },
      { query: { module: "default" }, body: { device_ids: [device_id, "unknown"] } }
    ],
    data: { things_upgrade_job: "object" }
  },
  { method: "GET", path: "/ota/firmwares/{firmware_id}", data: firmware },
  {
    method: "GET",
    path: "/ota/firmwares",
    query: { ...page, product_key: "string", name: "string" },
    calls: ({ product_key }) => [
      {},
      { query: { page: "1", page_size: "2", product_key, name: "Lamp" } }
    ],
    data: paged(firmware)
  },
  {
    method: "POST",
    path: "/products/{product_key}/ota/firmwares",
    body: {
      name: "string",
      version: "string",
      oss_path: "string",
      algorithms: oneOf(1),
      hash: "string",
      remark: "string",
      module: "string"
    },
    calls: () => [{ body: { ...image, version: "9.0.0", module: "default" } }],
    data: firmware
  },
  { method: "DELETE", path: "/ota/firmwares/{firmware_id}", on: { firmware_id: "idle_firmware_id" }, data: {} },
  {
    method: "POST",
    path: "/ota/firmwares/{firmware_id}/verify-task",
    on: { firmware_id: "idle_firmware_id" },
    body: { device_ids: "list", ...conduct },
    calls: ({ device_id }) => [{
      body: { device_ids: [device_id], upgrade_type: 1, cloud_push: true, timeout: 600, need_app_confirm: false }
    }],
    data: "list"
  },
  {
    method: "POST",
    path: "/ota/firmwares/{firmware_id}/upgrade-tasks",
    on: { firmware_id: "idle_firmware_id" },
    body: { ...conduct, scope_mode: oneOf(0, 1), device_ids: "list" },
    calls: ({ device_id }) => [
      {
        body: {
          cloud_push: true,
          timeout: 600,
          upgrade_type: 1,
          scope_mode: 1,
          device_ids: [device_id],
          need_app_confirm: true
        }
      },
      { body: { cloud_push: false, timeout: 0, upgrade_type: 1, scope_mode: 0, need_app_confirm: false } }
    ],
    data: { task_id: "int" }
  },
  {
    method: "GET",
    path: "/ota/firmwares/{firmware_id}/verify-task",
    on: { firmware_id: "verified_firmware_id" },
    query: rejected,
    calls:
      () => [{}, ...["online", "offline", "unactive"].map((status) => ({ query: { rejected_thing_status: status } }))],
    data: { ...paged(deviceTask), task_id: "int" }
  },
  {
    method: "GET",
    path: "/ota/upgrade-tasks/{task_id}",
    query: rejected,
    calls:
      () => [{}, ...["online", "offline", "unactive"].map((status) => ({ query: { rejected_thing_status: status } }))],
    data: paged(deviceTask)
  },
  {
    method: "GET",
    path: "/ota/firmwares/{firmware_id}/upgrade-tasks",
    query: { ...page, status: "int", task_id: "int", product_key: "string", name: "string" },
    calls: ({ product_key, task_id }) => [
      {},
      { query: { status: "0", task_id: String(task_id), page: "1", page_size: "5", product_key, name: "Lamp" } }
    ],
    data: paged(upgradeTask)
  },
  { method: "DELETE", path: "/ota/tasks/{task_id}", data: {} },
  {
    method: "PUT",
    path: "/ota/verify-tasks/{task_id}",
    on: { task_id: "verify_task_id" },
    body: { result: "bool" },
    required: ["result"],
    calls: () => [{ body: { result: true } }],
    data: {}
  },
  { method: "PUT", path: "/ota/upgrade-tasks/{task_id}/status", data: {} },
  { method: "PUT", path: "/ota/upgrade-tasks/{task_id}/things/{device_id}/status", data: {} },
  {
    method: "PUT",
    path: "/ota/upgrade-tasks/{task_id}/confirmation",
    on: { task_id: "confirmable_task_id" },
    data: {}
  },
  {
    method: "PUT",
    path: "/ota/upgrade-tasks/{task_id}/things/{device_id}/confirmation",
    on: { task_id: "confirmable_task_id" },
    data: {}
  }
]

export const content = "firmware"

export const objects: ReadonlyArray<Operation> = [
  { method: "POST", path: "/oss", calls: () => [{ file: content }], data: { url: "string", md5: "string" } },
  {
    method: "POST",
    path: "/oss/ota/{product_key}",
    calls: () => [{ file: content }],
    data: { filename: "string", size: "int", md5: "string" }
  }
]

/** A node, signed by its device. */
export const meshNode = (
  sign_method: "hmacsha1" | "hmacmd5",
  [product_key, device_name, secret]: readonly [string, string, string],
  fields: Readonly<Record<string, unknown>>
): Input => {
  const sign = hmac(sign_method, String(secret), `deviceName${device_name}productKey${product_key}`)
  return { body: { product_key, device_name, sign_method, sign, ...fields } }
}

const mesh: ReadonlyArray<Operation> = [
  {
    method: "POST",
    path: "/mesh/networks",
    body: { network_key: "string", app_key: "string" },
    calls: () => [{ body: {} }, { body: { network_key: "", app_key: "" } }, { body: { app_key: "0".repeat(32) } }],
    data: { network_key: "string", app_key: "string" }
  },
  { method: "GET", path: "/mesh/networks/{network_key}", data: meshNetwork },
  { method: "DELETE", path: "/mesh/networks/{network_key}" },
  {
    method: "POST",
    path: "/mesh/networks/{network_key}/nodes",
    body: {
      product_key: "string",
      device_name: "string",
      sign: "string",
      sign_method: oneOf("hmacsha1", "hmacmd5", "aescmac"),
      mesh_addr: "int",
      node_type: oneOf(1, 2)
    },
    required: ["product_key", "device_name", "sign", "sign_method", "node_type"],
    calls: ({ device_name, device_secret, product_key }) => [
      meshNode("hmacsha1", [product_key, device_name, device_secret], { node_type: 1, mesh_addr: 0x0100 })
    ],
    refuses: [
      [{ mesh_addr: 0 }, "mesh_addr"],
      [{ mesh_addr: 0x00ff }, "mesh_addr"],
      [{ mesh_addr: 0x8000 }, "mesh_addr"],
      [{ mesh_addr: 0x0100, node_type: 2 }, "mesh_addr"]
    ]
  },
  {
    method: "POST",
    path: "/mesh/networks/{network_key}/nodes",
    on: { network_key: "empty_network_key" },
    calls: ({ gateway_name, gateway_product_key, gateway_secret }) => [
      meshNode("hmacmd5", [gateway_product_key, gateway_name, gateway_secret], { node_type: 2 })
    ]
  },
  {
    method: "DELETE",
    path: "/mesh/networks/{network_key}/nodes/{device_id}",
    on: { device_id: "gateway_id" }
  },
  {
    method: "POST",
    path: "/mesh/networks/{network_key}/raw-data",
    body: { raw_data: "string" },
    required: ["raw_data"],
    calls: () => [{ body: { raw_data: "d101FF" } }, { body: { raw_data: "00".repeat(512) } }],
    connected: "gateway_id",
    refuses: ["", "0", "000", "00".repeat(513), "zz"].map((raw_data) => [{ raw_data }, "raw_data"] as const)
  }
]

const registration: ReadonlyArray<Operation> = [
  {
    method: "POST",
    path: "/auth/register/device",
    body: {
      product_key: "string",
      random: "string",
      mac: "string",
      sign_method: oneOf("hmacsha1", "hmacmd5"),
      sign: "string"
    },
    required: ["product_key", "random", "mac", "sign_method", "sign"],
    calls: ({ product_key }) =>
      ["hmacsha1", "hmacmd5"].map((sign_method) => ({
        body: { product_key, random: "abcdefgh", mac: "AA:BB:CC:DD:EE:FF", sign_method }
      })),
    sign: signRegistration("mac", "mac"),
    data: triple
  },
  {
    method: "POST",
    path: "/auth/generator/device",
    body: {
      product_key: "string",
      random: "string",
      device_name: "string",
      sign_method: oneOf("hmacsha1", "hmacmd5"),
      sign: "string"
    },
    required: ["product_key", "random", "device_name", "sign_method", "sign"],
    calls: ({ product_key }) =>
      ["hmacsha1", "hmacmd5"].map((sign_method) => ({
        body: { product_key, random: "abcdefgh", device_name: "Device01", sign_method }
      })),
    sign: signRegistration("deviceName", "device_name"),
    data: triple
  }
]

export const uplinkQuery: Fields = {
  device_name: "string",
  product_key: "string",
  sign_method: oneOf("hmacsha256", "hmacsha1"),
  random: "string",
  sign: "string",
  action: oneOf(
    "PostProperty",
    "PostEvent",
    "PostServiceReply",
    "PostHex",
    "PostSubHex",
    "PostModbus",
    "PostModbusSub",
    "PostStarTopo",
    "PostMeshTopo",
    "PostShadow",
    "PostOTA",
    "PostNTP",
    "PostSysMsg",
    "PostRemoteDiagnosis"
  )
}

interface UplinkOptions {
  readonly data?: Fields | "list"
  readonly extra?: Readonly<Record<string, string>>
  /** The gateway says it. */
  readonly byGateway?: true
}

/** One action of the uplink. */
const uplink = (
  action: string,
  body: (given: Given) => Readonly<Record<string, unknown>>,
  { byGateway, data = {}, extra = {} }: UplinkOptions = {}
): Operation => ({
  method: "POST",
  path: "/thing-uplink",
  query: { ...uplinkQuery, ...Object.fromEntries(Object.keys(extra).map((name): [string, Kind] => [name, "any"])) },
  required: [...Object.keys(uplinkQuery), ...Object.keys(extra).filter((name) => name !== "ts")],
  calls: (given) =>
    ["hmacsha256", "hmacsha1"].map((sign_method) => ({
      query: {
        device_name: byGateway ? given.gateway_name : given.device_name,
        product_key: byGateway ? given.gateway_product_key : given.product_key,
        sign_method,
        random: "abcdefgh",
        action,
        ...extra
      },
      body: body(given)
    })),
  sign: signUplink,
  data
})

/** The device has joined. */
export const bindReport = uplink("PostSysMsg", () => ({
  method: "thing.bind.post",
  params: { random: "0123456789abcdef" }
}))

export const uplinks: ReadonlyArray<Operation> = [
  uplink("PostProperty", () => ({ id: "1", version: "1.0", params: { temperature: 21.5 } })),
  uplink("PostEvent", () => ({ id: "2", params: { value: { temperature: 99 }, time: 1_795_231_554_300 } }), {
    extra: { event_id: "overheated" }
  }),
  uplink("PostServiceReply", ({ message_id }) => ({ id: message_id, code: 200, data: {} }), {
    extra: { service_id: "reset", ts: "1795231554" }
  }),
  uplink("PostHex", () => ({ params: { data: "0aff" } })),
  uplink("PostModbus", () => ({ id: 1, version: "1.0", method: "edge.get", params: { register: 4 } })),
  uplink("PostShadow", () => ({ method: "get" }), { data: { state: "object", metadata: "object" } }),
  uplink("PostOTA", () => ({ id: "3", method: "thing.ota.inform", params: { version: "1.0.0" } })),
  uplink("PostOTA", () => ({ id: "4", method: "thing.ota.progress", params: { step: "50", desc: "half" } })),
  uplink("PostNTP", () => ({ deviceSendTime: "1795231840050" }), {
    data: { deviceSendTime: "string", serverRecvTime: "string", serverSendTime: "string" }
  }),
  uplink("PostSysMsg", () => ({
    method: "thing.deviceinfo.update",
    params: [{ attrKey: "room", attrValue: "kitchen" }]
  })),
  bindReport,
  uplink("PostMeshTopo", ({ network_key }) => ({ params: { network_key } }), {
    byGateway: true,
    data: "list",
    extra: { method: "get" }
  }),
  uplink("PostRemoteDiagnosis", () => ({ params: { model: "format=simple", p: { wifi: { rssi: -75 } } } })),
  uplink("PostStarTopo", () => ({ params: {} }), { byGateway: true, data: "list", extra: { method: "get" } }),
  uplink("StarTopo", ({ free_sub_name, free_sub_secret, sub_product_key }) => ({
    params: [{
      productKey: sub_product_key,
      deviceName: free_sub_name,
      signMethod: "hmacsha1",
      sign: signSubDevice("hmacsha1", sub_product_key, free_sub_name, free_sub_secret)
    }]
  }), { byGateway: true, data: "list", extra: { method: "add" } }),
  uplink(
    "PostSubHex",
    ({ sub_name, sub_product_key }) => ({
      params: { data: "00", product_key: sub_product_key, device_name: sub_name }
    }),
    { byGateway: true }
  ),
  uplink(
    "PostModbusSub",
    ({ sub_name, sub_product_key }) => ({ params: { product_key: sub_product_key, device_name: sub_name } }),
    { byGateway: true }
  )
]

const part: Fields = { URI: "string", params: "object" }

const scene: Fields = {
  id: "string",
  name: "string",
  status: enabledStatus,
  triggers: listOf(part),
  conditions: listOf(part),
  actions: listOf(part),
  created_at: "seconds",
  updated_at: "seconds"
}

/** One of each trigger, condition and action, with all that they can carry. */
export const sceneBody = ({ device_id, device_name, product_key, scene_id }: Given, name: string) => {
  const of = { product_key, device_name }
  const compared = { property_id: "power", compare_type: "==", compare_val: "1" }
  return {
    name,
    desc: "Everything",
    status: "enable",
    triggers: [
      { URI: "trigger/device/property", params: { type: "trigger/device/property", ...of, ...compared } },
      { URI: "trigger/device/event", params: { product_key, device_name: "*", event_id: "*" } },
      { URI: "trigger/device/status", params: { ...of, status: "offline" } },
      { URI: "trigger/cron", params: { cron: "0 0 8 * * *" } }
    ],
    conditions: [
      { URI: "condition/device/property", params: { ...of, ...compared, compare_type: "in", compare_val: "0,1" } },
      { URI: "condition/device/status", params: { ...of, status: "*", status_duration: 5 } },
      { URI: "condition/time/range", params: { time_range: { start_timestamp: 0, end_timestamp: 4_000_000_000 } } }
    ],
    actions: [
      { URI: "action/device/property", params: { device_id, property_id: "power", items: { power: 1 } } },
      { URI: "action/device/service", params: { device_id, service_id: "reset", items: { delay: 1 } } },
      ...scene_id === "" ? [] : [{ URI: "action/rule", params: { scene_id } }],
      {
        URI: "action/webhook",
        params: {
          URL: "https://hook.invalid/alarm",
          method: "POST",
          desc: "Alarm",
          connect_timeout: 1,
          request_timeout: 1
        }
      }
    ]
  }
}

const sceneFields: Fields = {
  name: "string",
  desc: "string",
  status: enabledStatus,
  triggers: "list",
  conditions: "list",
  actions: "list"
}

let lastScene = 0

const newScene = (given: Given) => sceneBody(given, `Scene ${++lastScene} of ${given.device_id}`)

/** More of one part than a scene may have. */
const tooMany = (list: string, count: number, URI: string) => ({
  [list]: Array.from({ length: count }, () => ({ URI, params: {} }))
})

const scenes: ReadonlyArray<Operation> = [
  {
    method: "POST",
    path: "/rule-engine/scenes",
    body: sceneFields,
    required: ["name", "status"],
    calls: (given) => [
      { body: newScene(given) },
      { body: { name: newScene(given).name, status: "disable" } }
    ],
    data: scene,
    refuses: [
      [tooMany("triggers", 11, "trigger/cron"), "triggers"],
      [tooMany("conditions", 21, "condition/time/range"), "conditions"],
      [tooMany("actions", 51, "action/rule"), "actions"],
      [{ triggers: [{ URI: "trigger/other", params: {} }] }, "triggers[0].URI"],
      [
        { triggers: [{ URI: "trigger/device/property", params: { device_name: "*" } }] },
        "triggers[0].params.product_key"
      ]
    ]
  },
  {
    method: "PUT",
    path: "/rule-engine/scenes/{id}",
    on: { id: "scene_id" },
    body: sceneFields,
    required: ["name", "status"],
    calls: (given) => [{ body: newScene(given) }],
    data: scene
  },
  { method: "GET", path: "/rule-engine/scenes/{id}", on: { id: "scene_id" }, data: scene },
  {
    method: "GET",
    path: "/rule-engine/scenes",
    query: { ...page, name: "string", status: enabledStatus },
    calls: () => [{}, { query: { name: "Scene", status: "enable", page: "1", page_size: "5" } }],
    data: paged(scene)
  },
  {
    method: "POST",
    path: "/rule-engine/scenes/{id}/actions",
    on: { id: "scene_id" },
    data: { execution_id: "string" }
  },
  {
    method: "PUT",
    path: "/rule-engine/scenes/{id}/status",
    on: { id: "scene_id" },
    body: { status: enabledStatus },
    required: ["status"],
    calls: () => ["disable", "enable"].map((status) => ({ body: { status } })),
    data: {}
  },
  { method: "DELETE", path: "/rule-engine/scenes/{id}", on: { id: "scene_id" }, data: {} }
]

export const operations = [
  ...devices,
  ...topology,
  ...products,
  ...thingModels,
  ...shadows,
  ...upgrades,
  ...scenes,
  ...objects,
  ...mesh,
  ...registration,
  ...uplinks
]

// Limits

export interface Limit {
  readonly method: string
  readonly path: string
  readonly field: string
  readonly takes: ReadonlyArray<unknown>
  readonly refuses: ReadonlyArray<unknown>
}

/** So many bytes of text. */
const bytes = (length: number) => "r".repeat(length)

export const limits: ReadonlyArray<Limit> = [
  {
    method: "POST",
    path: "/mesh/networks",
    field: "network_key",
    takes: [""],
    refuses: ["0".repeat(31), "0".repeat(33), "g".repeat(32)]
  },
  {
    method: "POST",
    path: "/products/{product_key}/ota/firmwares",
    field: "version",
    takes: ["0.0.0", "10.20.30"],
    refuses: ["1", "1.0", "v1.0.0", "1.0.x", "1..0", ""]
  },
  { method: "POST", path: "/products/{product_key}/ota/firmwares", field: "algorithms", takes: [1], refuses: [0, 2] },
  {
    method: "POST",
    path: "/ota/firmwares/{firmware_id}/verify-task",
    field: "upgrade_type",
    takes: [1],
    refuses: [0, 2]
  },
  {
    method: "POST",
    path: "/ota/firmwares/{firmware_id}/upgrade-tasks",
    field: "scope_mode",
    takes: [1],
    refuses: [-1, 2]
  },
  {
    method: "POST",
    path: "/products/{product_key}/batch-things",
    field: "num",
    takes: [1, 10_000],
    refuses: [0, -1, 10_001]
  },
  {
    method: "PUT",
    path: "/things/{device_id}/topo",
    field: "params.timeout",
    takes: [1, 3600, undefined],
    refuses: [0, -1, 3601]
  },
  {
    method: "POST",
    path: "/auth/register/device",
    field: "random",
    takes: [bytes(5), bytes(20), "é".repeat(10), "éé1"],
    refuses: [bytes(4), bytes(21), "", "é".repeat(11), "éé"]
  },
  {
    method: "POST",
    path: "/auth/generator/device",
    field: "random",
    takes: [bytes(5), bytes(20), "é".repeat(10)],
    refuses: [bytes(4), bytes(21), "", "é".repeat(11)]
  },
  {
    method: "POST",
    path: "/auth/generator/device",
    field: "device_name",
    takes: ["Abc123", "a".repeat(20), "012345"],
    refuses: ["Abc12", "a".repeat(21), "", "abc-123", "abc_123", "abc 123", "abcdéf", "abc123\n"]
  },
  {
    method: "POST",
    path: "/thing-uplink",
    field: "random",
    takes: [bytes(8), bytes(16), "a b&c=d%"],
    refuses: [bytes(7), bytes(17), ""]
  },
  { method: "GET", path: "/things", field: "page", takes: ["1", "1000"], refuses: ["0", "-1", "1.5", "one", ""] },
  { method: "GET", path: "/things", field: "page_size", takes: ["1", "100"], refuses: ["0", "-1", "101", "ten", ""] },
  { method: "GET", path: "/products", field: "page", takes: ["1", "1000"], refuses: ["0", "-1", "1.5", "one", ""] },
  { method: "GET", path: "/products", field: "page_size", takes: ["1", "100"], refuses: ["0", "-1", "101", "ten", ""] }
]

/** Filters of lists, each of which nothing fits. */
export const filters: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
  ["/things", ["product_key=unknown", "batch_id=9007199254740991"]],
  ["/rule-engine/scenes", ["name=unknown"]],
  ["/ota/firmwares", ["product_key=unknown", "name=unknown"]],
  [
    "/ota/firmwares/{firmware_id}/upgrade-tasks",
    ["status=3", "task_id=9007199254740991", "product_key=unknown", "name=unknown"]
  ]
]
