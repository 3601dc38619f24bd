import { Mac, ReplayStore, UplinkTolerance } from "@device-cloud/core"
import * as StoragePg from "@device-cloud/storage-pg"
import { TestKeyRing } from "@device-cloud/testing"
import {
  call,
  callTo,
  createDevice,
  createProduct,
  type DeviceTriple,
  signedQuery,
  testApi,
  uplink
} from "@device-cloud/testing/http"
import { assert, it as test, layer } from "@effect/vitest"
import { Clock, Context, Effect, Layer } from "effect"
import { Hex } from "effect/encoding"
import { HttpServer } from "effect/http"
import { newDatabase, storages } from "../../../vitest.storages.ts"

const createTriple = Effect.fnUntraced(function*(fields: object = {}) {
  const { product_key } = yield* createProduct(fields)
  return (yield* createDevice(product_key)) as unknown as DeviceTriple
})

const body = { params: { a: 1 } }

const sha256 = (content: string | Buffer) =>
  Effect.map(Mac, (mac) => Hex.encode(mac.sha256(typeof content === "string" ? Buffer.from(content) : content)))

/** Sends a query with what signs it, and a body; returns the code and the message. */
const post = (
  device: DeviceTriple,
  query: Readonly<Record<string, string>>,
  content: unknown = body
) =>
  Effect.map(
    uplink(device, "PostProperty", {
      raw: JSON.stringify(content),
      query,
      headers: { "content-type": "application/json" }
    }),
    ({ body: { code, message } }) => [code, message] as const
  )

const codeOf = (...args: Parameters<typeof post>) => Effect.map(post(...args), ([code]) => code)

