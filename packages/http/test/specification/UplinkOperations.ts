/**
 * What devices call: registration and the uplink.
 */
import { signSubDevice } from "./DeviceOperations.ts"
import { type Fields, type Kind, oneOf, triple } from "./Fields.ts"
import { type Given, type Operation, signRegistration, signUplink } from "./Operation.ts"

export const registration: ReadonlyArray<Operation> = [
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
export const uplink = (
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
