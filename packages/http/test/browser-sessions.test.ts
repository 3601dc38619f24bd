import { parseTrustedProxies, TrustedProxies } from "@device-cloud/core"
import { eventually } from "@device-cloud/testing"
import { call, type CallOptions, createDevice, createProduct, ownerKey, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { HttpServer } from "effect/http"
import { request as httpRequest } from "node:http"
import { storages } from "../../../vitest.storages.ts"

const proxies = Result.getOrThrow(parseTrustedProxies(["127.0.0.1"]))

/** Over TLS to a proxy in front. */
const tls = { "x-forwarded-proto": "https", "x-forwarded-for": "192.0.2.1" }
const guarded = { "x-csrf-protection": "1" }

const newKey = (body: object = {}) =>
  Effect.map(
    call("POST", "/access-keys", { body: { name: "browser", role: "operator", ...body } }),
    ({ body }) => body.data as { readonly id: string; readonly key: string }
  )

const signIn = (access_key: unknown, headers: Readonly<Record<string, string>> = {}) =>
  call("POST", "/browser-sessions", { key: null, body: { access_key }, headers: { ...guarded, ...headers } })

const setCookie = (response: { readonly headers: Readonly<Record<string, unknown>> }): string =>
  String((response.headers["set-cookie"] as ReadonlyArray<string> | undefined)?.[0] ?? "")

/** The cookie of a new session, as a browser sends it. */
const cookieOf = (accessKey: string, headers: Readonly<Record<string, string>> = {}) =>
  Effect.map(signIn(accessKey, headers), (response) => {
    assert.strictEqual(response.body.code, 0, response.body.message)
    return setCookie(response).split(";", 1)[0]!
  })

/** Calls as a page of this server does. */
const browse = (cookie: string, method: string, path: string, { headers, ...options }: CallOptions = {}) =>
  call(method, path, { key: null, ...options, headers: { cookie, ...guarded, ...headers } })

const codeOf = (cookie: string, method = "GET", path = "/products", options: CallOptions = {}) =>
  Effect.map(browse(cookie, method, path, options), ({ body }) => body.code)

for (const [name, stores] of storages) {
  layer(testApi(stores).pipe(Layer.provide(Layer.succeed(TrustedProxies, proxies))), { excludeTestServices: true })(
    `browser sessions on ${name}`,
    (it) => {
      it.effect("a browser signs in with an access key, and is known by a cookie until it signs out", () =>
        Effect.gen(function*() {
          const { id, key } = yield* newKey({ scopes: { actions: ["devices:read"] } })
          const response = yield* signIn(key)
          const { expires_at, ...who } = response.body.data
          assert.deepStrictEqual(who, {
            project_id: "default",
            project_name: "default",
            key_id: id,
            key_name: "browser",
            role: "operator",
            scopes: { actions: ["devices:read"] }
          })
          const lasts = Date.parse(expires_at) - Date.now()
          assert.isTrue(lasts > 11.9 * 3_600_000 && lasts <= 12 * 3_600_000)
          assert.match(
            setCookie(response),
            /^device-cloud-session=[\w-]{43}; Max-Age=43200; Path=\/; HttpOnly; SameSite=Strict$/
          )
          assert.strictEqual(response.headers["cache-control"], "no-store")
          assert.notInclude(response.text, key)
          const cookie = setCookie(response).split(";", 1)[0]!
          const current = yield* browse(cookie, "GET", "/browser-sessions/current")
          assert.deepStrictEqual(current.body.data, response.body.data)
          const out = yield* browse(cookie, "DELETE", "/browser-sessions/current")
          assert.deepStrictEqual([out.body.code, setCookie(out)], [
            0,
            "device-cloud-session=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict"
          ])
          assert.strictEqual(yield* codeOf(cookie, "GET", "/things"), 40100)
          assert.strictEqual((yield* browse(cookie, "GET", "/browser-sessions/current")).body.code, 40100)
        }))

      it.effect("over TLS the cookie is Secure and of this host alone", () =>
        Effect.gen(function*() {
          const response = yield* signIn((yield* newKey()).key, tls)
          assert.match(
            setCookie(response),
            /^__Host-device-cloud-session=[\w-]{43}; Max-Age=43200; Path=\/; HttpOnly; Secure; SameSite=Strict$/
          )
          const cookie = setCookie(response).split(";", 1)[0]!
          assert.strictEqual(yield* codeOf(cookie, "GET", "/products", { headers: tls }), 0)
          // A page without TLS can set the plain name, and does not sign anybody in with it.
          const plain = cookie.replace("__Host-", "")
          assert.strictEqual(yield* codeOf(plain, "GET", "/products", { headers: tls }), 40100)
        }))

      it.effect("has the role, the scopes, the project and the addresses of its key", () =>
        Effect.gen(function*() {
          const { product_key } = yield* createProduct()
          const viewer = yield* cookieOf((yield* newKey({ role: "viewer" })).key)
          assert.deepStrictEqual(
            [yield* codeOf(viewer), yield* codeOf(viewer, "DELETE", `/products/${product_key}`)],
            [0, 40300]
          )
          const { device_id } = yield* createDevice(product_key)
          const { body } = yield* browse(viewer, "GET", `/things/${device_id}/detail`)
          assert.strictEqual(body.data.device_info.device_secret, "********")
          const narrow = yield* cookieOf((yield* newKey({ scopes: { products: [product_key] } })).key)
          assert.deepStrictEqual(
            [yield* codeOf(narrow, "GET", `/products/${product_key}`), yield* codeOf(narrow, "GET", "/things")],
            [0, 40300]
          )
          assert.strictEqual(yield* codeOf(narrow, "GET", "/browser-sessions/current"), 0)
          const { key } = yield* newKey({ addresses: ["192.0.2.0/24"] })
          assert.strictEqual((yield* signIn(key)).body.code, 40300)
          const inside = yield* cookieOf(key, tls)
          assert.deepStrictEqual(
            [
              yield* codeOf(inside, "GET", "/products", { headers: tls }),
              yield* codeOf(inside, "GET", "/products", { headers: { ...tls, "x-forwarded-for": "198.51.100.1" } })
            ],
            [0, 40300]
          )
        }))

      it.effect("ends when its key is deleted, and an open stream with it", () =>
        Effect.gen(function*() {
          const { id, key } = yield* newKey()
          const [first, second] = [yield* cookieOf(key), yield* cookieOf(key)]
          const streams = yield* Effect.forEach([first, second], openStream)
          yield* browse(first, "DELETE", "/browser-sessions/current")
          yield* eventually(Effect.sync(() => assert.deepStrictEqual(streams.map(({ ended }) => ended), [true, false])))
          assert.deepStrictEqual([yield* codeOf(first), yield* codeOf(second)], [40100, 0])
          yield* call("DELETE", `/access-keys/${id}`)
          assert.strictEqual(yield* codeOf(second), 40100)
          yield* eventually(Effect.sync(() => assert.isTrue(streams[1]!.ended)))
        }))

      it.effect("a request that may be forged changes nothing", () =>
        Effect.gen(function*() {
          const { key } = yield* newKey()
          const cookie = yield* cookieOf(key)
          const { product_key } = yield* createProduct()
          const host = new URL(HttpServer.formatAddress((yield* HttpServer.HttpServer).address)).host
          const remove = (headers: Readonly<Record<string, string>>) =>
            Effect.map(call("DELETE", `/products/${product_key}`, { key: null, headers }), ({ body, status }) => [
              status,
              body.code
            ])
          for (
            const headers of [
              {},
              { "x-csrf-protection": "0" },
              { ...guarded, origin: "https://evil.example" },
              { ...guarded, origin: "null" },
              { ...guarded, origin: `http://${host}.evil.example` },
              { ...guarded, origin: `http://${host}`, "x-forwarded-proto": "https" }
            ]
          ) {
            const both = `${cookie}; __Host-${cookie}`
            assert.deepStrictEqual(yield* remove({ cookie: both, ...headers }), [403, 40304], JSON.stringify(headers))
            const { body } = yield* call("POST", "/browser-sessions", { key: null, body: { access_key: key }, headers })
            assert.strictEqual(body.code, 40304)
          }
          const file = yield* call("DELETE", "//objects/missing/file", { key: null, headers: { cookie } })
          assert.strictEqual(file.body.code, 40304)
          // Reads need no header, and what a key authenticates cannot be forged.
          assert.strictEqual(
            (yield* call("GET", `/products/${product_key}`, {
              key: null,
              headers: { cookie, origin: "https://evil.example" }
            })).body.code,
            0
          )
          assert.deepStrictEqual(yield* remove({ cookie, ...guarded, origin: `http://${host}` }), [200, 0])
          const other = (yield* createProduct()).product_key
          assert.strictEqual((yield* call("DELETE", `/products/${other}`, { headers: { cookie } })).body.code, 0)
        }))

      it.effect("an access key counts before a cookie", () =>
        Effect.gen(function*() {
          const cookie = yield* cookieOf((yield* newKey({ role: "viewer" })).key)
          assert.strictEqual(yield* codeOf(cookie, "GET", "/access-keys", { key: ownerKey }), 0)
          assert.strictEqual(yield* codeOf(cookie, "GET", "/products", { key: `${ownerKey}x` }), 40100)
          assert.strictEqual(yield* codeOf(cookie, "DELETE", "/browser-sessions/current", { key: ownerKey }), 40100)
          assert.strictEqual(yield* codeOf(cookie), 0)
        }))

      it.effect("an Idempotency-Key belongs to the session that used it", () =>
        Effect.gen(function*() {
          const { key } = yield* newKey()
          const post = (cookie: string) =>
            browse(cookie, "POST", "/device-groups", {
              body: { name: `Hall ${key.slice(4, 16)}` },
              headers: { "idempotency-key": key.slice(4, 16) }
            })
          const cookie = yield* cookieOf(key)
          const first = yield* post(cookie)
          assert.deepStrictEqual((yield* post(cookie)).body, first.body)
          assert.strictEqual((yield* post(yield* cookieOf(key))).body.code, 40900)
        }))

      it.effect("routes of devices take no cookie", () =>
        Effect.gen(function*() {
          const cookie = yield* cookieOf(ownerKey)
          const { product_key } = yield* createProduct()
          const { device_name } = yield* createDevice(product_key)
          const path = `/thing-uplink?product_key=${product_key}&device_name=${device_name}&action=PostProperty`
          const { status } = yield* browse(cookie, "POST", path, { body: { params: {} } })
          assert.isTrue(status === 400 || status === 401, String(status))
        }))

      it.effect("the audit log tells who signed in and out with which key, and who was refused", () =>
        Effect.gen(function*() {
          const { id, key } = yield* newKey()
          const cookie = yield* cookieOf(key)
          yield* call("DELETE", "/products/x", { key: null, headers: { cookie } })
          yield* browse(cookie, "DELETE", "/browser-sessions/current")
          yield* signIn(`${key.slice(0, -1)}${key.endsWith("A") ? "B" : "A"}`)
          const told = Effect.map(
            call("GET", `/audit?key_id=${id}`),
            ({ body }) =>
              body.data.results.map((entry: Readonly<Record<string, unknown>>) => [
                entry["action"],
                entry["resource_id"],
                entry["result"]
              ])
          )
          yield* eventually(Effect.flatMap(told, (entries) =>
            Effect.sync(() =>
              assert.sameDeepMembers(entries, [
                ["browserSessions.signIn", id, 0],
                ["products.deleteProduct", "x", 40304],
                ["browserSessions.signOut", "", 0],
                ["browserSessions.signIn", "", 40100]
              ])
            )))
        }))
    }
  )
}

/** An event stream of a browser. `ended` says whether the server has ended it. */
const openStream = (cookie: string) =>
  Effect.gen(function*() {
    const url = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
    const stream = { ended: false }
    yield* Effect.acquireRelease(
      Effect.callback<ReturnType<typeof httpRequest>>((resume) => {
        const request = httpRequest(`${url}/openapi/v1/events`, { agent: false, headers: { cookie } }, (response) => {
          assert.strictEqual(response.statusCode, 200)
          response.resume().on("close", () => {
            stream.ended = true
          }).on("error", () => {})
          resume(Effect.succeed(request))
        })
        request.on("error", () => {}).end()
      }),
      (request) => Effect.sync(() => request.destroy())
    )
    return stream
  })

layer(testApi(storages[0][1]).pipe(Layer.provide(Layer.succeed(TrustedProxies, proxies))), {
  excludeTestServices: true
})("wrong keys at sign-in", (it) => {
  it.effect("are refused by address after fifty in a row, before the key is looked at", () =>
    Effect.gen(function*() {
      const from = (address: string) => ({ "x-forwarded-for": address })
      const guess = signIn(`${ownerKey.slice(0, -1)}1`, from("192.0.2.1"))
      for (let i = 0; i < 49; i++) assert.strictEqual((yield* guess).body.code, 40100)
      yield* cookieOf(ownerKey, from("192.0.2.1"))
      const codes = yield* Effect.all(Array.from({ length: 60 }, () => guess), { concurrency: 10 })
      assert.strictEqual(codes.filter(({ body }) => body.code === 40100).length, 50)
      const refused = yield* signIn(ownerKey, from("192.0.2.1"))
      assert.deepStrictEqual([refused.status, refused.body.code], [429, 42900])
      assert.isAbove(Number(refused.headers["retry-after"]), 0)
      assert.strictEqual((yield* signIn(ownerKey, from("192.0.2.2"))).body.code, 0)
      for (const wrong of ["", "x", 7]) {
        assert.include([40100, 40001], (yield* signIn(wrong, from("192.0.2.3"))).body.code)
      }
    }))
})

layer(testApi(storages[0][1], { publicUrl: "https://cloud.example.com", corsOrigins: ["https://app.example.com"] }), {
  excludeTestServices: true
})("pages of other origins", (it) => {
  it.effect("a page at the public address is of this server; one that CORS admits gets no credentials", () =>
    Effect.gen(function*() {
      const cookie = yield* cookieOf(ownerKey)
      const codeFrom = (origin: string) => codeOf(cookie, "DELETE", "/products/x", { headers: { origin } })
      assert.deepStrictEqual(
        [yield* codeFrom("https://cloud.example.com"), yield* codeFrom("https://app.example.com")],
        [40401, 40304]
      )
      const { headers } = yield* call("OPTIONS", "/products", {
        key: null,
        headers: { origin: "https://app.example.com", "access-control-request-method": "DELETE" }
      })
      assert.isUndefined(headers["access-control-allow-credentials"])
      assert.notInclude(String(headers["access-control-allow-headers"]).toLowerCase(), "csrf")
    }))
})