const signed = Effect.fnUntraced(function*(offset = 0, content: unknown = body) {
  const timestamp = String((yield* Clock.currentTimeMillis) + offset)
  return { timestamp, content_sha256: yield* sha256(JSON.stringify(content)) }
})

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`fresh signatures on ${name}`, (it) => {
    it.effect("a timestamp and the hash of the body are signed if they are sent, each alone too", () =>
      Effect.gen(function*() {
        const device = yield* createTriple()
        const both = yield* signed()
        const { content_sha256, timestamp } = both
        for (
          const query of [{}, both, { timestamp }, { content_sha256 }, {
            content_sha256: content_sha256.toUpperCase()
          }]
        ) {
          assert.strictEqual(yield* codeOf(device, query), 0)
        }
        // Who has seen the query changes, adds or leaves out nothing.
        const query: Readonly<Record<string, string>> = yield* signedQuery(device, "PostProperty", both)
        const send = (fields: Readonly<Record<string, string>>, content: unknown = body) =>
          Effect.map(
            call("POST", `/thing-uplink?${new URLSearchParams(fields).toString()}`, { key: null, body: content }),
            ({ body: { code, message } }) => ({ code, message })
          )
        const { content_sha256: _, ...withoutContent } = query
        const { timestamp: __, ...withoutTime } = query
        const plain = yield* signedQuery(device, "PostProperty")
        for (
          const changed of [
            withoutContent,
            withoutTime,
            { ...query, timestamp: String(Number(timestamp) + 1) },
            { ...plain, timestamp }
          ]
        ) {
          assert.strictEqual((yield* send(changed)).code, 40110)
        }
        assert.deepInclude(yield* send(query, { params: { a: 2 } }), {
          code: 40110,
          message: "content_sha256: expected the SHA-256 of the bytes of the body"
        })
        assert.strictEqual((yield* send(query)).code, 0)
      }))

    it.effect("a timestamp that is more than five minutes off does not count, and does not lock the device out", () =>
      Effect.gen(function*() {
        const device = yield* createTriple()
        for (const offset of [-301_000, 301_000, -1_000_000_000]) {
          for (let i = 0; i < 5; i++) {
            const [code, message] = yield* post(device, yield* signed(offset))
            assert.strictEqual(code, 40110)
            assert.match(message, /^timestamp: at most 300 seconds from \d+, the clock of the cloud$/)
          }
        }
        assert.strictEqual(yield* codeOf(device, yield* signed(-290_000)), 0)
        assert.strictEqual(yield* codeOf(device, yield* signed(290_000)), 0)
      }))

    it.effect("bytes and hex are hashed as they are sent", () =>
      Effect.gen(function*() {
        const device = yield* createTriple()
        for (
          const [raw, type] of [["0aff", "text/plain"], [
            Buffer.from("0aff", "hex"),
            "application/octet-stream"
          ]] as const
        ) {
          const query = { content_sha256: yield* sha256(raw) }
          const answer = yield* uplink(device, "PostHex", { raw, query, headers: { "content-type": type } })
          assert.strictEqual(answer.body.code, 0)
          const wrong = { content_sha256: yield* sha256("0afe") }
          const refused = yield* uplink(device, "PostHex", { raw, query: wrong, headers: { "content-type": type } })
          assert.strictEqual(refused.body.code, 40110)
        }
      }))

    it.effect("a product can require both", () =>
      Effect.gen(function*() {
        const { product_key, uplink_signature } = yield* createProduct({ uplink_signature: "timestamped" })
        assert.strictEqual(uplink_signature, "timestamped")
        const device = (yield* createDevice(product_key)) as unknown as DeviceTriple
        const { content_sha256, timestamp } = yield* signed()
        assert.deepStrictEqual(yield* post(device, {}), [40110, "timestamp: the product requires it"])
        assert.deepStrictEqual(yield* post(device, { timestamp }), [40110, "content_sha256: the product requires it"])
        assert.deepStrictEqual(yield* post(device, { content_sha256 }), [40110, "timestamp: the product requires it"])
        assert.strictEqual(yield* codeOf(device, { timestamp, content_sha256 }), 0)
        const { body: updated } = yield* call("PUT", `/products/${product_key}`, {
          body: { name: "n", dynamic_register: false, photo_url: "" }
        })
        assert.strictEqual(updated.code, 0)
        const read = yield* call("GET", `/products/${product_key}`)
        assert.strictEqual(read.body.data.product_info.uplink_signature, "timestamped")
        const odd = yield* call("PUT", `/products/${product_key}`, {
          body: { name: "n", dynamic_register: false, photo_url: "", uplink_signature: "never" }
        })
        assert.deepStrictEqual(Object.keys(odd.body.data.issues), ["uplink_signature"])
        assert.strictEqual((yield* createProduct()).uplink_signature, "any")
      }))

    it.effect("a product that requires both takes each random once, also by many requests at a time", () =>
      Effect.gen(function*() {
        const device = yield* createTriple({ uplink_signature: "timestamped" })
        const query = { random: "once1234", ...yield* signed() }
        const codes = yield* Effect.all(Array.from({ length: 8 }, () => codeOf(device, query)), {
          concurrency: "unbounded"
        })
        assert.deepStrictEqual(codes.toSorted((a, b) => a - b), [0, ...Array.from({ length: 7 }, () => 40110)])
        assert.strictEqual(yield* codeOf(device, { ...query, random: "next1234" }), 0)
        // Another product takes a random again.
        const lax = yield* createTriple()
        assert.deepStrictEqual([yield* codeOf(lax, query), yield* codeOf(lax, query)], [0, 0])
      }))

    it.effect.each<readonly [string, Readonly<Record<string, string>>]>([
      ["timestamp", { timestamp: "yesterday" }],
      ["timestamp", { timestamp: "" }],
      ["timestamp", { timestamp: "-1" }],
      ["timestamp", { timestamp: "12345678901234567" }],
      ["content_sha256", { content_sha256: "00" }],
      ["content_sha256", { content_sha256: "g".repeat(64) }]
    ])("a malformed %s is named: %j", ([field, query]) =>
      Effect.gen(function*() {
        const answer = yield* uplink(yield* createTriple(), "PostProperty", { body, query })
        assert.strictEqual(answer.body.code, 40001)
        assert.deepStrictEqual(Object.keys(answer.body.data.issues), [field])
      }))
  })

  layer(testApi(storage, { strictReplay: true }), { excludeTestServices: true })(`strict replay on ${name}`, (it) => {
    it.effect("a random is used once, also by many requests at a time", () =>
      Effect.gen(function*() {
        const [device, other] = [yield* createTriple(), yield* createTriple()]
        assert.strictEqual(yield* codeOf(device, { random: "12345678" }), 0)
        assert.strictEqual(yield* codeOf(device, { random: "12345678" }), 40110)
        assert.strictEqual(yield* codeOf(device, { random: "12345679" }), 0)
        assert.strictEqual(yield* codeOf(other, { random: "12345678" }), 0)
        const query = { random: "once1234", ...yield* signed() }
        const codes = yield* Effect.all(Array.from({ length: 20 }, () => codeOf(device, query)), {
          concurrency: "unbounded"
        })
        assert.deepStrictEqual(codes.toSorted((a, b) => a - b), [0, ...Array.from({ length: 19 }, () => 40110)])
      }))

    it.effect("a random is marked until its timestamp is too old, without one for five minutes", () =>
      Effect.gen(function*() {
        const device = yield* createTriple()
        const now = yield* Clock.currentTimeMillis
        assert.strictEqual(yield* codeOf(device, { random: "with-time", timestamp: String(now + 200_000) }), 0)
        assert.strictEqual(yield* codeOf(device, { random: "without-time" }), 0)
        const { body: { data } } = yield* call("GET", `/things?product_key=${device.product_key}`)
        const [{ device_id: deviceId }] = data.results
        const store = yield* ReplayStore
        const at = (random: string, later: number) =>
          store.use({ deviceId, random, at: now + later, until: now + later })
        assert.strictEqual(yield* at("with-time", 500_000), "used")
        assert.strictEqual(yield* at("with-time", 500_001), "fresh")
        assert.strictEqual(yield* at("without-time", 300_000), "used")
        assert.strictEqual(yield* at("without-time", 400_000), "fresh")
      }))
  })
}

