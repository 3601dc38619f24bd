import { eventually } from "@device-cloud/testing"
import { call, createDevice, createProduct, type DeviceTriple, testApi, uplink } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { SceneAction, SceneCondition, SceneExtensions } from "@device-cloud/core"
import { Effect, Layer, Schema } from "effect"
import { everyStorage } from "../../../vitest.storages.ts"

const model = {
  properties: [
    { id: "power", name: "Power", accessMode: "rw", dataType: { type: "bool", specs: { 0: "off", 1: "on" } } },
    { id: "temperature", name: "Temperature", accessMode: "r", dataType: { type: "double", min: -40, max: 120 } },
    { id: "color", name: "Color", accessMode: "rw", dataType: { type: "array", size: 3, elementType: "int" } }
  ],
  events: [{
    id: "alarm",
    name: "Alarm",
    eventType: "alert",
    outputData: [{ id: "level", name: "Level", dataType: { type: "int" } }]
  }],
  services: [
    { id: "reset", name: "Reset", callType: "async", inputData: [], outputData: [] },
    { id: "wait", name: "Wait", callType: "sync", inputData: [], outputData: [] }
  ]
}

type Device = DeviceTriple & { readonly device_id: string }

/** A device of a product with the model. */
const newDevice = Effect.gen(function*() {
  const { product_key } = yield* createProduct()
  yield* call("POST", `/products/${product_key}/thing-model`, {
    body: { model_type: "metadata", model_data: JSON.stringify(model) }
  })
  return (yield* createDevice(product_key)) as unknown as Device
})

const property = ({ device_name, product_key }: Device, params: object = {}) => ({
  URI: "trigger/device/property",
  params: {
    product_key,
    device_name,
    property_id: "temperature",
    compare_type: ">",
    compare_val: "30",
    ...params
  }
})

const set = ({ device_id }: Device, items: object) => ({ URI: "action/device/property", params: { device_id, items } })

let lastName = 0

const create = (body: object) =>
  call("POST", "/rule-engine/scenes", { body: { name: `Scene ${++lastName}`, status: "enable", ...body } })

const newScene = (body: object) => Effect.map(create(body), ({ body }) => body.data.id as string)

const refusal = (body: object) =>
  Effect.map(create(body), ({ body, status }) => [status, body.code, ...Object.keys(body.data?.issues ?? {})])

const latest = (id: string) =>
  eventually(
    Effect.map(call("GET", `/rule-engine/scenes/${id}/executions`), ({ body }) => body.data.results[0]),
    { until: (execution) => execution !== undefined && !["pending", "running"].includes(execution.status) }
  )

/** As much of the OpenAPI document as shows how scenes are described. */
interface OpenApiDocument {
  readonly components: {
    readonly schemas: Readonly<
      Record<string, {
        readonly anyOf: ReadonlyArray<{
          readonly properties: { readonly URI: { readonly type: string; readonly enum?: ReadonlyArray<string> } }
        }>
      }>
    >
  }
  readonly paths: Readonly<
    Record<
      string,
      Readonly<
        Record<string, {
          readonly requestBody: {
            readonly content: {
              readonly "application/json": {
                readonly schema: {
                  readonly properties: { readonly triggers: { readonly anyOf: ReadonlyArray<object> } }
                }
              }
            }
          }
        }>
      >
    >
  >
}

/** Extensions as an application has them. */
const extensions = SceneExtensions.layer([
  SceneCondition.make({
    uri: "condition/acme/on-duty",
    params: Schema.Struct({ team: Schema.String }),
    judge: ({ team }) =>
      Effect.succeed({
        verdict: "holds",
        value: "Kim",
        source: "roster",
        time: null,
        reason: `Kim of ${team} is on duty`
      })
  }),
  SceneAction.make({
    uri: "action/acme/page",
    params: Schema.Struct({ team: Schema.String, urgent: Schema.optionalKey(Schema.Boolean) }),
    attempt: ({ team }) => Effect.succeed(SceneAction.succeeded(`Paged ${team}`))
  })
])

