import { HistoryStore, StoreError } from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { eventually } from "@device-cloud/testing"
import { call, createDevice, createProduct, ownerKey, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Logger, Stream } from "effect"
import { HttpServer } from "effect/http"
import { type IncomingMessage, request } from "node:http"
import * as ManagementApi from "../src/ManagementApi.ts"

const chunk = Array.from({ length: 1000 }, (_, time) => ({ propertyId: "t", time, value: time / 7 }))

/** What the exports of this test have read of the store. */
const reading = { chunks: 0, hasEnded: false }

/** A history that has no end. After `failsAfter` chunks it cannot be read any more. */
const endless = (failsAfter: number) =>
  Layer.effectContext(Effect.map(HistoryStore, (history) =>
    Context.make(HistoryStore, {
      ...history,
      devicesWithin: (deviceIds) => Effect.succeed(deviceIds),
      scan: () =>
        Stream.fromEffectRepeat(Effect.suspend(() =>
          ++reading.chunks > failsAfter
            ? Effect.fail(new StoreError({ operation: "HistoryStore.scan", retryable: true, cause: "away" }))
            : Effect.succeed(chunk)
        )).pipe(Stream.ensuring(Effect.sync(() => {
          reading.hasEnded = true
        })))
    }))).pipe(Layer.provideMerge(StorageMemory.layer))

/** Stops to read: buffers of the sockets fill up, then nothing more is read of the store. Returns how many chunks were. */
const stopReading = Effect.fnUntraced(function*(response: IncomingMessage) {
  response.once("data", () => response.pause())
  let before = -1
  yield* eventually(Effect.sync(() => reading.chunks), {
    until: (chunks) => {
      const isStill = chunks > 0 && chunks === before
      before = chunks
      return isStill
    },
    interval: "200 millis"
  })
  return before
})

/** Begins an export of a new product. Its connection ends with the scope. */
const beginExport = (suffix: string, key = ownerKey) =>
  Effect.gen(function*() {
    Object.assign(reading, { chunks: 0, hasEnded: false })
    const { product_key } = yield* createProduct()
    yield* createDevice(product_key)
    const url = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
    return yield* Effect.callback<IncomingMessage>((resume) => {
      const sent = request(`${url}/openapi/v1/products/${product_key}/history/export${suffix}`, {
        agent: false,
        headers: { authorization: `Bearer ${key}` }
      }, (response) => {
        response.on("error", () => {})
        resume(Effect.succeed(response))
      })
      sent.on("error", () => {})
      sent.end()
    })
  })

const patient = testApi(endless(Number.POSITIVE_INFINITY), { expensiveReads: { atOnce: 1, waiting: 0 } })

layer(patient, { excludeTestServices: true })("an export of a history that has no end", (it) => {
  it.effect("reads no more than its client takes, holds its turn, and ends when the client leaves", () =>
    Effect.gen(function*() {
      const response = yield* beginExport("?format=ndjson")
      const before = yield* stopReading(response)
      assert.strictEqual((yield* call("GET", "/products")).status, 429)
      assert.isFalse(reading.hasEnded)
      response.resume()
      yield* eventually(Effect.sync(() => reading.chunks), { until: (chunks) => chunks > before })
      response.destroy()
      yield* eventually(Effect.sync(() => reading.hasEnded), { until: (hasEnded) => hasEnded })
      yield* eventually(call("GET", "/products"), { until: ({ status }) => status === 200 })
    }))

  it.effect("breaks off when its access key is removed", () =>
    Effect.gen(function*() {
      const { body } = yield* call("POST", "/access-keys", { body: { name: "exports", role: "viewer" } })
      const response = yield* beginExport("?format=csv", body.data.key)
      response.resume()
      const closed = new Promise((resolve) => response.once("close", resolve))
      yield* eventually(Effect.sync(() => reading.chunks), { until: (chunks) => chunks > 0 })
      yield* call("DELETE", `/access-keys/${body.data.id}`)
      yield* Effect.promise(() => closed)
      assert.isFalse(response.complete)
      assert.isTrue(reading.hasEnded)
    }))

  it.effect("breaks off when its access key is removed and its client does not read", () =>
    Effect.gen(function*() {
      const { body } = yield* call("POST", "/access-keys", { body: { name: "exports", role: "viewer" } })
      const response = yield* beginExport("?format=csv", body.data.key)
      yield* stopReading(response)
      assert.isFalse(reading.hasEnded)
      yield* call("DELETE", `/access-keys/${body.data.id}`)
      yield* eventually(call("GET", "/products"), { until: ({ status }) => status === 200 })
      assert.isTrue(reading.hasEnded)
    }))

  it.effect("breaks off when its access key is removed and the reader of a response of fetch does not read", () =>
    Effect.gen(function*() {
      Object.assign(reading, { chunks: 0, hasEnded: false })
      const { product_key } = yield* createProduct()
      yield* createDevice(product_key)
      const { body } = yield* call("POST", "/access-keys", { body: { name: "exports", role: "viewer" } })
      const handle = yield* ManagementApi.fetchHandler({ readiness: {} })
      const response = yield* Effect.promise(() =>
        handle(
          new Request(`http://localhost/openapi/v1/products/${product_key}/history/export`, {
            headers: { authorization: `Bearer ${body.data.key}` }
          })
        )
      )
      yield* eventually(Effect.sync(() => reading.chunks), { until: (chunks) => chunks > 0 })
      yield* call("DELETE", `/access-keys/${body.data.id}`)
      yield* eventually(Effect.sync(() => reading.hasEnded), { until: (hasEnded) => hasEnded })
      const error = yield* Effect.promise(() => response.text().then(() => undefined, (error: unknown) => error))
      assert.isDefined(error)
    }))
})

/** What the server of the next test has logged. */
const logged: Array<unknown> = []

const failing = testApi(endless(3)).pipe(
  Layer.provide(Logger.layer([Logger.make(({ message }) => void logged.push([message].flat()[0]))]))
)

layer(failing, { excludeTestServices: true })("an export of a history that fails", (it) => {
  for (const format of ["csv", "ndjson"]) {
    it.effect(`breaks off, does not end like a whole file, and is in the log (${format})`, () =>
      Effect.gen(function*() {
        logged.length = 0
        const response = yield* beginExport(`?format=${format}`)
        const text = yield* Effect.callback<string>((resume) => {
          let received = ""
          response.on("data", (data) => {
            received += String(data)
          })
          response.on("close", () => resume(Effect.succeed(received)))
        })
        assert.strictEqual(response.statusCode, 200)
        assert.isAtMost(text.split("\n").length, 3 * chunk.length + 2)
        assert.isFalse(response.complete)
        assert.match(String(logged), /^GET \/openapi\/v1\/products\/\w+\/history\/export broke off$/)
      }))
  }
})
