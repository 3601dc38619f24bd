import { AllowPrivateWebhooks } from "@device-cloud/core"
import { eventually } from "@device-cloud/testing"
import { call, callTo, createProduct, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { storages } from "../../../vitest.storages.ts"
import { givenFor, makeGiven, newTenant, operations } from "./fuzz/FuzzedTenant.ts"

/** The texts under names that say that they are secret, anywhere in a response. */
const secretsIn = (value: unknown, name = ""): ReadonlyArray<string> => {
  if (typeof value === "string") {
    return /secret|password|app_key|network_key|^key$|^URL$/.test(name) && value !== ""
      ? [value]
      : []
  }
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([member, inner]) => secretsIn(inner, member))
}

const sceneCalling = (URL: string) => ({
  name: "Calls",
  status: "enable",
  triggers: [],
  conditions: [],
  actions: [{ URI: "action/webhook", params: { URL, method: "POST", body: "{\"token\":\"body-4711\"}" } }]
})

/** The origin of a receiver that refuses each webhook and says what it was asked for. */
const receiver = Effect.acquireRelease(
  Effect.callback<Server>((resume) => {
    const server = createServer(({ url }, response) => response.writeHead(404).end(`Cannot POST ${url}`))
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  }),
  (server) => Effect.sync(() => server.close())
).pipe(Effect.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`))

/** A tenant that has each kind of secret, the secrets, and a path for each GET route. */
const tenantWithSecrets = Effect.gen(function*() {
  const tenant = yield* newTenant
  const { keys } = tenant
  const given = yield* makeGiven(tenant, true)
  const cloudGateway = yield* createProduct({ data_source: 3 }, { key: keys.admin })
  const account = { clientid: "client", username: "user", password: "gateway-password-4711" }
  yield* call("POST", `/products/${cloudGateway.product_key}/things`, { key: keys.admin, body: account })
  yield* call("POST", "/rule-engine/webhook-key", { key: keys.admin })
  const webhook = sceneCalling("https://hook.invalid/services/T0?token=1")
  const { id } = (yield* call("POST", "/rule-engine/scenes", { key: keys.admin, body: webhook })).body.data
  const paths = (yield* operations).filter(({ method, path, secured }) =>
    // The stream of events does not end: it has a test of its own below.
    method === "GET" && secured && !path.endsWith("/events")
  ).map((operation) => {
    const { values } = givenFor(operation, given)
    const valueOf = (parameter: string) => {
      const value = parameter === "project_id" ? values["own_project_id"] : values[parameter]
      return encodeURIComponent(String(Array.isArray(value) ? value[0] : value))
    }
    const path = operation.path.slice("/openapi/v1".length).replaceAll(/\{(\w+)\}/g, (_, name) => valueOf(name))
    const needed = operation.parameters.filter(({ in: place, required }) => place === "query" && required)
      .map(({ name }) => `${name}=${valueOf(name)}`)
    const paged = operation.parameters.some(({ name }) => name === "page_size") ? ["page_size=100"] : []
    const query = [...needed, ...paged].join("&")
    return query === "" ? path : `${path}?${query}`
  })
  const csv = `/products/${String(given.values["product_key"])}/batch-things/${
    String(given.values["batch_id"])
  }?format=csv`
  const secrets = new Set([given.deviceSecret, given.productSecret, account.password, ...Object.values(keys)])
  return { given, keys, paths: [...paths, csv, `/rule-engine/scenes/${id}`], csv, secrets }
})

for (const [name, stores] of storages) {
  layer(testApi(stores).pipe(Layer.provide(Layer.succeed(AllowPrivateWebhooks, true))), { excludeTestServices: true })(
    `secrets on ${name}`,
    (it) => {
      it.effect("no GET route shows a secret to a viewer, and the fields stay", () =>
        Effect.gen(function*() {
          const { csv, keys, paths, secrets } = yield* tenantWithSecrets
          const known = new Set(secrets)
          // What an admin reads is what a viewer must not.
          for (const path of paths) {
            const { body, text } = yield* call("GET", path, { key: keys.admin })
            for (const secret of secretsIn(body.data)) known.add(secret)
            if (path === csv) { for (const row of text.trim().split("\r\n").slice(1)) known.add(row.split(",")[2]!) }
          }
          known.delete("********")
          // Of devices, products, the cloud gateway's account, the mesh network, the webhooks, and the access keys.
          assert.isAbove(known.size, 12)
          let masked = 0
          for (const path of paths) {
            const { body, text } = yield* call("GET", path, { key: keys.viewer })
            for (const secret of known) assert.notInclude(text, secret, path)
            masked += secretsIn(body.data).filter((value) => value === "********").length
          }
          assert.isAbove(masked, 12)
        }))

      it.effect("a viewer reads the host of a webhook alone; who reads the URL stands in the audit log", () =>
        Effect.gen(function*() {
          const { keys } = yield* newTenant
          const origin = yield* receiver
          const scene = sceneCalling(`${origin}/services/path-4711?token=query-4711`)
          const { id } = (yield* call("POST", "/rule-engine/scenes", { key: keys.admin, body: scene })).body.data
          const path = `/rule-engine/scenes/${id}`
          yield* call("POST", `${path}/actions`, { key: keys.admin })
          yield* eventually(call("GET", `${path}/executions`, { key: keys.admin }), {
            until: ({ text }) => text.includes("Answered with 404: Cannot POST /services/path-4711")
          })
          for (const shown of [path, `${path}/executions`, "/rule-engine/scenes"]) {
            const { text } = yield* call("GET", shown, { key: keys.viewer })
            assert.include(text, `"${origin}/…"`, shown)
            assert.notInclude(text, "4711", shown)
          }
          assert.include((yield* call("GET", path, { key: keys.operator })).text, `${origin}/services/path-4711?token=`)
          const { body } = yield* call("GET", "/audit?action=scenes.getScene", { key: keys.admin })
          assert.deepStrictEqual(
            body.data.results.map((
              entry: Readonly<Record<string, unknown>>
            ) => [entry["key_id"], entry["resource_id"]]),
            [[keys.operator.slice(4, 16), id]]
          )
        }))

      it.effect("the stream of events shows no secret", () =>
        Effect.gen(function*() {
          const { given, keys, secrets } = yield* tenantWithSecrets
          const url = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
          const response = yield* Effect.promise(() =>
            fetch(`${url}/openapi/v1/events`, { headers: { authorization: `Bearer ${keys.viewer}` } })
          )
          const path = `/products/${String(given.values["product_key"])}/things`
          const { body } = yield* callTo(url, "POST", path, { key: keys.operator })
          const text = yield* Effect.promise(async () => {
            let read = ""
            for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
              read += chunk
              if (read.includes(body.data.device_id)) return read
            }
            return read
          })
          assert.include(text, "event: lifecycle")
          for (const secret of [...secrets, body.data.device_secret]) assert.notInclude(text, secret)
        }))

      it.effect("triples as CSV need the role operator", () =>
        Effect.gen(function*() {
          const { csv, keys } = yield* tenantWithSecrets
          const refused = yield* call("GET", csv, { key: keys.viewer })
          assert.deepStrictEqual([refused.status, refused.body.code], [403, 40300])
          assert.strictEqual((yield* call("GET", csv, { key: keys.operator })).status, 200)
          assert.strictEqual((yield* call("GET", csv.replace("csv", "json"), { key: keys.viewer })).status, 200)
        }))

      it.effect("an operator reads the secrets", () =>
        Effect.gen(function*() {
          const { given, keys } = yield* tenantWithSecrets
          const { body } = yield* call("GET", `/things/${String(given.values["device_id"])}/detail`, {
            key: keys.operator
          })
          assert.strictEqual(body.data.device_info.device_secret, given.deviceSecret)
          assert.strictEqual(body.data.device_info.product_secret, given.productSecret)
        }))
    }
  )
}
