import { eventually } from "@device-cloud/testing"
import { ownerKey } from "@device-cloud/testing/http"
import { MqttDevice } from "@device-cloud/testing/mqtt"
import { assert } from "@effect/vitest"
import { Effect, Queue, Redacted } from "effect"
import { createServer } from "node:http"
import { type AddressInfo } from "node:net"
import { newDatabase } from "../../../vitest.storages.ts"
import {
  broker,
  call,
  counterOf,
  createDevice,
  get,
  live,
  patient,
  postWithoutEnd,
  type Server,
  startWith,
  temporaryDirectory,
  untilStatus
} from "./TestServer.ts"

/** A server that comes back after `kill -9`, on a database that lives on. */
const lasting = Effect.gen(function*() {
  const dataDir = yield* temporaryDirectory
  return { DATA_DIR: dataDir, ADMIN_KEY: ownerKey, DATABASE_URL: Redacted.value(yield* newDatabase) }
})

for (const STORAGE of ["postgres", "sqlite"]) {
  live(
    `loses nothing that it acknowledged when it is killed, and takes over its database, on ${STORAGE}`,
    Effect.gen(function*() {
      const dataDir = yield* temporaryDirectory
      const env = { DATA_DIR: dataDir, ADMIN_KEY: ownerKey, STORAGE }
      const first = yield* startWith(env)
      const device = yield* createDevice(first.http)
      const posts = yield* postWithoutEnd(yield* MqttDevice.connectTo(yield* broker(first, dataDir), device))
      yield* posts.progress(200)
      yield* Effect.ignore(first.child.kill({ killSignal: "SIGKILL" }))

      const second = yield* startWith(env)
      assert.isAtLeast(yield* counterOf(second, device.id), yield* posts.acknowledged)
      yield* untilStatus(second, device.id, "offline")
      yield* MqttDevice.connectTo(yield* broker(second, dataDir), device)
      yield* untilStatus(second, device.id, "online")
    })
  )
}

live(
  "calls a webhook again that was not taken when it was killed, by the same id",
  Effect.gen(function*() {
    const calls = yield* Queue.unbounded<string>()
    let count = 0
    const receiver = createServer((request, response) => {
      Queue.offerUnsafe(calls, String(request.headers["webhook-id"]))
      response.writeHead(count++ === 0 ? 503 : 200).end()
    })
    yield* Effect.acquireRelease(
      Effect.callback<void>((resume) => {
        receiver.listen(0, "127.0.0.1", () => resume(Effect.void))
      }),
      () => Effect.sync(() => receiver.close())
    )
    const URL = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
    const env = { ...yield* lasting, WEBHOOK_ALLOW_PRIVATE: "true" }
    const scene = {
      name: "Calls",
      status: "enable",
      actions: [{ URI: "action/webhook", params: { URL, method: "POST" } }]
    }
    const first = yield* startWith(env)
    const { data: { id } } = yield* call(first.http, "POST", "/rule-engine/scenes", scene)
    const { data: { execution_id } } = yield* call(first.http, "POST", `/rule-engine/scenes/${id}/actions`)
    const webhookId = yield* Queue.take(calls)
    const latest = (server: Server) =>
      Effect.map(call(server.http, "GET", `/rule-engine/scenes/${id}/executions`), ({ data }) => data.results[0])
    yield* eventually(latest(first), { ...patient, until: ({ actions }) => actions[0].attempts === 1 })
    yield* Effect.ignore(first.child.kill({ killSignal: "SIGKILL" }))

    const second = yield* startWith(env)
    assert.strictEqual(yield* Queue.take(calls), webhookId)
    const ended = yield* eventually(latest(second), { ...patient, until: ({ status }) => status === "succeeded" })
    assert.strictEqual(ended.execution_id, execution_id)
    assert.deepInclude(ended.actions[0], { attempts: 2, detail: "Answered with 200" })
  })
)

