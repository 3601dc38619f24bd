import { call, callTo, createProduct, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { HttpServer } from "effect/http"
import { storages } from "../../../vitest.storages.ts"
import { givenFor, makeGiven, newTenant, operations } from "./fuzz/FuzzedTenant.ts"

/** The texts under names that say that they are secret, anywhere in a response. */
const secretsIn = (value: unknown, name = ""): ReadonlyArray<string> => {
  if (typeof value === "string") return /secret|password|app_key|^key$/.test(name) && value !== "" ? [value] : []
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([member, inner]) => secretsIn(inner, member))
}

/** A tenant that has each kind of secret, the secrets, and a path for each GET route. */
const tenantWithSecrets = Effect.gen(function*() {
  const tenant = yield* newTenant
  const { keys } = tenant
  const given = yield* makeGiven(tenant, true)
  const cloudGateway = yield* createProduct({ data_source: 3 }, { key: keys.admin })
  const account = { clientid: "client", username: "user", password: "gateway-password-4711" }
  yield* call("POST", `/products/${cloudGateway.product_key}/things`, { key: keys.admin, body: account })
  yield* call("POST", "/rule-engine/webhook-key", { key: keys.admin })
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
  return { given, keys, paths: [...paths, csv], csv, secrets }
})

for (const [name, stores] of storages) {
  layer(testApi(stores), { excludeTestServices: true })(`secrets on ${name}`, (it) => {
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
  })
}
