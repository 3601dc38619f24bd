import { AccessKeys, AccessKeyStore, defaultProjectId, DeviceCloud, StoreError } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Logger, Option, Scope } from "effect"
import { TestClock } from "effect/testing"

/** Fails the next call of `find`, as a database does that is away for a moment. */
const outage = { next: false }

const stores = Layer.effect(
  AccessKeyStore,
  Effect.map(AccessKeyStore, (store) => ({
    ...store,
    find: (id: string) =>
      Effect.suspend(() => {
        if (!outage.next) return store.find(id)
        outage.next = false
        return Effect.fail(
          new StoreError({ operation: "AccessKeyStore.find", retryable: true, cause: new Error("away") })
        )
      })
  }))
).pipe(Layer.provideMerge(StorageMemory.layer))

const cloud = DeviceCloud.layer.pipe(Layer.provideMerge(stores), Layer.provide(PlatformNode.layer))

it.effect("a key works as soon as the store is back", () =>
  Effect.gen(function*() {
    const accessKeys = yield* AccessKeys
    const { key } = yield* accessKeys.create(defaultProjectId, { name: "ci", role: "viewer" })
    outage.next = true
    assert.strictEqual((yield* Effect.flip(accessKeys.authenticate(key)))._tag, "StoreError")
    assert.strictEqual((yield* accessKeys.authenticate(key)).role, "viewer")
  }).pipe(Effect.provide(cloud)))

it.effect("a key that is removed on one node is refused on the others", () =>
  Effect.gen(function*() {
    const node = Layer.build(Layer.fresh(DeviceCloud.layer.pipe(Layer.provide(StorageMemory.layerNode))))
    const [first, second] = [yield* node, yield* node]
    // A node hears the others a moment after its start.
    yield* TestClock.adjust("1 milli")
    const on = <A, E>(context: typeof first, use: (keys: AccessKeys["Service"]) => Effect.Effect<A, E>) =>
      Effect.provide(AccessKeys.use(use), context)
    const { accessKey, key } = yield* on(first, (keys) => keys.create(defaultProjectId, { name: "ci", role: "viewer" }))
    yield* on(second, (keys) => keys.authenticate(key))
    const ended = yield* Effect.forkChild(on(second, (keys) => keys.ended(accessKey.id)))
    yield* TestClock.adjust("5 seconds")
    assert.isUndefined(ended.pollUnsafe())
    yield* on(first, (keys) => keys.remove(defaultProjectId, accessKey.id))
    yield* TestClock.adjust("1 milli")
    for (const context of [first, second]) {
      assert.strictEqual((yield* on(context, (keys) => Effect.flip(keys.authenticate(key))))._tag, "UnknownAccessKey")
    }
    yield* TestClock.adjust("500 millis")
    yield* Fiber.join(ended)
  }).pipe(Effect.scoped, Effect.provide(StorageMemory.layer.pipe(Layer.provideMerge(PlatformNode.layer)))))

it.effect("a key ends when it expires, and within a second of a removal that nobody tells of", () =>
  Effect.gen(function*() {
    const accessKeys = yield* AccessKeys
    const { accessKey: expiring } = yield* accessKeys.create(defaultProjectId, {
      name: "short",
      role: "viewer",
      expiresAt: 10_000
    })
    const { accessKey: removed } = yield* accessKeys.create(defaultProjectId, { name: "gone", role: "viewer" })
    const expires = yield* Effect.forkChild(accessKeys.ended(expiring.id))
    const isRemoved = yield* Effect.forkChild(accessKeys.ended(removed.id))
    yield* TestClock.adjust("9999 millis")
    assert.isUndefined(expires.pollUnsafe())
    yield* TestClock.adjust("500 millis")
    yield* Fiber.join(expires)
    assert.isUndefined(isRemoved.pollUnsafe())
    yield* (yield* AccessKeyStore).remove(defaultProjectId, removed.id)
    yield* TestClock.adjust("1 second")
    assert.isDefined(isRemoved.pollUnsafe())
  }).pipe(Effect.provide(cloud)))