for (const [name, storage] of everyStorage) {
  layer(testApi(storage).pipe(Layer.provide(extensions)), { excludeTestServices: true })(`scenes on ${name}`, (it) => {
    it.effect("a scene is created, read, listed, changed and deleted", () =>
      Effect.gen(function*() {
        const device = yield* newDevice
        const draft = {
          name: `Cooling of ${device.device_id}`,
          desc: "Cools",
          status: "enable",
          triggers: [property(device), {
            URI: "trigger/cron",
            params: {
              product_key: device.product_key,
              device_name: "*",
              cron: "0 8 * * *",
              time_zone: "Europe/Berlin"
            }
          }],
          conditions: [{
            URI: "condition/time/range",
            params: { time_range: { start_timestamp: 0, end_timestamp: 4_000_000_000 } }
          }, {
            URI: "condition/time/window",
            params: { start: "22:00", end: "06:00", days: ["sun", "fri"], time_zone: "Europe/Berlin" }
          }],
          actions: [set(device, { power: 1 }), { URI: "action/delay", params: { seconds: 60 } }, {
            URI: "action/webhook",
            params: { URL: "https://example.com/", method: "POST", body: "{\"text\":\"{{device_name}}\"}" }
          }]
        }
        const { body } = yield* call("POST", "/rule-engine/scenes", { body: draft })
        const { created_at, id, triggers, updated_at, ...rest } = body.data
        const { name, triggers: [first], ...others } = draft
        assert.deepStrictEqual(rest, { name, ...others, paused_until: "", warnings: [] })
        assert.deepStrictEqual(triggers[0], first)
        const { cron_id, ...timer } = triggers[1].params
        assert.deepStrictEqual(timer, draft.triggers[1]!.params)
        assert.match(cron_id, /^[A-Za-z0-9]{20}$/)
        assert.deepStrictEqual([Number.isInteger(created_at), updated_at], [true, created_at])
        const { warnings, ...scene } = body.data
        assert.deepStrictEqual(warnings, [])
        assert.deepStrictEqual((yield* call("GET", `/rule-engine/scenes/${id}`)).body.data, scene)
        const list = (query: string) =>
          Effect.map(call("GET", `/rule-engine/scenes?${query}`), ({ body }) => body.data.results)
        assert.deepStrictEqual(yield* list(`name=${device.device_id}`), [scene])
        assert.deepStrictEqual(yield* list(`name=${device.device_id}&status=disable`), [])

        assert.deepStrictEqual((yield* create({ name })).body.code, 40901)
        const other = yield* newScene({})
        const taken = yield* call("PUT", `/rule-engine/scenes/${other}`, { body: { name, status: "enable" } })
        assert.deepStrictEqual([taken.status, taken.body.code], [409, 40901])

        // What is read can be sent again, and a timer stays the one that it was.
        const again = yield* call("PUT", `/rule-engine/scenes/${id}`, { body: { ...scene, desc: "" } })
        assert.strictEqual(again.body.data.triggers[1].params.cron_id, cron_id)
        assert.strictEqual(again.body.data.desc, "")
        const elsewhere = { ...scene.triggers[1], params: { ...scene.triggers[1].params, time_zone: "Asia/Tokyo" } }
        const moved = yield* call("PUT", `/rule-engine/scenes/${id}`, { body: { ...scene, triggers: [elsewhere] } })
        assert.strictEqual(moved.body.data.triggers[0].params.time_zone, "Asia/Tokyo")
        assert.notStrictEqual(moved.body.data.triggers[0].params.cron_id, cron_id)
        const emptied = yield* call("PUT", `/rule-engine/scenes/${id}`, { body: { name, status: "disable" } })
        assert.deepInclude(emptied.body.data, { status: "disable", triggers: [], conditions: [], actions: [] })
        const enabled = yield* call("PUT", `/rule-engine/scenes/${id}/status`, { body: { status: "enable" } })
        assert.deepStrictEqual(enabled.body, { code: 0, message: "success", data: {} })
        assert.strictEqual((yield* call("GET", `/rule-engine/scenes/${id}`)).body.data.status, "enable")
        assert.deepStrictEqual((yield* call("DELETE", `/rule-engine/scenes/${id}`)).body.data, {})
        for (
          const [method, path] of [["GET", ""], ["DELETE", ""], ["POST", "/actions"], ["GET", "/executions"]] as const
        ) {
          assert.strictEqual((yield* call(method, `/rule-engine/scenes/${id}${path}`)).body.code, 40406)
        }
      }))

    it.effect("says what is wrong with a scene, and where", () =>
      Effect.gen(function*() {
        const device = yield* newDevice
        const { device_id, product_key } = device
        const trigger = (params: object, URI = "trigger/device/property") => ({
          triggers: [{ URI, params: { product_key, device_name: device.device_name, ...params } }]
        })
        const condition = (URI: string, params: object) => ({
          conditions: [{ URI, params: { product_key, device_name: device.device_name, ...params } }]
        })
        const action = (URI: string, params: object) => ({ actions: [{ URI, params }] })
        const webhook = (URL: string, params: object = {}) =>
          action("action/webhook", { URL, method: "POST", ...params })
        const temperature = { property_id: "temperature" }
        const cases: ReadonlyArray<readonly [object, ...ReadonlyArray<string>]> = [
          [{ name: "" }, "name"],
          [{ status: "on" }, "status"],
          [{ triggers: [{ URI: "trigger/rain", params: {} }] }, "triggers[0].URI"],
          [{ triggers: [{ URI: "trigger/cron" }] }, "triggers[0].params"],
          [trigger({ product_key: "" }), "triggers[0].params.product_key"],
          [trigger({ product_key: "unknown" }), "triggers[0].params.product_key"],
          [trigger({ device_name: "unknown" }), "triggers[0].params.device_name"],
          [trigger({ property_id: "unknown" }), "triggers[0].params.property_id"],
          [trigger({ type: "trigger/cron" }), "triggers[0].params.type"],
          [trigger({ cron: "* * * * *" }), "triggers[0].params.cron"],
          [trigger({ status: "online" }), "triggers[0].params.status"],
          [trigger({ compare_val: "5" }), "triggers[0].params.compare_type"],
          [trigger({ ...temperature, compare_type: ">" }), "triggers[0].params.compare_val"],
          [trigger({ ...temperature, compare_type: "~", compare_val: "5" }), "triggers[0].params.compare_type"],
          [trigger({ ...temperature, compare_type: ">", compare_val: 5 }), "triggers[0].params.compare_val"],
          [trigger({ ...temperature, compare_type: "between", compare_val: "5" }), "triggers[0].params.compare_val"],
          [trigger({ ...temperature, compare_type: "in", compare_val: "" }), "triggers[0].params.compare_val"],
          [trigger({ ...temperature, compare_type: "in", compare_val: "[]" }), "triggers[0].params.compare_val"],
          [trigger({ ...temperature, compare_type: ">", compare_val: "warm" }), "triggers[0].params.compare_val"],
          [trigger({ ...temperature, compare_type: "like", compare_val: "1%" }), "triggers[0].params.compare_type"],
          [
            trigger({ property_id: "power", compare_type: ">", compare_val: "0" }),
            "triggers[0].params.compare_type"
          ],
          [
            trigger({ property_id: "color", compare_type: "==", compare_val: "1" }),
            "triggers[0].params.compare_type"
          ],
          [trigger({ event_id: "unknown" }, "trigger/device/event"), "triggers[0].params.event_id"],
          [
            trigger({ event_id: "alarm", compare_type: ">", compare_val: "1" }, "trigger/device/event"),
            "triggers[0].params.property_id"
          ],
          [
            trigger(
              { event_id: "alarm", property_id: "x", compare_type: ">", compare_val: "1" },
              "trigger/device/event"
            ),
            "triggers[0].params.property_id"
          ],
          [trigger({ status: "unactive" }, "trigger/device/status"), "triggers[0].params.status"],
          [trigger({ status: "*", status_duration: 5 }, "trigger/device/status"), "triggers[0].params.status"],
          [
            trigger({ status: "online", status_duration: 43_201 }, "trigger/device/status"),
            "triggers[0].params.status_duration"
          ],
          [trigger({}, "trigger/cron"), "triggers[0].params.cron"],
          [trigger({ cron: "every day" }, "trigger/cron"), "triggers[0].params.cron"],
          [trigger({ cron: "0 0 0 31 2 *" }, "trigger/cron"), "triggers[0].params.cron"],
          [trigger({ cron: "* * * * *", time_zone: "Mars" }, "trigger/cron"), "triggers[0].params.time_zone"],
          [trigger({ cron: "* * * * *", time_zone: "+02:00" }, "trigger/cron"), "triggers[0].params.time_zone"],
          [trigger({ cron: "* * * * *", time_zone: 2 }, "trigger/cron"), "triggers[0].params.time_zone"],
          [trigger({ cron: "* * * * *", ...temperature }, "trigger/cron"), "triggers[0].params.property_id"],
          [condition("condition/device/status", { status_duration: -1 }), "conditions[0].params.status_duration"],
          [condition("condition/time/range", {}), "conditions[0].params.time_range"],
          [
            condition("condition/time/range", { time_range: { start_timestamp: 5, end_timestamp: 4 } }),
            "conditions[0].params.time_range"
          ],
          ...[
            [{ start: "24:00", end: "06:00" }, "start"],
            [{ start: "22:00" }, "end"],
            [{ start: "22:00", end: "06:00", days: ["weekend"] }, "days[0]"],
            [{ start: "22:00", end: "06:00", time_zone: "Mars" }, "time_zone"]
          ].map(([params, name]) =>
            [
              { conditions: [{ URI: "condition/time/window", params }] },
              `conditions[0].params.${name as string}`
            ] as const
          ),
          [action("action/delay", {}), "actions[0].params.seconds"],
          [action("action/delay", { seconds: 43_201 }), "actions[0].params.seconds"],
          [webhook("https://example.com", { body: "{{secret}}" }), "actions[0].params.body"],
          [webhook("https://example.com", { body: "text" }), "actions[0].params.body"],
          [
            action("action/device/property", { device_id: "unknown", items: { power: 1 } }),
            "actions[0].params.device_id"
          ],
          [action("action/device/property", { device_id }), "actions[0].params.items"],
          [action("action/device/property", { device_id, items: { power: 7 } }), "actions[0].params.items.power"],
          [
            action("action/device/property", { device_id, items: { temperature: 7 } }),
            "actions[0].params.items.temperature"
          ],
          [
            action("action/device/property", { device_id, property_id: "color", items: { power: 1 } }),
            "actions[0].params.items"
          ],
          [action("action/device/service", { device_id }), "actions[0].params.service_id"],
          [action("action/device/service", { device_id, service_id: "unknown" }), "actions[0].params.service_id"],
          [action("action/device/service", { device_id, service_id: "wait" }), "actions[0].params.service_id"],
          [action("action/rule", { scene_id: "unknown" }), "actions[0].params.scene_id"],
          [action("action/webhook", { method: "POST" }), "actions[0].params.URL"],
          [action("action/webhook", { URL: "https://example.com" }), "actions[0].params.method"],
          [webhook("https://example.com", { method: "TRACE" }), "actions[0].params.method"],
          [webhook("https://example.com", { request_timeout: 61 }), "actions[0].params.request_timeout"],
          ...[
            "file:///etc/passwd",
            "http://127.0.0.1/x",
            "http://[::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://2130706433/",
            "http://0177.0.0.1/",
            "http://localhost:8080/",
            "http://169.254.169.254/latest/meta-data"
          ].map((url) => [webhook(url), "actions[0].params.URL"] as const),
          [{ actions: Array.from({ length: 51 }, () => set(device, { power: 1 })) }, "actions"]
        ]
        for (const [body, ...fields] of cases) {
          assert.deepStrictEqual(yield* refusal(body), [400, 40001, ...fields], JSON.stringify(body))
        }
        // All that is wrong at once.
        const both = { ...trigger({ property_id: "unknown" }), ...webhook("http://10.0.0.1") }
        assert.deepStrictEqual(yield* refusal(both), [
          400,
          40001,
          "triggers[0].params.property_id",
          "actions[0].params.URL"
        ])
      }))

    it.effect("takes parameters that are empty for left out, and the device of a timer", () =>
      Effect.gen(function*() {
        const device = yield* newDevice
        const { device_name, product_key } = device
        const { body } = yield* create({
          triggers: [
            property(device, { type: "trigger/device/property", event_id: "", status: "", cron: "" }),
            { URI: "trigger/device/property", params: { product_key, device_name: "*", compare_type: "" } },
            { URI: "trigger/cron", params: { product_key, device_name, cron: "* * * * * *" } }
          ]
        })
        assert.strictEqual(body.code, 0, body.message)
        assert.deepStrictEqual(body.data.triggers[0], property(device))
        assert.deepStrictEqual(body.data.triggers[1].params, { product_key, device_name: "*", property_id: "*" })
        yield* call("DELETE", `/rule-engine/scenes/${body.data.id}`)
      }))

    it.effect("takes conditions and actions that the application has added", () =>
      Effect.gen(function*() {
        const custom = {
          conditions: [{ URI: "condition/acme/on-duty", params: { team: "night" } }],
          actions: [{ URI: "action/acme/page", params: { team: "night", urgent: true } }]
        }
        const id = yield* newScene(custom)
        assert.deepInclude((yield* call("GET", `/rule-engine/scenes/${id}`)).body.data, custom)
        yield* call("POST", `/rule-engine/scenes/${id}/actions`)
        const { actions, conditions } = yield* latest(id)
        assert.deepInclude(conditions[0], {
          ...custom.conditions[0],
          verdict: "holds",
          value: "Kim",
          source: "roster",
          time: "",
          reason: "Kim of night is on duty"
        })
        assert.deepInclude(actions[0], { ...custom.actions[0], status: "succeeded", detail: "Paged night" })
        assert.deepStrictEqual(
          yield* refusal({
            conditions: [{ URI: "condition/acme/rain", params: {} }],
            actions: [{ URI: "action/acme/page", params: { urgent: 5 } }]
          }),
          [400, 40001, "conditions[0].URI", "actions[0].params.team", "actions[0].params.urgent"]
        )
      }))

    it.effect("OpenAPI shows one variant for each URI, in what is sent and what is read", () =>
      Effect.gen(function*() {
        const { body } = yield* call("GET", "//openapi.json", { key: null })
        const { components, paths } = body as unknown as OpenApiDocument
        const uris = (name: string) =>
          components.schemas[name]!.anyOf.flatMap(({ properties: { URI } }) => URI.enum ?? [URI.type])
        assert.deepStrictEqual(uris("SceneTrigger"), [
          "trigger/device/property",
          "trigger/device/event",
          "trigger/device/status",
          "trigger/cron"
        ])
        assert.deepStrictEqual(uris("SceneCondition").slice(-2), ["condition/time/window", "string"])
        assert.deepStrictEqual(uris("SceneAction").slice(-2), ["action/delay", "string"])
        for (const [path, method] of [["", "post"], ["/{id}", "put"]] as const) {
          const draft = paths[`/openapi/v1/rule-engine/scenes${path}`]![method]!
          const { triggers } = draft.requestBody.content["application/json"].schema.properties
          assert.deepInclude(triggers.anyOf[0], { items: { $ref: "#/components/schemas/SceneTrigger" }, maxItems: 10 })
        }
      }))

    it.effect("says why a scene has fired, and why not", () =>
      Effect.gen(function*() {
        const device = yield* newDevice
        const { device_id, device_name, product_key } = device
        const id = yield* newScene({
          triggers: [property(device)],
          conditions: [{
            URI: "condition/device/property",
            params: { product_key, device_name: "*", property_id: "power", compare_type: "==", compare_val: "0" }
          }],
          actions: [set(device, { power: 1 })]
        })
        yield* uplink(device, "PostProperty", { body: { id: "1", params: { temperature: 31 } } })
        const refused = yield* latest(id)
        assert.deepInclude(refused, {
          status: "not_met",
          reason: "Condition 1 does not hold: The device has not reported power",
          actions: []
        })
        yield* uplink(device, "PostProperty", { body: { id: "1", params: { temperature: 32, power: false } } })
        const fired = yield* eventually(latest(id), { until: ({ status }) => status !== "not_met" })
        assert.strictEqual(fired.status, "succeeded")
        assert.deepInclude(fired.triggers[0], {
          ...property(device),
          verdict: "holds",
          value: 32,
          previous: 31,
          source: "report",
          reason: "temperature is 32; wanted: > 30"
        })
        assert.deepInclude(fired.conditions[0], { verdict: "holds", value: 0, source: "shadow" })
        assert.deepInclude(fired.actions[0], { ...set(device, { power: 1 }), status: "succeeded", attempts: 1 })
        assert.deepInclude(fired.event, { type: "property", product_key, device_name, device_id })
        for (const time of [fired.triggered_at, fired.triggers[0].time, fired.actions[0].time]) {
          assert.match(time, /^\d{4}-\d\d-\d\dT.*Z$/)
        }
        // The command is in the ledger of the device.
        const messages = (yield* call("GET", `/things/${device_id}/messages`)).body.data.results
        assert.deepInclude(messages[0], { params: { power: 1 }, service_id: "" })
        const { total } = (yield* call("GET", `/rule-engine/scenes/${id}/executions?page_size=1`)).body.data
        assert.strictEqual(total, 2)
      }))

    it.effect("explains what an event would do", () =>
      Effect.gen(function*() {
        const device = yield* newDevice
        const { device_name, product_key } = device
        const id = yield* newScene({
          triggers: [
            property(device),
            { URI: "trigger/device/event", params: { product_key, device_name: "*", event_id: "alarm" } },
            { URI: "trigger/device/status", params: { product_key, device_name: "*", status: "offline" } },
            { URI: "trigger/cron", params: { cron: "0 0 1 1 *" } }
          ],
          actions: [set(device, { power: 1 })]
        })
        const explain = (body: object) =>
          Effect.map(call("POST", `/rule-engine/scenes/${id}/explain`, { body }), ({ body }) => body)
        const of = { product_key, device_name }
        const samples: ReadonlyArray<readonly [object, boolean]> = [
          [{ type: "property", ...of, properties: { temperature: 31 } }, true],
          [{ type: "property", ...of, properties: { temperature: 30, power: 1 } }, false],
          [{ type: "event", ...of, event_id: "alarm", value: { level: 1 } }, true],
          [{ type: "event", ...of, event_id: "other" }, false],
          [{ type: "status", ...of, status: "offline" }, true],
          [{ type: "status", ...of, status: "online" }, false],
          [{ type: "cron" }, true]
        ]
        for (const [sample, fires] of samples) {
          const { data } = yield* explain(sample)
          assert.deepStrictEqual([data.fires, data.actions.length], [fires, fires ? 1 : 0], JSON.stringify(sample))
          assert.lengthOf(data.triggers, 4)
        }
        const { data } = yield* explain({ type: "property", ...of, properties: { temperature: 30 } })
        assert.deepStrictEqual([data.reason, data.triggers[0].reason], [
          "No trigger has fired",
          "temperature is 30; wanted: > 30"
        ])
        assert.strictEqual(
          (yield* explain({ type: "status", product_key, device_name: "x", status: "online" })).code,
          40402
        )
        assert.strictEqual((yield* explain({ type: "cron", cron_id: "x" })).code, 40001)
        const unknown = yield* explain({ type: "rain" })
        assert.deepStrictEqual(
          [unknown.code, unknown.message],
          [40001, "Expected an event of type property, event, status or cron"]
        )
        assert.deepStrictEqual((yield* call("GET", `/rule-engine/scenes/${id}/executions`)).body.data.results, [])
      }))

    it.effect("a scene runs by hand; a webhook that may not go out fails and says so", () =>
      Effect.gen(function*() {
        const device = yield* newDevice
        const id = yield* newScene({
          status: "disable",
          actions: [set(device, { power: 1 }), {
            URI: "action/webhook",
            params: { URL: "http://hook.invalid/", method: "POST" }
          }]
        })
        const { body } = yield* call("POST", `/rule-engine/scenes/${id}/actions`)
        assert.deepStrictEqual(Object.keys(body.data), ["execution_id"])
        const execution = yield* eventually(
          Effect.map(call("GET", `/rule-engine/scenes/${id}/executions`), ({ body }) => body.data.results[0]),
          { until: ({ actions }) => actions[1]?.attempts > 0 }
        )
        assert.strictEqual(execution.execution_id, body.data.execution_id)
        assert.deepInclude(execution.event, { type: "manual" })
        assert.strictEqual(execution.actions[0].status, "succeeded")
        assert.deepInclude(execution.actions[1], { status: "pending", attempts: 1 })
        assert.notStrictEqual(execution.actions[1].next_time, "")
        yield* call("DELETE", `/rule-engine/scenes/${id}`)
      }))

    it.effect("scenes that run each other end with the budget of the first, and say so", () =>
      Effect.gen(function*() {
        const run = (id: string) => ({ URI: "action/rule", params: { scene_id: id } })
        const third = yield* newScene({})
        const second = yield* newScene({ actions: Array.from({ length: 50 }, () => run(third)) })
        const { body: { data } } = yield* create({ actions: Array.from({ length: 50 }, () => run(second)) })
        assert.deepStrictEqual(data.warnings, [
          "The scene may be stopped: it and the scenes that it runs have more than 500 actions together"
        ])
        const { body } = yield* call("POST", `/rule-engine/scenes/${data.id}/actions`)
        const execution = yield* latest(data.id)
        assert.strictEqual(execution.status, "limited")
        assert.deepInclude(execution.actions[49], {
          status: "limited",
          detail: `The scenes that execution ${body.data.execution_id} has led to have more than 500 actions together`
        })
        // Each of the second counts with its fifty actions.
        const { body: { data: { total } } } = yield* call("GET", `/rule-engine/scenes/${second}/executions`)
        assert.isAtMost(total, 9)
      }))

    it.effect("warns of scenes that fire themselves or each other", () =>
      Effect.gen(function*() {
        const device = yield* newDevice
        const { device_id, device_name } = device
        const watch = (val: string) => property(device, { property_id: "power", compare_type: "==", compare_val: val })
        const warnings = (name: string, body: object) =>
          Effect.map(create({ name: `${name} ${device_id}`, ...body }), ({ body }) => body.data.warnings)
        assert.deepStrictEqual(
          yield* warnings("On", { triggers: [watch("1")], actions: [set(device, { power: 0 })] }),
          []
        )
        assert.deepStrictEqual(
          yield* warnings("Off", { triggers: [watch("0")], actions: [set(device, { power: 1 })] }),
          [`The scene may fire itself: Off ${device_id} (${device_name} power) → On ${device_id} (${device_name} power) → Off ${device_id}`]
        )
      }))

    it.effect("the key of webhooks is read and replaced", () =>
      Effect.gen(function*() {
        const before = (yield* call("GET", "/rule-engine/webhook-key")).body.data
        assert.match(before.key, /^whsec_[A-Za-z0-9+/]{43}=$/)
        assert.deepStrictEqual((yield* call("GET", "/rule-engine/webhook-key")).body.data, before)
        const after = (yield* call("POST", "/rule-engine/webhook-key")).body.data
        assert.notStrictEqual(after.key, before.key)
        assert.notStrictEqual(after.previous_until, "")
        assert.deepStrictEqual((yield* call("GET", "/rule-engine/webhook-key")).body.data, after)
      }))
  })
}
