/**
 * The server in processes of its own, and devices for it.
 */
import { DeviceName, ProductKey } from "@device-cloud/core"
import { callTo, ownerKey, productBody } from "@device-cloud/testing/http"
import { MqttDevice } from "@device-cloud/testing/mqtt"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as ServerProcess from "../src/ServerProcess.ts"

/** `device-cloud-server`, which `vitest.bundles.ts` makes. */
export const main = fileURLToPath(new URL("../.bundle/main.js", import.meta.url))

/** On free ports of loopback, with {@link ownerKey} as the key of its owner. */
export const start = (env: Readonly<Record<string, string>>, nodeOptions: ReadonlyArray<string> = []) =>
  ServerProcess.start({
    env: { HTTP_PORT: "0", MQTTS_PORT: "0", MQTT_PORT: "0", ADMIN_KEY: ownerKey, ...env },
    nodeOptions,
    main
  })

export const temporaryDirectory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-server-"))),
  (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
)

export const call = (http: string, method: string, path: string, body?: object) =>
  Effect.map(callTo(http, method, path, { key: ownerKey, body }), ({ body }) => body)

/** Devices of a new product. */
export const createDevices = Effect.fnUntraced(function*(http: string, count: number) {
  const { data: { product_info: { product_key } } } = yield* call(http, "POST", "/products", productBody)
  return yield* Effect.forEach(
    Array.from({ length: count }),
    () =>
      Effect.map(call(http, "POST", `/products/${product_key}/things`), ({ data }) => ({
        id: data.device_id as string,
        productKey: ProductKey.make(product_key),
        deviceName: DeviceName.make(data.device_name),
        deviceSecret: data.device_secret as string
      }))
  )
})

/** Connects a device that comes back when its connection ends, and that does what it is told. Counts what it is told. */
export const connectObedient = Effect.fnUntraced(function*(url: string, device: MqttDevice.DeviceTriple) {
  const connected = yield* MqttDevice.connectTo({ url }, device, { options: { reconnectPeriod: 100 } })
  const told: Array<string> = []
  connected.client.on("message", (topic, payload) => {
    if (!topic.endsWith("/thing/service/property/set")) return
    const { id } = JSON.parse(payload.toString())
    told.push(id)
    connected.client.publish(`${topic}_reply`, JSON.stringify({ id, code: 200, data: {} }), { qos: 1 })
  })
  return { ...connected, told }
})

/** The processes that a process has started and that are Node.js. */
export const workersOf = (pid: number): ReadonlyArray<number> =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number)
    .filter((child) => readFileSync(`/proc/${child}/cmdline`, "utf8").includes("main.js"))
