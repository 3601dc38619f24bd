import {
  Batches,
  BulkCommands,
  BulkCommandStore,
  CommandStore,
  defaultProjectId,
  DeviceCloud,
  DeviceStore
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StoragePg from "@device-cloud/storage-pg"
import { eventually, Fixtures, TestKeyRing } from "@device-cloud/testing"
import { newCommand } from "@device-cloud/testing/contracts"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Option, type Redacted } from "effect"
import { newDatabase } from "../../../vitest.storages.ts"

const storage = (url: Redacted.Redacted) => StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer))

/** A cloud of its own on the database, as on another machine. */
const cloudOn = (url: Redacted.Redacted) =>
  Layer.build(
    Layer.fresh(DeviceCloud.layer.pipe(Layer.provideMerge(storage(url)), Layer.provideMerge(PlatformNode.layer)))
  )

const count = 120

it.live(
  "two nodes ask each device once, also those whose turn another node had when it died",
  () =>
    Effect.gen(function*() {
      const url = yield* newDatabase
      const bulk = yield* Effect.gen(function*() {
        const { productKey } = yield* Fixtures.createProduct()
        yield* (yield* Batches).create(defaultProjectId, productKey, { num: count })
        return yield* (yield* BulkCommands).create(defaultProjectId, { productKey, params: { power: 1 } })
      }).pipe(Effect.provide(yield* cloudOn(url)), Effect.scoped)
      assert.strictEqual(bulk.total, count)

      // It has claimed turns and made half of their commands when it dies. Here its claim lasts a second.
      yield* Effect.gen(function*() {
        const now = Date.now() + 60_000
        const turns = yield* (yield* BulkCommandStore).claim({ now, again: Date.now() + 1000, bulks: 10, perBulk: 50 })
        assert.strictEqual(turns.length, 50)
        yield* (yield* CommandStore).enqueue(
          turns.slice(0, 25).map(({ bulk, deviceId }) => ({
            command: newCommand({ projectId: defaultProjectId, deviceId }, {
              params: bulk.params,
              createdAt: bulk.createdAt,
              expiresAt: bulk.createdAt + 3_600_000,
              origin: `bulk ${bulk.bulkId}`
            })
          }))
        )
      }).pipe(Effect.provide(yield* Layer.build(storage(url))), Effect.scoped)

      const [first] = [yield* cloudOn(url), yield* cloudOn(url)]
      const progress = Effect.flatMap(BulkCommands, (bulks) => bulks.get(defaultProjectId, bulk.bulkId))
      const ended = yield* eventually(Effect.provide(progress, first), {
        until: ({ bulk: { status } }) => status === "completed"
      })
      assert.deepStrictEqual(ended.counts, { queued: count })
      const { items } = yield* Effect.provide(
        Effect.flatMap(
          DeviceStore,
          (devices) => devices.list(defaultProjectId, {}, { page: 1, pageSize: 100 })
        ),
        first
      )
      const commands = yield* Effect.provide(
        Effect.forEach(items, ({ device: { deviceId } }) =>
          Effect.flatMap(CommandStore, (store) =>
            store.list(deviceId, { page: 1, pageSize: 10 }))),
        first
      )
      assert.deepStrictEqual(
        new Set(commands.map(({ total }) =>
          total
        )),
        new Set([1])
      )
    }).pipe(Effect.scoped),
  30_000
)

it.live(
  "a bulk command of many devices is stored in one statement, and does not hold up the next one",
  () =>
    Effect.gen(function*() {
      const url = yield* newDatabase
      const cloud = yield* cloudOn(url)
      yield* Effect.gen(function*() {
        const { productKey } = yield* Fixtures.createProduct()
        const bulks = yield* BulkCommands
        yield* (yield* Batches).create(defaultProjectId, productKey, { num: 2000 })
        const large = yield* bulks.create(defaultProjectId, { productKey, params: { power: 1 } })
        const device = yield* Fixtures.createDevice()
        const small = yield* bulks.create(defaultProjectId, { deviceIds: [device.deviceId], params: { power: 1 } })
        yield* eventually(bulks.get(defaultProjectId, small.bulkId), {
          until: ({ bulk: { status } }) => status === "completed"
        })
        const { bulk, counts } = yield* bulks.get(defaultProjectId, large.bulkId)
        assert.deepInclude(bulk, { status: "running", total: 2000 })
        assert.isAbove(counts.pending ?? 0, 500)
        yield* bulks.cancel(defaultProjectId, large.bulkId)
        const store = yield* BulkCommandStore
        assert.isTrue(Option.isSome(yield* store.get(defaultProjectId, large.bulkId)))
      }).pipe(Effect.provide(cloud))
    }).pipe(Effect.scoped),
  30_000
)