live(
  "delivers a command again that was under way when it was killed",
  Effect.gen(function*() {
    const env = yield* lasting
    const dataDir = env.DATA_DIR
    const first = yield* startWith(env)
    const device = yield* createDevice(first.http)
    // It reads nothing after its connection: what is sent to it is not confirmed.
    const frozen = yield* MqttDevice.connectTo(yield* broker(first, dataDir), device)
    frozen.client.stream.pause()
    const set = (server: Server, level: number) =>
      Effect.map(
        call(server.http, "POST", `/things/${device.id}/properties`, { params: { level } }),
        ({ data }) => data.message_id as string
      )
    const ids = [yield* set(first, 1), yield* set(first, 2)]
    const stateOf = (server: Server, id: string) =>
      Effect.map(call(server.http, "GET", `/things/${device.id}/messages/${id}`), ({ data }) => data.state as string)
    yield* eventually(stateOf(first, ids[1]!), { ...patient, until: (state) => state === "sent" })
    yield* Effect.ignore(first.child.kill({ killSignal: "SIGKILL" }))

    const second = yield* startWith(env)
    yield* untilStatus(second, device.id, "offline")
    ids.push(yield* set(second, 3))
    const back = yield* MqttDevice.connectTo(yield* broker(second, dataDir), device)
    const received: Array<string> = []
    while (received.length < ids.length) {
      const { message } = yield* back.take
      if (message["method"] !== "thing.service.property.set") continue
      received.push(String(message["id"]))
      yield* back.publish(
        back.topic("thing/service/property/set_reply"),
        JSON.stringify({ id: message["id"], code: 200, data: {} }),
        1
      )
    }
    assert.deepStrictEqual(received, ids)
    for (const id of ids) {
      yield* eventually(stateOf(second, id), { ...patient, until: (state) => state === "succeeded" })
    }
  })
)

live(
  "carries an upgrade on that was under way when it was killed, with objects and WebSocket",
  Effect.gen(function*() {
    const env = yield* lasting
    const dataDir = env.DATA_DIR
    const first = yield* startWith(env)
    const device = yield* createDevice(first.http)
    const form = new FormData()
    form.append("file", new Blob(["firmware"]), "firmware.bin")
    const uploaded = yield* Effect.promise(async () => {
      const response = await fetch(`${first.http}/openapi/v1/oss/ota/${device.productKey}`, {
        method: "POST",
        headers: { authorization: `Bearer ${ownerKey}` },
        body: form
      })
      return await response.json() as { readonly data: { readonly filename: string; readonly md5: string } }
    })
    assert.isTrue(uploaded.data.filename.startsWith(`${first.http}/objects/`))
    const connected = yield* MqttDevice.connectTo(yield* broker(first, dataDir), device)
    const inform = (from: typeof connected, version: string) =>
      from.publish(
        `/ota/device/inform/${device.productKey}/${device.deviceName}`,
        JSON.stringify({ id: 1, params: { version } }),
        1
      )
    yield* inform(connected, "1.0.0")
    const { data: firmware } = yield* call(first.http, "POST", `/products/${device.productKey}/ota/firmwares`, {
      name: "Sensor",
      version: "1.1.0",
      oss_path: uploaded.data.filename,
      algorithms: 1,
      hash: uploaded.data.md5
    })
    const { data: { task_id } } = yield* call(first.http, "POST", `/ota/firmwares/${firmware.id}/upgrade-tasks`, {
      scope_mode: 0,
      cloud_push: true
    })
    assert.deepInclude((yield* connected.take).message, { code: "1000" })
    yield* Effect.ignore(first.child.kill({ killSignal: "SIGKILL" }))

    const second = yield* startWith(env)
    const { pathname } = new URL(uploaded.data.filename)
    assert.strictEqual((yield* get(second, pathname)).text, "firmware")
    const statusOf = Effect.map(
      call(second.http, "GET", `/ota/upgrade-tasks/${task_id}`),
      ({ data }) => data.results[0].status as number
    )
    assert.strictEqual(yield* statusOf, 2)
    const back = yield* MqttDevice.connectTo({ url: `${second.http.replace("http", "ws")}/mqtt` }, device)
    yield* inform(back, "1.0.0")
    assert.deepInclude((yield* back.take).message, { code: "1000" })
    yield* inform(back, "1.1.0")
    yield* eventually(statusOf, { ...patient, until: (status) => status === 3 })
  })
)