test.live("a random that one node has seen is used at all nodes, and after a restart", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const start = Layer.build(
      Layer.fresh(testApi(Layer.provide(StoragePg.layer({ url }), TestKeyRing.layer), { strictReplay: true }))
    )
    const nodes = [yield* start, yield* start] as const
    const device = yield* Effect.provide(createTriple(), nodes[0])
    const query = yield* Effect.provide(
      Effect.flatMap(signed(), (fields) => signedQuery(device, "PostProperty", fields)),
      nodes[0]
    )
    const send = (node: Context.Context<HttpServer.HttpServer>) => {
      const { address } = Context.get(node, HttpServer.HttpServer)
      return Effect.map(
        callTo(HttpServer.formatAddress(address), "POST", `/thing-uplink?${new URLSearchParams(query).toString()}`, {
          key: null,
          body
        }),
        ({ body: { code } }) => code
      )
    }
    assert.strictEqual(yield* send(nodes[0]), 0)
    assert.strictEqual(yield* send(nodes[1]), 40110)
    assert.strictEqual(yield* send(yield* start), 40110)
  }).pipe(Effect.scoped), 60_000)

test.live("the tolerance is an option", () =>
  Effect.gen(function*() {
    const device = yield* createTriple()
    assert.strictEqual(yield* codeOf(device, yield* signed(-3_000_000)), 0)
    assert.strictEqual(yield* codeOf(device, yield* signed(-4_000_000)), 40110)
  }).pipe(Effect.provide(Layer.provide(testApi(storages[0][1]), Layer.succeed(UplinkTolerance, 3_600_000)))))
