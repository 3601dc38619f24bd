import { defaultProjectId, ProductStore } from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { eventually } from "@device-cloud/testing"
import { call, createProduct, ownerKey, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Latch, Layer } from "effect"

const isOpen = Latch.makeUnsafe()
let reading = 0

/** A storage whose lists of products of the default project wait. */
const slow = Layer.effectContext(Effect.map(Effect.context<ProductStore>(), (context) => {
  const store = Context.get(context, ProductStore)
  return Context.make(ProductStore, {
    ...store,
    list: (projectId, page) =>
      projectId === defaultProjectId
        ? Effect.acquireUseRelease(
          Effect.sync(() => void reading++),
          () => Effect.andThen(isOpen.await, store.list(projectId, page)),
          () => Effect.sync(() => void reading--)
        )
        : store.list(projectId, page)
  })
})).pipe(Layer.provideMerge(StorageMemory.layer))

layer(testApi(slow, { expensiveReads: { atOnce: 8, waiting: 32 } }), { excludeTestServices: true })(
  "a project that reads many lists at once",
  (it) => {
    it.effect("has a few turns, and does not keep others or its own short reads waiting", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const project_id = (yield* call("POST", "/projects", { body: { name: "Other" } })).body.data.id
        const body = { name: "k", role: "viewer", project_id }
        const { key } = (yield* call("POST", "/access-keys", { body })).body.data
        const lists = yield* Effect.forkChild(
          Effect.all(Array.from({ length: 100 }, () => call("GET", "/products", { key: ownerKey })), {
            concurrency: "unbounded"
          })
        )
        yield* eventually(Effect.sync(() => reading), { until: (count) => count === 8 })
        assert.strictEqual((yield* call("GET", "/products", { key })).status, 200)
        assert.strictEqual((yield* call("GET", `/products/${product_key}`)).status, 200)
        assert.strictEqual(reading, 8)
        const refused = yield* eventually(call("GET", "/products"), { until: ({ status }) => status === 429 })
        assert.strictEqual(refused.body.code, 42900)
        assert.strictEqual(refused.headers["retry-after"], "1")
        yield* isOpen.open
        const statuses = (yield* Fiber.join(lists)).map(({ status }) => status)
        assert.strictEqual(statuses.filter((status) => status === 200).length, 40)
        assert.strictEqual(statuses.filter((status) => status === 429).length, 60)
        assert.strictEqual((yield* call("GET", "/products")).status, 200)
      }))
  }
)
