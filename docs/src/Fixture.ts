/** What all pages show (products, devices, signatures), and what stands for it while the examples of a page run. */
import { createHmac } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { Page } from "./Blocks.ts"
import type { ExampleServer } from "./ExampleServer.ts"
import { root } from "./Pages.ts"
import { bleIdentity } from "./Vectors.ts"

/** A device of a page, under the names that it really has. */
export interface FixtureDevice {
  readonly productKey: string
  readonly deviceName: string
  readonly deviceSecret: string
}

export interface Fixture {
  /** Puts what is real in the place of what the page shows, and values for `{names}`. */
  readonly real: (text: string) => string
  /** Values for `{names}`, and for numbers under such names: `"group_id": 3`. */
  readonly known: Record<string, string>
  /** From now on a text stands for another one. */
  readonly shows: (shown: string, real: string) => void
  /** The access key of the page. */
  readonly key: string
  /** The devices by the names that the pages give them. */
  readonly devices: ReadonlyMap<string, FixtureDevice>
}

/** `data` of a response, with those of its members that fixtures need. */
export interface Data {
  readonly id: string
  readonly key: string
  readonly product_info: { readonly product_key: string; readonly product_secret: string }
  readonly device_id: string
  readonly device_secret: string
}

/** Calls the API with the access key of the page, or another one. Returns `data`. */
export type Call = (method: string, path: string, body: string, key?: string) => Promise<Data>

const shown = [
  {
    name: "thermostat01",
    productKey: "a1B2c3D4e5F",
    secret: "0123456789abcdef0123456789abcdef",
    nodeType: "direct",
    product: "Thermostat"
  },
  { name: "gateway01", productKey: "g9H8i7J6k5L", secret: "none", nodeType: "gateway", product: "Gateway" },
  {
    name: "sensor01",
    productKey: "s1T2u3V4w5X",
    secret: "fedcba9876543210fedcba9876543210",
    nodeType: "gateway-sub",
    product: "Sensor"
  }
]

/** Device ids of the pages: of `thermostat01`, and of `sensor01`. */
const ids: Readonly<Record<string, ReadonlyArray<string>>> = {
  thermostat01: ["F3003cClyBNDUh7AJsum", "Yb1Qw5dQJ2fEm0XkqT7c", "5BSFO1Dzczy3nAjjmFUc"],
  sensor01: ["ygUnXKZjMCHHTb05sfLk", "XltbWBdNTqg6ZD5jsBvO"]
}

/** The time of the pages, for times that must be new. */
const time = "1795231556029"

/** Signatures of the pages: algorithm, whose secret, text. */
const signatures: Readonly<Record<string, readonly [algorithm: string, secret: string, text: string]>> = {
  "37cf74c036bbae4bf99c3bdb5afb1b1c972621d4": [
    "sha1",
    "thermostat01",
    "clientIdlampdeviceNamethermostat01productKeya1B2c3D4e5F"
  ],
  "aef5e70d9eed7da1615809d7d69335531c9bfbe8f18b62ad7ffcc044acabf5ea": [
    "sha256",
    "thermostat01",
    "productKeya1B2c3D4e5FdeviceNamethermostat01randomrnd12345"
  ],
  "cf9484ec7c47ebf919de44f574866cbdeb8f3249": [
    "sha1",
    "a1B2c3D4e5F",
    "macAA:BB:CC:DD:EE:FFproductKeya1B2c3D4e5Frandom123456"
  ],
  "7565e4da56bd2f233cd24d4db2a0c67362fe91c1": [
    "sha1",
    "a1B2c3D4e5F",
    "deviceNamethermostat01productKeya1B2c3D4e5Frandom123456"
  ],
  "d71afd892bd88312d76da7ee6688ee9af0a3d8730bc5d67d760d9689d7811c0f": [
    "sha256",
    "a1B2c3D4e5F",
    "deviceNamethermostat01productKeya1B2c3D4e5Frandom123456"
  ],
  "1d2870ea60e2390705f0de6c2fd3e958d566ab6a1600783acc415cd6fd84b9b1": [
    "sha256",
    "sensor01",
    `clientIdsub-1deviceNamesensor01productKeys1T2u3V4w5Xtimestamp${time}`
  ],
  "eca5b04e51505078cefb79acfe772171f0f2ceaf": ["sha1", "sensor01", "deviceNamesensor01productKeys1T2u3V4w5X"],
  "b385b0d33c1ece7004c705d62e3be84764d76907d4c895099c07d5771f582274": [
    "sha256",
    "s1T2u3V4w5X",
    "deviceNamesensor01productKeys1T2u3V4w5Xrandom551556073FC5B34AAF68"
  ]
}

