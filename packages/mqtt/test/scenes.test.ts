import {
  type ActionDraft,
  AllowPrivateWebhooks,
  defaultProjectId,
  type Device,
  type Execution,
  type SceneDraft,
  type SceneId,
  Scenes,
  shownKey,
  type TriggerDraft,
  WebhookSigning
} from "@device-cloud/core"
import { eventually, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Queue } from "effect"
import { createHmac } from "node:crypto"
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { storages } from "../../../vitest.storages.ts"

interface Call {
  readonly method: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly body: Readonly<Record<string, unknown>>
}

/** A receiver of webhooks that answers as it is told, call by call. */
const receiver = Effect.fnUntraced(function*(...answers: ReadonlyArray<(response: ServerResponse) => void>) {
  const calls = yield* Queue.unbounded<Call>()
  let count = 0
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk) => chunks.push(chunk))
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString()
      Queue.offerUnsafe(calls, { method: request.method!, headers: request.headers, text, body: JSON.parse(text) })
      answers[Math.min(count++, answers.length - 1)]!(response)
    })
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () => Effect.sync(() => server.closeAllConnections()).pipe(Effect.andThen(Effect.sync(() => server.close())))
  )
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, calls }
})

const status = (code: number, headers: Readonly<Record<string, string>> = {}) => (response: ServerResponse) =>
  void response.writeHead(code, headers).end(`status ${code}`)

const silence = () => {}

/** Whether the receiver may trust the call, by the letter of Standard Webhooks. */
const signatures = ({ headers, text }: Call, key: string) => {
  const secret = Buffer.from(key.replace(/^whsec_/, ""), "base64")
  const signed = `${String(headers["webhook-id"])}.${String(headers["webhook-timestamp"])}.${text}`
  const expected = `v1,${createHmac("sha256", secret).update(signed).digest("base64")}`
  return String(headers["webhook-signature"]).split(" ").map((signature) => signature === expected)
}

const hook = (url: string, params: Partial<ActionDraft["params"]> = {}): ActionDraft => ({
  URI: "action/webhook",
  params: { URL: url, method: "POST", ...params }
})

const newDevice = Effect.flatMap(Fixtures.createProduct({ validateType: "none" }), Fixtures.createDevice)

let lastName = 0

const newScene = (draft: Partial<SceneDraft>) =>
  Effect.flatMap(Scenes, (scenes) =>
    Effect.map(
      scenes.create(defaultProjectId, { name: `Scene ${++lastName}`, status: "enable", ...draft }),
      ({ scene }) => scene.sceneId
    ))

const trigger = ({ deviceName, productKey }: Device, kind: string, params: object): TriggerDraft => ({
  URI: `trigger/device/${kind}` as TriggerDraft["URI"],
  params: { product_key: productKey, device_name: deviceName, ...params }
})

/** The one execution of the scene, once it is so. */
const executionWhen = (sceneId: SceneId, wanted: (execution: Execution) => boolean) =>
  Effect.flatMap(Scenes, (scenes) =>
    eventually(
      Effect.map(scenes.executions(defaultProjectId, sceneId, { page: 1, pageSize: 10 }), ({ items }) => items[0]),
      { until: (execution) => execution !== undefined && wanted(execution) }
    )).pipe(Effect.map((execution) => execution!))

const isEnded = ({ dueAt }: Execution): boolean => dueAt === null

