import { type Device, FeedStore } from "@device-cloud/core"
import * as StorageSqlite from "@device-cloud/storage-sqlite"
import { TestKeyRing } from "@device-cloud/testing"
import { insertDevice } from "@device-cloud/testing/contracts"
import { assert, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { copyFile } from "node:fs/promises"
import { join } from "node:path"
import { sqlite, temporaryDirectory } from "../../../vitest.storages.ts"

layer(sqlite, { excludeTestServices: true })("the feed on SQLite", (it) => {
  it.effect("a read of large events ends early, so that others need not wait for all of them", () =>
    Effect.gen(function*() {
      const { append, end, read } = yield* FeedStore
      const { device } = yield* insertDevice
      const after = yield* end
      const value = "x".repeat(1_000_000)
      yield* append(
        Array.from(
          { length: 12 },
          (_, at) => ({ _tag: "EventReported", device, at, eventId: "large", time: at, value })
        )
      )
      const first = yield* read({ projectId: device.projectId, after, limit: 1000 })
      assert.deepInclude(first, { isCut: true, hasMore: true })
      assert.deepStrictEqual(first.entries.map(({ event }) => event.at), [0, 1, 2, 3, 4])
      const second = yield* read({ projectId: device.projectId, after: first.next, limit: 5 })
      assert.deepStrictEqual(second.entries.map(({ event }) => event.at), [5, 6, 7, 8, 9])
      const third = yield* read({ projectId: device.projectId, after: second.next, limit: 1000 })
      assert.deepInclude(third, { isCut: false, hasMore: false })
      assert.lengthOf(third.entries, 2)
    }))
})

it.live.each([
  { of: "events", times: [1] },
  { of: "no events", times: [] }
])(
  "in a restored copy with $of, new events come after all places that the file told after it was copied",
  ({ times }) =>
    Effect.gen(function*() {
      const directory = yield* temporaryDirectory
      const [filename, copy] = [join(directory, "test.sqlite"), join(directory, "copy.sqlite")]
      const storage = (filename: string) =>
        Layer.fresh(StorageSqlite.layer({ filename })).pipe(Layer.provide(TestKeyRing.layer))
      const append = (device: Device, ...times: ReadonlyArray<number>) =>
        Effect.flatMap(
          FeedStore,
          (store) =>
            store.append(times.map((at) => ({ _tag: "EventReported", device, at, eventId: "e", time: at, value: 1 })))
        )

      const { device } = yield* insertDevice.pipe(
        Effect.tap(({ device }) => append(device, ...times)),
        Effect.provide(storage(filename))
      )
      yield* Effect.promise(() => copyFile(filename, copy))
      const after = yield* append(device, 2, 3).pipe(
        Effect.andThen(FeedStore.use(({ end }) => end)),
        Effect.provide(storage(filename))
      )
      yield* Effect.gen(function*() {
        yield* append(device, 4, 5, 6)
        const { entries, isGap } = yield* FeedStore.use(({ read }) =>
          read({ projectId: device.projectId, after, limit: 10 })
        )
        assert.deepStrictEqual(entries.map(({ event }) => event.at), [4, 5, 6])
        assert.isFalse(isGap)
      }).pipe(Effect.provide(storage(copy)))
    }).pipe(Effect.scoped)
)

it.live("a place of an earlier file is a gap in a new one", () =>
  Effect.gen(function*() {
    const directory = yield* temporaryDirectory
    const storage = (name: string) =>
      Layer.fresh(StorageSqlite.layer({ filename: join(directory, name) })).pipe(Layer.provide(TestKeyRing.layer))
    const after = yield* Effect.andThen(insertDevice, FeedStore.use(({ end }) => end)).pipe(
      Effect.provide(storage("earlier.sqlite"))
    )
    yield* Effect.gen(function*() {
      const { end, read } = yield* FeedStore
      const start = yield* end
      const { device } = yield* insertDevice
      const isGap = (after: string) =>
        Effect.map(read({ projectId: device.projectId, after, limit: 10 }), (page) => page.isGap)
      assert.isTrue(yield* isGap(after))
      assert.isFalse(yield* isGap(start))
    }).pipe(Effect.provide(storage("new.sqlite")))
  }).pipe(Effect.scoped))
