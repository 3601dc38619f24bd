import { CommandStore, type Shadow, ShadowStore } from "@device-cloud/core"
import * as StoragePg from "@device-cloud/storage-pg"
import { TestKeyRing } from "@device-cloud/testing"
import { insertDevice, newCommand } from "@device-cloud/testing/contracts"
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, type Redacted } from "effect"
import type { SqlError } from "effect/sql"
import { newDatabase } from "../../../vitest.storages.ts"

/** Whether the next read of shadows comes in a transaction that has failed. */
let fails = false

const failingClient = (url: Redacted.Redacted) =>
  Layer.effect(
    PgClient.PgClient,
    Effect.map(PgClient.PgClient, (sql) =>
      new Proxy(sql, {
        apply: (target, self, args: ReadonlyArray<unknown>) => {
          const statement = Reflect.apply(target, self, args) as Effect.Effect<unknown, SqlError.SqlError>
          const isRead = Array.isArray(args[0]) &&
            String(args[0][0]).includes("SELECT device.device_id, shadow.version")
          return fails && isRead ? Effect.andThen(Effect.ignore(sql`SELECT 1 / 0`), statement) : statement
        }
      }))
  ).pipe(Layer.provideMerge(PgClient.layer({ url })))

const next = (shadow: Shadow) =>
  [undefined, { ...shadow, version: shadow.version + 1, updatedAt: shadow.version + 1 }] as const

it.live("commands are refused when their transaction fails after some of their shadows were written", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const other = yield* Layer.build(Layer.fresh(StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer))))
    yield* Effect.gen(function*() {
      const shadows = yield* ShadowStore
      const devices = [(yield* insertDevice).device, (yield* insertDevice).device]
      const [first] = devices.map(({ deviceId }) => ({ deviceId, modify: next }))
      yield* shadows.modify(devices.map(({ deviceId }) => ({ deviceId, modify: next })))
      yield* Effect.provide(ShadowStore.use((store) => store.modify([first!])), other)
      fails = true
      const store = yield* CommandStore
      const commands = devices.map((device) => ({
        command: newCommand(device, { createdAt: Date.now() }),
        desire: next
      }))
      assert.strictEqual((yield* Effect.flip(store.enqueue(commands)))._tag, "StoreError")
      fails = false
      yield* store.enqueue(commands)
      assert.strictEqual((yield* shadows.modify([first!])).length, 1)
    }).pipe(Effect.provide(StoragePg.layerClient.pipe(Layer.provide([failingClient(url), TestKeyRing.layer]))))
  }).pipe(Effect.scoped))