for (const [name, storage] of storages) {
  const cloud = MqttTestServer.layer(storage).pipe(Layer.provide(Layer.succeed(AllowPrivateWebhooks, true)))
  layer(cloud, { excludeTestServices: true })(`scenes of MQTT devices on ${name}`, (it) => {
    it.effect("a report sets a property of another device and calls a webhook until it is taken", () =>
      Effect.gen(function*() {
        const [sensor, fan] = [yield* newDevice, yield* newDevice]
        const connected = yield* MqttDevice.connect(sensor)
        const other = yield* MqttDevice.connect(fan)
        const { calls, url } = yield* receiver(status(500), status(200))
        const sceneId = yield* newScene({
          name: `Cool ${name}`,
          triggers: [trigger(sensor, "property", { property_id: "temperature", compare_type: ">", compare_val: "30" })],
          actions: [
            hook(url, { desc: "alarm" }),
            { URI: "action/device/property", params: { device_id: fan.deviceId, items: { speed: 3 } } }
          ]
        })
        yield* connected.post({ temperature: 31.5 }, { qos: 1 })
        // The webhook that has to be tried again does not hold up what follows.
        assert.deepInclude((yield* other.take).message, {
          method: "thing.service.property.set",
          params: { speed: 3 }
        })
        const [first, second] = [yield* Queue.take(calls), yield* Queue.take(calls)]
        const { body } = first
        assert.deepInclude(body, {
          scene_id: sceneId,
          scene_name: `Cool ${name}`,
          trigger: {
            URI: "trigger/device/property",
            params: {
              product_key: sensor.productKey,
              device_name: sensor.deviceName,
              property_id: "temperature",
              compare_type: ">",
              compare_val: "30"
            }
          },
          device: { product_key: sensor.productKey, device_name: sensor.deviceName, device_id: sensor.deviceId },
          data: { temperature: 31.5 }
        })
        assert.strictEqual(first.text, second.text)
        assert.strictEqual(first.headers["webhook-id"], second.headers["webhook-id"])
        assert.strictEqual(first.headers["content-type"], "application/json")
        const key = shownKey((yield* (yield* WebhookSigning).keys(defaultProjectId)).current)
        assert.deepStrictEqual([signatures(first, key), signatures(second, key)], [[true], [true]])
        const execution = yield* executionWhen(sceneId, isEnded)
        assert.strictEqual(execution.executionId, body["execution_id"])
        assert.deepStrictEqual(
          execution.outcomes.map(({ attempts, detail, status }) => [status, attempts, detail.replace(/\d+$/, "…")]),
          [["succeeded", 2, "Answered with …"], ["succeeded", 1, "Message …"]]
        )
      }))

    it.effect("an event, a connection and its end call webhooks", () =>
      Effect.gen(function*() {
        const device = yield* newDevice
        const { calls, url } = yield* receiver(status(204))
        yield* newScene({ triggers: [trigger(device, "event", { event_id: "alarm" })], actions: [hook(url)] })
        yield* newScene({ triggers: [trigger(device, "status", {})], actions: [hook(url, { method: "PUT" })] })
        const said = Effect.map(Queue.take(calls), ({ body, method }) => [method, body["data"]])
        const connected = yield* MqttDevice.connect(device)
        assert.deepStrictEqual(yield* said, ["PUT", { status: "online" }])
        yield* connected.publish(
          connected.topic("thing/event/alarm/post"),
          JSON.stringify({ id: "1", version: "1.0", params: { value: { level: 2 }, time: 1 }, method: "x" }),
          1
        )
        assert.deepStrictEqual(yield* said, ["POST", { event_id: "alarm", value: { level: 2 } }])
        yield* connected.end
        assert.deepStrictEqual(yield* said, ["PUT", { status: "offline" }])
      }))

    it.effect("redirects and refusals end a webhook; silence is tried again later", () =>
      Effect.gen(function*() {
        const answers = [status(302, { location: "http://127.0.0.1:1/" }), status(410), silence]
        const receivers = yield* Effect.forEach(answers, (answer) => receiver(answer))
        const sceneId = yield* newScene({
          actions: [
            ...receivers.map(({ url }) => hook(url, { request_timeout: 1 })),
            hook("http://127.0.0.1:1/")
          ]
        })
        yield* (yield* Scenes).run(defaultProjectId, sceneId)
        const execution = yield* executionWhen(sceneId, ({ outcomes }) =>
          outcomes.length > 0 && outcomes.every(({ attempts }) => attempts > 0))
        assert.deepStrictEqual(execution.outcomes.map(({ detail, status }) => [status, detail.split(":")[0]]), [
          ["failed", "Answered with 302"],
          ["failed", "Answered with 410"],
          ["pending", "No answer within 1 seconds"],
          ["pending", "The connection failed (ECONNREFUSED)"]
        ])
        assert.strictEqual(execution.status, "running")
        assert.isNotNull(execution.outcomes[2]!.nextAt)
        yield* (yield* Scenes).remove(defaultProjectId, sceneId)
      }))

    it.effect("with a new key, webhooks are signed with the one before as well", () =>
      Effect.gen(function*() {
        const signing = yield* WebhookSigning
        const before = yield* signing.keys(defaultProjectId)
        const after = yield* signing.rotate(defaultProjectId)
        assert.notStrictEqual(after.current, before.current)
        const { calls, url } = yield* receiver(status(200))
        yield* (yield* Scenes).run(defaultProjectId, yield* newScene({ actions: [hook(url)] }))
        const call = yield* Queue.take(calls)
        assert.deepStrictEqual(signatures(call, shownKey(after.current)), [true, false])
        assert.deepStrictEqual(signatures(call, shownKey(before.current)), [false, true])
      }))
  })
}
