import { CommandStore } from "@device-cloud/core"
import * as StoragePg from "@device-cloud/storage-pg"
import { TestKeyRing } from "@device-cloud/testing"
import { insertDevice, newCommand } from "@device-cloud/testing/contracts"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { newDatabase } from "../../../vitest.storages.ts"

it.live("commands are listed in the order of their commits, whatever the clocks of their servers say", () =>
  Effect.gen(function*() {
    const storage = StoragePg.layer({ url: yield* newDatabase }).pipe(Layer.provide(TestKeyRing.layer))
    yield* Effect.gen(function*() {
      const { device } = yield* insertDevice
      const store = yield* CommandStore
      const ids: Array<number> = []
      for (const createdAt of [3000, 1000, 2000]) {
        const [stored] = yield* store.enqueue([{ command: newCommand(device, { createdAt }) }])
        assert.isObject(stored)
        if (typeof stored === "object") ids.push(stored.command.messageId)
      }
      const pages = yield* Effect.forEach([1, 2, 3], (page) => store.list(device.deviceId, { page, pageSize: 1 }))
      assert.deepStrictEqual(pages.flatMap(({ items }) => items.map(({ messageId }) => messageId)), ids.toReversed())
    }).pipe(Effect.provide(storage))
  }).pipe(Effect.scoped))
