/**
 * Devices, their shadows and the sub-devices of gateways.
 */
import { createCipheriv, createHash } from "node:crypto"
import {
  device,
  deviceRecord,
  deviceStatus,
  enabledStatus,
  type Fields,
  listedDevice,
  listOf,
  members,
  oneOf,
  page,
  paged,
  thingShadow
} from "./Fields.ts"
import { type Given, hmac, type Operation } from "./Operation.ts"

const bleRandom = "000102030405060708090a0b0c0d0e0f"

/** What a device makes of a random over Bluetooth. */
const bleCipher = (random: unknown, { device_name, device_secret, product_key }: Given): string => {
  const bytes = Buffer.from(String(random), "hex")
  const names = Buffer.from(`,${product_key},${device_name},${device_secret}`)
  const key = createHash("sha256").update(Buffer.concat([bytes, names])).digest().subarray(0, 16)
  return createCipheriv("aes-128-cbc", key, "123aqwed#*$!(4ju").update(bytes).toString("hex")
}

export const devices: ReadonlyArray<Operation> = [
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

export const signSubDevice = (signMethod: string, productKey: string, deviceName: string, secret = "") =>
  hmac(signMethod, secret, `deviceName${deviceName}productKey${productKey}`)

const subDeviceName: Fields = { device_name: "string", product_key: "string" }
const subDevice: Fields = { ...subDeviceName, device_id: "string" }
const onGateway = { device_id: "gateway_id" } as const
const topologyAction: Fields = {
  action: oneOf("sub.add.start", "sub.add.stop"),
  session_id: "string",
  params: members({ timeout: "int", product_keys: "list" })
}

export const topology: ReadonlyArray<Operation> = [
  {
    method: "PUT",
    path: "/things/{device_id}/topo",
    spoils: true,
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
    spoils: true,
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

export const shadows: ReadonlyArray<Operation> = [
  { method: "GET", path: "/things/{device_id}/shadow", data: { thing_shadow: thingShadow } },
  {
    method: "PUT",
    path: "/things/{device_id}/shadow",
    body: { state: members({ desired: "object" }) },
    required: ["state", "state.desired"],
    calls: () => [{ body: { state: { desired: { power: 0 } } } }]
  }
]
