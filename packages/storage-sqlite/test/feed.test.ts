import { FeedStore } from "@device-cloud/core"
import { insertDevice } from "@device-cloud/testing/contracts"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { sqlite } from "../../../vitest.storages.ts"

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
