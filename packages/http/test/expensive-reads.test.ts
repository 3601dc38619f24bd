import { AuditStore, defaultProjectId, ProductStore } from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import * as StoragePg from "@device-cloud/storage-pg"
import { eventually, TestKeyRing } from "@device-cloud/testing"
import { call, createProduct, ownerKey, testApi } from "@device-cloud/testing/http"
import { assert, it, layer } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Context, Deferred, Effect, Fiber, Latch, Layer, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { blockedStatements, newDatabase } from "../../../vitest.storages.ts"
import type { TooManyRequests } from "../src/Failure.ts"
import { CurrentPrincipal } from "../src/middleware/Authorization.ts"
import { ExpensiveRead } from "../src/middleware/ExpensiveRead.ts"

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
        const statuses: Array<number> = []
        const read = Effect.map(call("GET", "/audit?format=ndjson"), ({ status }) => void statuses.push(status))
        const reads = yield* Effect.forkChild(
          Effect.forEach(Array.from({ length: 45 }), () => read, { concurrency: "unbounded", discard: true })
        )
        // All places are taken: five were refused.
        yield* eventually(Effect.sync(() => statuses), { until: ({ length }) => length === 5 })
        assert.deepStrictEqual(new Set(statuses), new Set([429]))
        assert.strictEqual(exports.reading, 8)
        assert.strictEqual((yield* call("GET", "/products", { key: ownerKey })).status, 429)
        yield* exports.open
        yield* Fiber.join(reads)
        assert.deepStrictEqual(statuses.slice(5), Array.from({ length: 40 }, () => 200))
        assert.strictEqual((yield* call("GET", "/audit?format=csv")).status, 200)
      }))
  }
)

const database = Layer.unwrap(
  Effect.map(
    newDatabase,
    (url) =>
      testApi(StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer))).pipe(
        Layer.provideMerge(PgClient.layer({ url }))
      )
  )
)

layer(database, { excludeTestServices: true })("lists of projects on PostgreSQL", (it) => {
  it.effect("many of one project that take long leave connections to the lists of another", () =>
    Effect.gen(function*() {
      const sql = yield* PgClient.PgClient
      const project_id = (yield* call("POST", "/projects", { body: { name: "Other" } })).body.data.id
      const body = { name: "k", role: "viewer", project_id }
      const { key } = (yield* call("POST", "/access-keys", { body })).body.data
      const [isLocked, mayGo] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      // Lists of scenes wait for this lock.
      const lock = yield* sql`LOCK TABLE scene IN ACCESS EXCLUSIVE MODE`.pipe(
        Effect.andThen(Deferred.succeed(isLocked, undefined)),
        Effect.andThen(Deferred.await(mayGo)),
        sql.withTransaction,
        Effect.forkChild
      )
      yield* Deferred.await(isLocked)
      const statuses: Array<number> = []
      const read = Effect.map(call("GET", "/rule-engine/scenes"), ({ status }) => void statuses.push(status))
      const reads = yield* Effect.forkChild(
        Effect.forEach(Array.from({ length: 100 }), () => read, { concurrency: "unbounded", discard: true })
      )
      // The server itself reads scenes as well, now and then.
      yield* eventually(blockedStatements(sql, `FROM "scene" WHERE`), { until: (count) => count === 2 })
      for (const path of ["/products", "/things", "/ota/firmwares"]) {
        assert.strictEqual((yield* call("GET", path, { key })).status, 200, path)
      }
      // The others wait until the lock goes.
      yield* eventually(Effect.sync(() => statuses.length), { until: (count) => count === 66 })
      yield* Deferred.succeed(mayGo, undefined)
      yield* Fiber.join(lock)
      yield* Fiber.join(reads)
      assert.deepStrictEqual([200, 429].map((wanted) => statuses.filter((status) => status === wanted).length), [
        34,
        66
      ])
    }))
})

/** A read of the default project. */
const makeRead = Effect.map(ExpensiveRead, (middleware) => {
  // The rest of what a handler has does not matter to the middleware.
  const takesTurn = middleware as unknown as <A>(
    handler: Effect.Effect<A>
  ) => Effect.Effect<A, typeof TooManyRequests.Type, CurrentPrincipal | Scope.Scope>
  return <A>(handler: Effect.Effect<A>) =>
    takesTurn(handler).pipe(
      Effect.provideService(CurrentPrincipal, { projectId: defaultProjectId } as CurrentPrincipal["Service"]),
      Effect.scoped
    )
})

const oneAtOnce = ExpensiveRead.layer({ atOnce: 1, waiting: 1 })

it.effect("a read whose client goes away gives up its turn when the storage has let go of it", () =>
  Effect.gen(function*() {
    const read = yield* makeRead
    const steps: Array<string> = []
    const step = (name: string) => Effect.sync(() => void steps.push(name))
    const [isReading, mayEnd] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    const first = yield* Effect.forkChild(
      read(Effect.onInterrupt(
        Effect.andThen(Deferred.succeed(isReading, undefined), Effect.never),
        () => Effect.andThen(Deferred.await(mayEnd), step("first has ended"))
      ))
    )
    yield* Deferred.await(isReading)
    const second = yield* Effect.forkChild(read(step("second reads")), { startImmediately: true })
    const gone = yield* Effect.forkChild(Fiber.interrupt(first), { startImmediately: true })
    yield* Effect.repeat(Effect.yieldNow, { times: 100 })
    yield* Deferred.succeed(mayEnd, undefined)
    yield* Fiber.join(gone)
    yield* Fiber.join(second)
    assert.deepStrictEqual(steps, ["first has ended", "second reads"])
  }).pipe(Effect.provide(oneAtOnce)))

it.effect("a read that waits for its turn for long is refused, before its request has taken too long", () =>
  Effect.gen(function*() {
    const read = yield* makeRead
    const held = yield* Effect.forkChild(read(Effect.never), { startImmediately: true })
    const waiting = yield* Effect.forkChild(Effect.flip(read(Effect.never)), { startImmediately: true })
    yield* TestClock.adjust("10 seconds")
    assert.strictEqual((yield* Fiber.join(waiting)).code, 42900)
    yield* Fiber.interrupt(held)
    assert.strictEqual(yield* read(Effect.succeed(204)), 204)
  }).pipe(Effect.provide(oneAtOnce)))
