import { AccessKeys, AccessKeyStore, defaultProjectId, DeviceCloud, StoreError } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
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
    const node = Layer.build(Layer.fresh(DeviceCloud.layer))
    const [first, second] = [yield* node, yield* node]
    // A node hears the others a moment after its start.
    yield* TestClock.adjust("1 milli")
    const on = <A, E>(context: typeof first, use: (keys: AccessKeys["Service"]) => Effect.Effect<A, E>) =>
      Effect.provide(AccessKeys.use(use), context)
    const { accessKey, key } = yield* on(first, (keys) => keys.create(defaultProjectId, { name: "ci", role: "viewer" }))
    yield* on(second, (keys) => keys.authenticate(key))
    yield* on(first, (keys) => keys.remove(defaultProjectId, accessKey.id))
    yield* TestClock.adjust("1 milli")
    for (const context of [first, second]) {
      assert.strictEqual((yield* on(context, (keys) => Effect.flip(keys.authenticate(key))))._tag, "UnknownAccessKey")
    }
  }).pipe(Effect.scoped, Effect.provide(StorageMemory.layer.pipe(Layer.provideMerge(PlatformNode.layer)))))