const draft = (name: string, nodeType: string) =>
  JSON.stringify({
    name,
    node_type: nodeType,
    ...nodeType === "gateway-sub" ? { protocol_type: "zigbee" } : { network_type: "wifi" },
    validate_type: nodeType === "direct" ? "weak" : "none",
    data_format: "json",
    auth_type: "secret",
    dynamic_register: true
  })

/** Makes a project with the thermostat, and with the gateway and its sub-device if the page names them. */
export const make = async (page: Page, server: ExampleServer, hooks: string, call: Call): Promise<Fixture> => {
  const known: Record<string, string> = {}
  const devices = new Map<string, FixtureDevice>()
  const secrets: Record<string, string> = {}
  const places: Array<readonly [shown: string, real: string]> = [
    ["http://127.0.0.1:8080", server.http],
    ["https://example.com/", hooks],
    [time, String(Date.now())]
  ]

  const hasGateway = page.blocks.some(({ does, text }) => /g9H8i7J6k5L|s1T2u3V4w5X/.test(does + text))
  const { id } = await call("POST", "/projects", JSON.stringify({ name: page.file }), server.key)
  const access = JSON.stringify({ name: page.file, role: "admin", project_id: id })
  const { key } = await call("POST", "/access-keys", access, server.key)
  for (const { name, nodeType, product, productKey, secret } of shown) {
    if (nodeType !== "direct" && !hasGateway) continue
    const { product_info: made } = await call("POST", "/products", draft(product, nodeType), key)
    if (nodeType === "direct") {
      const model = readFileSync(join(root, "docs/examples/thermostat.json"), "utf8")
      const body = JSON.stringify({ model_type: "metadata", model_data: model })
      await call("POST", `/products/${made.product_key}/thing-model`, body, key)
    }
    const body = JSON.stringify({ device_name: name })
    const device = await call("POST", `/products/${made.product_key}/things`, body, key)
    devices.set(name, { productKey: made.product_key, deviceName: name, deviceSecret: device.device_secret })
    secrets[name] = device.device_secret
    secrets[productKey] = made.product_secret
    places.push([productKey, made.product_key], ...(ids[name] ?? []).map((one) => [one, device.device_id] as const))
    places.push([secret, device.device_secret])
    if (nodeType === "direct") {
      const { product_key, product_secret } = made
      const { device_id, device_secret } = device
      Object.assign(known, { product_key, product_secret, device_name: name, device_id, device_secret })
    } else {
      known[`${name}_id`] = device.device_id
    }
  }

  const replaced = (text: string) => places.reduce((result, [from, to]) => result.replaceAll(from, to), text)
  for (const [signature, [algorithm, secret, text]] of Object.entries(signatures)) {
    const key = secrets[secret]
    if (key !== undefined) places.push([signature, createHmac(algorithm, key).update(replaced(text)).digest("hex")])
  }
  const { deviceName, deviceSecret, productKey } = devices.get("thermostat01")!
  const identity = bleIdentity("000102030405060708090a0b0c0d0e0f", productKey, deviceName, deviceSecret)
  places.push(["dc4dee46897c52987eabfdecc35f7717", identity.cipher])
  places.push(["fed1e02d2c1bcf9b4bb9bdd62c6bae88", identity.ble_key])

  const gateway = devices.get("gateway01")
  if (gateway !== undefined) {
    const text = `deviceNamegateway01productKey${gateway.productKey}`
    known["gateway_sign"] = createHmac("sha1", gateway.deviceSecret).update(text).digest("hex")
  }

  const real = (text: string) =>
    replaced(text)
      .replaceAll(/"(\w+(?:_id|Id))": ?\d+/g, (whole, name) =>
        known[name] === undefined ? whole : `"${name}": ${known[name]}`)
      .replaceAll(/(?<!\{)\{(\w+)\}/g, (whole, name) =>
        known[name] ?? whole)
      .replaceAll(/\b8883\b/g, new URL(server.mqtts).port)
  return { real, known, shows: (from, to) => void places.unshift([from, to]), key, devices }
}
