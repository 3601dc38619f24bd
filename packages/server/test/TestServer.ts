/**
 * The server in processes of its own, and devices for it.
 */
import { DeviceName, ProductKey } from "@device-cloud/core"
import { eventually } from "@device-cloud/testing"
import { callTo, ownerKey, productBody } from "@device-cloud/testing/http"
import { MqttDevice } from "@device-cloud/testing/mqtt"
import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as ServerProcess from "../src/ServerProcess.ts"

/** `device-cloud-server`, which `vitest.bundles.ts` makes. */
export const main = fileURLToPath(new URL("../.bundle/main.js", import.meta.url))

/** On free ports of loopback, with what `env` says and nothing else. */
export const startWith = (env: Readonly<Record<string, string>>, nodeOptions: ReadonlyArray<string> = []) =>
  ServerProcess.start({ env: { HTTP_PORT: "0", MQTTS_PORT: "0", ...env }, nodeOptions, main })

export type Server = Effect.Success<ReturnType<typeof startWith>>

/** On free ports of loopback, with {@link ownerKey} as the key of its owner. */
export const start = (env: Readonly<Record<string, string>>, nodeOptions: ReadonlyArray<string> = []) =>
  startWith({ MQTT_PORT: "0", ADMIN_KEY: ownerKey, ...env }, nodeOptions)

/** A test that starts servers. It waits most of its time: those of a file run beside each other. */
export const live = (name: string, test: Effect.Effect<void, unknown, Effect.Services<ReturnType<typeof startWith>>>) =>
  it.live(name, () => test.pipe(Effect.scoped, Effect.provide(NodeServices.layer)), {
    concurrent: true,
    timeout: 120_000
  })

/** For what waits for the restart of a database or for another try: two seconds and more. */
export const patient = { timeout: "100 seconds" } as const

export const temporaryDirectory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-server-"))),
  (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
)

export const get = (server: Server, path: string) =>
  Effect.promise(async () => {
    const response = await fetch(`${server.http}${path}`)
    return { status: response.status, text: await response.text() }
  })

export const call = (http: string, method: string, path: string, body?: object, key = ownerKey) =>
  Effect.map(callTo(http, method, path, { key, body }), ({ body }) => body)

/** A product with one device; answers the device's id and triple. */
export const createDevice = Effect.fnUntraced(function*(http: string, key = ownerKey, fields = {}) {
  const product = { ...productBody, ...fields }
  const { data: { product_info: { product_key } } } = yield* call(http, "POST", "/products", product, key)
  const { data } = yield* call(http, "POST", `/products/${product_key}/things`, undefined, key)
  return {
    id: data.device_id as string,
    productKey: ProductKey.make(product_key),
    deviceName: DeviceName.make(data.device_name),
    deviceSecret: data.device_secret as string
  }
})

/** How to reach the broker; its certificate is for `localhost`. */
export const broker = (server: Server, dataDir: string) =>
  Effect.map(
    Effect.promise(() => readFile(join(dataDir, "tls", "ca.pem"), "utf8")),
    (ca) => ({ url: server.mqtts.replace("127.0.0.1", "localhost"), ca })
  )

export const counterOf = (server: Server, deviceId: string, key = ownerKey) =>
  Effect.map(
    call(server.http, "GET", `/things/${deviceId}/properties`, undefined, key),
    (answer) => {
      assert.strictEqual(answer.code, 0, JSON.stringify(answer))
      return answer.data.properties.counter as number
    }
  )

export const untilStatus = (server: Server, deviceId: string, expected: string, key = ownerKey) =>
  eventually(call(server.http, "GET", `/things/${deviceId}/status`, undefined, key), {
    ...patient,
    until: ({ data }) => data.status === expected
  })

/** Posts 1, 2, 3 … with QoS 1, as fast as they are acknowledged; answers how to read the last one that was. */
export const postWithoutEnd = Effect.fnUntraced(function*(device: MqttDevice.MqttDevice) {
  let sent = 0
  let acknowledged = 0
  const post = Effect.suspend(() => {
    const counter = ++sent
    return Effect.andThen(
      device.post({ counter }, { qos: 1 }),
      Effect.sync(() => {
        if (device.client.connected) acknowledged = counter
      })
    )
  })
  yield* Effect.forkScoped(Effect.forever(post))
  return {
    acknowledged: Effect.sync(() => acknowledged),
    /** Until so many more were acknowledged. */
    progress: (count: number) =>
      Effect.suspend(() => {
        const goal = acknowledged + count
        return eventually(Effect.sync(() => acknowledged), { ...patient, until: (now) => now >= goal })
      })
  }
})

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
