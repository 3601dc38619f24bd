import {
  AuditStore,
  CommandStore,
  type DeviceId,
  type Enqueue,
  PresenceStore,
  type ShadowModification,
  ShadowStore
} from "@device-cloud/core"
import * as StoragePg from "@device-cloud/storage-pg"
import { eventually, TestKeyRing } from "@device-cloud/testing"
import { insertDevice } from "@device-cloud/testing/contracts"
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Redacted } from "effect"
import { newDatabase } from "../../../vitest.storages.ts"

/** The stores of a node, those of another one with connections of its own, and two devices in the order of their ids. */
const withNodes = <E>(
  use: (world: {
    readonly sql: PgClient.PgClient
    readonly presence: PresenceStore["Service"]
    readonly shadows: ShadowStore["Service"]
    readonly other: {
      readonly audit: AuditStore["Service"]
      readonly commands: CommandStore["Service"]
      readonly shadows: ShadowStore["Service"]
    }
    readonly devices: readonly [Device, Device]
  }) => Effect.Effect<void, E>
) =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    // As in tables that are too large to be read whole.
    yield* Effect.flatMap(
      PgClient.PgClient,
      (sql) => sql`ALTER DATABASE ${sql(new URL(Redacted.value(url)).pathname.slice(1))} SET enable_seqscan = off`
    ).pipe(Effect.provide(PgClient.layer({ url })))
    const stores = StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer))
    const other = yield* Layer.build(Layer.fresh(stores))
    yield* Effect.gen(function*() {
      const devices = [(yield* insertDevice).device, (yield* insertDevice).device]
      const [first, second] = devices.toSorted((a, b) => a.deviceId < b.deviceId ? -1 : 1)
      yield* use({
        sql: yield* PgClient.PgClient,
        presence: yield* PresenceStore,
        shadows: yield* ShadowStore,
        other: {
          audit: Context.get(other, AuditStore),
          commands: Context.get(other, CommandStore),
          shadows: Context.get(other, ShadowStore)
        },
        devices: [first!, second!]
      })
    }).pipe(Effect.provide(Layer.merge(stores, PgClient.layer({ url }))))
  })

type Device = Effect.Success<typeof insertDevice>["device"]

/** Locks the row of the device, lets statements wait for it in the order of `waiting`, and returns what they made. */
const inTurn = <A, B, E, F>(
  sql: PgClient.PgClient,
  table: "presence" | "shadow",
  { deviceId }: Device,
  waiting: readonly [Effect.Effect<A, E>, Effect.Effect<B, F>]
) =>
  Effect.gen(function*() {
    const blocked = (expected: number) =>
      eventually(
        sql<{ readonly count: number }>`SELECT count(*)::int AS count FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        { until: ([row]) => row!.count === expected }
      )
    const [one, two] = yield* sql.withTransaction(Effect.gen(function*() {
      yield* sql`SELECT FROM ${sql(table)} WHERE device_id = ${deviceId} FOR UPDATE`
      const one = yield* Effect.forkDetach(waiting[0])
      yield* blocked(1)
      const two = yield* Effect.forkDetach(waiting[1])
      yield* blocked(2)
      return [one, two] as const
    }))
    return [yield* Fiber.join(one), yield* Fiber.join(two)] as const
  })

const online = ({ deviceId }: Device, connectionId: string) =>
  ({ _tag: "Online", deviceId, connectionId, nodeId: "a", ip: "192.0.2.1", at: Date.now() }) as const

const command = ({ deviceId, projectId }: Device): Enqueue => ({
  command: {
    projectId,
    deviceId,
    serviceId: null,
    userTopic: null,
    params: { a: 1 },
    createdAt: Date.now(),
    expiresAt: Date.now() + 60_000
  }
})

/** Adds one to the version. */
const next = (deviceId: DeviceId): ShadowModification<number> => ({
  deviceId,
  modify: (shadow) => [shadow.version, { ...shadow, version: shadow.version + 1, updatedAt: Date.now() }]
})

it.live("a command that is stored while a connection waits for its turn waits for the connection", () =>
  withNodes(({ devices: [device], other, presence, sql }) =>
    Effect.gen(function*() {
      const connect = (connectionId: string) => presence.record([online(device, connectionId)])
      yield* connect("first")
      const [, [outcome]] = yield* inTurn(sql, "presence", device, [
        other.commands.enqueue([command(device)]),
        connect("second")
      ])
      assert.strictEqual(outcome!._tag, "Replaced")
      const { claim } = outcome as typeof outcome & { readonly claim?: { readonly waiting: boolean } }
      assert.isTrue(claim!.waiting)
    })
  ))

it.live("connections and commands with desired values, in another order, do not wait for each other in a circle", () =>
  withNodes(({ devices, other, presence, shadows, sql }) =>
    Effect.gen(function*() {
      yield* presence.record(devices.map((device) => online(device, "first")))
      const [outcomes, enqueued] = yield* inTurn(sql, "presence", devices[0], [
        presence.record(devices.map((device) => online(device, "second"))),
        other.audit.commit(
          other.commands.enqueue(
            devices.toReversed().map((device) => ({ ...command(device), desire: next(device.deviceId).modify }))
          ),
          () => []
        )
      ])
      assert.deepStrictEqual(outcomes.map(({ _tag }) => _tag), ["Replaced", "Replaced"])
      assert.deepStrictEqual(
        enqueued.map((result) => typeof result === "object" && result.command.deviceId),
        devices.toReversed().map(({ deviceId }) => deviceId)
      )
      assert.deepStrictEqual(
        (yield* shadows.modify(devices.map(({ deviceId }) => next(deviceId)))).flatMap((found) =>
          found._tag === "Some" ? [found.value] : []
        ),
        [1, 1]
      )
    })
  ))

it.live("writers of the same shadows, in another order, do not wait for each other in a circle", () =>
  withNodes(({ devices, other, shadows, sql }) =>
    Effect.gen(function*() {
      const modifications = devices.map(({ deviceId }) => next(deviceId))
      yield* shadows.modify(modifications)
      const results = yield* inTurn(sql, "shadow", devices[0], [
        shadows.modify(modifications),
        other.shadows.modify(modifications.toReversed())
      ])
      const versions = results.map((found) => found.map((version) => version._tag === "Some" ? version.value : -1))
      assert.sameDeepMembers(versions, [[1, 1], [2, 2]])
    })
  ))
