import { CommandStore, PresenceStore } from "@device-cloud/core"
import * as StoragePg from "@device-cloud/storage-pg"
import { eventually, TestKeyRing } from "@device-cloud/testing"
import { insertDevice } from "@device-cloud/testing/contracts"
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { newDatabase } from "../../../vitest.storages.ts"

it.live("a command that is stored while a connection waits for its turn waits for the connection", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const stores = StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer))
    // Another node, with connections of its own, takes the command.
    const commands = yield* Effect.map(Layer.build(Layer.fresh(stores)), Context.get(CommandStore))
    yield* Effect.gen(function*() {
      const [presence, sql] = [yield* PresenceStore, yield* PgClient.PgClient]
      const { device: { deviceId, projectId } } = yield* insertDevice
      const connect = (connectionId: string) =>
        presence.record([
          { _tag: "Online", deviceId, connectionId, nodeId: "a", ip: "192.0.2.1", at: Date.now() }
        ])
      /** Waits until so many statements wait for others. */
      const blocked = (expected: number) =>
        eventually(
          sql<{ readonly count: number }>`SELECT count(*)::int AS count FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'`,
          { until: ([row]) => row!.count === expected }
        )
      yield* connect("first")
      const inTurn = yield* sql.withTransaction(Effect.gen(function*() {
        yield* sql`SELECT FROM presence WHERE device_id = ${deviceId} FOR UPDATE`
        const enqueued = yield* Effect.forkDetach(commands.enqueue([{
          command: {
            projectId,
            deviceId,
            serviceId: null,
            userTopic: null,
            params: { a: 1 },
            createdAt: Date.now(),
            expiresAt: Date.now() + 60_000
          }
        }]))
        yield* blocked(1)
        const connected = yield* Effect.forkDetach(connect("second"))
        yield* blocked(2)
        return [enqueued, connected] as const
      }))
      yield* Fiber.join(inTurn[0])
      const [outcome] = yield* Fiber.join(inTurn[1])
      assert.strictEqual(outcome!._tag, "Replaced")
      const { claim } = outcome as typeof outcome & { readonly claim?: { readonly waiting: boolean } }
      assert.isTrue(claim!.waiting)
    }).pipe(Effect.provide(Layer.merge(stores, PgClient.layer({ url }))))
  }))
