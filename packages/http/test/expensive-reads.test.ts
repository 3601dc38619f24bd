import { AuditStore, defaultProjectId, ProductStore } from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { eventually } from "@device-cloud/testing"
import { call, createProduct, ownerKey, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Latch, Layer } from "effect"

/** Reads that wait until it is opened. */
const makeGate = () => {
  const latch = Latch.makeUnsafe()
  const gate = {
    reading: 0,
    open: latch.open,
    pass: <A, E>(read: Effect.Effect<A, E>) =>
      Effect.acquireUseRelease(
        Effect.sync(() => void gate.reading++),
        () => Effect.andThen(latch.await, read),
        () => Effect.sync(() => void gate.reading--)
      )
  }
  return gate
}

const lists = makeGate()
const exports = makeGate()

/** A storage whose lists of products and audit entries of the default project wait. */
const slow = Layer.effectContext(Effect.map(Effect.context<AuditStore | ProductStore>(), (context) => {
  const products = Context.get(context, ProductStore)
  const audit = Context.get(context, AuditStore)
  return Context.make(ProductStore, {
    ...products,
    list: (projectId, page) =>
      projectId === defaultProjectId
        ? lists.pass(products.list(projectId, page))
        : products.list(projectId, page)
  }).pipe(Context.add(AuditStore, {
    ...audit,
    read: (projectId, filter, page) =>
      projectId === defaultProjectId
        ? exports.pass(audit.read(projectId, filter, page))
        : audit.read(projectId, filter, page)
  }))
})).pipe(Layer.provideMerge(StorageMemory.layer))

const statusesOf = (path: string, count: number) =>
  Effect.all(Array.from({ length: count }, () => Effect.map(call("GET", path), ({ status }) => status)), {
    concurrency: "unbounded"
  })

layer(testApi(slow, { expensiveReads: { atOnce: 8, waiting: 32 } }), { excludeTestServices: true })(
  "a project that reads many lists at once",
  (it) => {
    it.effect("has a few turns, and does not keep others or its own short reads waiting", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const project_id = (yield* call("POST", "/projects", { body: { name: "Other" } })).body.data.id
        const body = { name: "k", role: "viewer", project_id }
        const { key } = (yield* call("POST", "/access-keys", { body })).body.data
        const reads = yield* Effect.forkChild(statusesOf("/products", 100))
        yield* eventually(Effect.sync(() => lists.reading), { until: (count) => count === 8 })
        assert.strictEqual((yield* call("GET", "/products", { key })).status, 200)
        assert.strictEqual((yield* call("GET", `/products/${product_key}`)).status, 200)
        assert.strictEqual(lists.reading, 8)
        const refused = yield* eventually(call("GET", "/products"), { until: ({ status }) => status === 429 })
        assert.strictEqual(refused.body.code, 42900)
        assert.strictEqual(refused.headers["retry-after"], "1")
        yield* lists.open
        const statuses = yield* Fiber.join(reads)
        assert.strictEqual(statuses.filter((status) => status === 200).length, 40)
        assert.strictEqual(statuses.filter((status) => status === 429).length, 60)
        assert.strictEqual((yield* call("GET", "/products")).status, 200)
      }))

    it.effect("has its turn in an export until the last line is written", () =>
      Effect.gen(function*() {
        const reads = yield* Effect.forkChild(statusesOf("/audit?format=ndjson", 40))
        yield* eventually(call("GET", "/products", { key: ownerKey }), { until: ({ status }) => status === 429 })
        assert.strictEqual(exports.reading, 8)
        yield* exports.open
        assert.deepStrictEqual(new Set(yield* Fiber.join(reads)), new Set([200]))
        assert.strictEqual((yield* call("GET", "/audit?format=csv")).status, 200)
      }))
  }
)