it.effect("the log tells once of a key that ends soon", () =>
  Effect.gen(function*() {
    const accessKeys = yield* AccessKeys
    const told: Array<string> = []
    const logger = Logger.make(({ message }) => {
      told.push(JSON.stringify(message))
    })
    const day = 86_400_000
    const keyFor = (days: number) =>
      accessKeys.create(defaultProjectId, { name: "ci", role: "viewer", expiresAt: days * day })
    const [soon, later] = [yield* keyFor(13), yield* keyFor(15)]
    for (let i = 0; i < 3; i++) {
      for (const { key } of [soon, later]) {
        yield* accessKeys.authenticate(key).pipe(Effect.provide(Logger.layer([logger])))
      }
    }
    assert.lengthOf(told, 1)
    assert.include(told[0], soon.accessKey.id)
    assert.include(told[0], "1970-01-14T00:00:00.000Z")
  }).pipe(Effect.provide(cloud)))

it.effect("notes the latest use of a key once a minute, off the way of requests", () =>
  Effect.gen(function*() {
    let writes = 0
    const store = yield* AccessKeyStore
    const node = yield* Layer.build(Layer.fresh(DeviceCloud.layer.pipe(Layer.provide(StorageMemory.layerNode)))).pipe(
      Effect.provideService(AccessKeyStore, {
        ...store,
        markUsed: (uses) =>
          Effect.suspend(() => {
            writes += uses.length
            return store.markUsed(uses)
          })
      })
    )
    const { accessKey, key } = yield* Effect.provide(
      AccessKeys.use((keys) => keys.create(defaultProjectId, { name: "ci", role: "viewer" })),
      node
    )
    const lastUse = Effect.map(store.find(accessKey.id), (found) => Option.getOrThrow(found).lastUsedAt)
    for (let i = 0; i < 50; i++) yield* Effect.provide(AccessKeys.use((keys) => keys.authenticate(key)), node)
    assert.deepStrictEqual([writes, yield* lastUse], [0, null])
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual([writes, yield* lastUse], [1, 0])
    yield* TestClock.adjust("10 minutes")
    assert.strictEqual(writes, 1)
  }).pipe(Effect.scoped, Effect.provide(StorageMemory.layer.pipe(Layer.provideMerge(PlatformNode.layer)))))

it.effect("uses that cannot be noted while the store is away are noted when it is back", () =>
  Effect.gen(function*() {
    let isAway = true
    const store = yield* AccessKeyStore
    const node = yield* Layer.build(Layer.fresh(DeviceCloud.layer.pipe(Layer.provide(StorageMemory.layerNode)))).pipe(
      Effect.provideService(AccessKeyStore, {
        ...store,
        markUsed: (uses) =>
          isAway
            ? Effect.fail(
              new StoreError({ operation: "AccessKeyStore.markUsed", retryable: true, cause: new Error("away") })
            )
            : store.markUsed(uses)
      })
    )
    const accessKeys = yield* Effect.provide(AccessKeys, node)
    const { accessKey, key } = yield* accessKeys.create(defaultProjectId, { name: "ci", role: "viewer" })
    yield* accessKeys.authenticate(key)
    yield* TestClock.adjust("5 minutes")
    isAway = false
    yield* TestClock.adjust("1 minute")
    assert.strictEqual(Option.getOrThrow(yield* store.find(accessKey.id)).lastUsedAt, 0)
  }).pipe(Effect.scoped, Effect.provide(StorageMemory.layer.pipe(Layer.provideMerge(PlatformNode.layer)))))

it.effect("a node ends although its latest uses of keys cannot be noted", () =>
  Effect.gen(function*() {
    const store = yield* AccessKeyStore
    const scope = yield* Scope.make()
    const node = yield* Layer.buildWithScope(
      Layer.fresh(DeviceCloud.layer.pipe(Layer.provide(StorageMemory.layerNode))),
      scope
    ).pipe(Effect.provideService(AccessKeyStore, { ...store, markUsed: () => Effect.never }))
    const accessKeys = yield* Effect.provide(AccessKeys, node)
    const { key } = yield* accessKeys.create(defaultProjectId, { name: "ci", role: "viewer" })
    yield* accessKeys.authenticate(key)
    const ending = yield* Effect.forkDetach(Scope.close(scope, Exit.void))
    yield* TestClock.adjust("10 seconds")
    assert.isDefined(ending.pollUnsafe())
  }).pipe(Effect.scoped, Effect.provide(StorageMemory.layer.pipe(Layer.provideMerge(PlatformNode.layer)))))
