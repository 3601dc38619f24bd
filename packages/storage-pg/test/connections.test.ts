import { AuditStore, defaultProjectId, ExecutionStore, QuotaStore } from "@device-cloud/core"
import * as StoragePg from "@device-cloud/storage-pg"
import { eventually, TestKeyRing } from "@device-cloud/testing"
import { PgClient, PgConnection } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Cause, Effect, Layer, Redacted } from "effect"
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs"
import { inspect } from "node:util"
import { newDatabase } from "../../../vitest.storages.ts"

const sockets = "/proc/net/tcp"

/** Returns the timers of the connections of this process to a port of 127.0.0.1, as Linux numbers them. */
const timersTo = (port: number): ReadonlyArray<string> => {
  const own = new Set(
    readdirSync("/proc/self/fd").flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1] ?? []
      } catch {
        // The directory itself, which is closed by now.
        return []
      }
    })
  )
  const remote = `:${port.toString(16).toUpperCase().padStart(4, "0")}`
  return readFileSync(sockets, "utf8").split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , address, , , , , , , inode]) => address?.endsWith(remote) === true && own.has(inode!))
    .map(([, , , , , timer]) => timer!.slice(0, 2))
}

it.live.skipIf(!existsSync(sockets))(
  "a connection whose other end is gone without a word is found out",
  () =>
    Effect.gen(function*() {
      const url = yield* newDatabase
      yield* Layer.build(StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer)))
      const keepAliveTimer = "02"
      yield* eventually(Effect.sync(() => timersTo(Number(new URL(Redacted.value(url)).port))), {
        // Those for statements, and the one that hears other nodes.
        until: (timers) => timers.length > 1 && timers.every((timer) => timer === keepAliveTimer)
      })
    }).pipe(Effect.scoped)
)

const storage = (url: Redacted.Redacted) =>
  StoragePg.layerClient.pipe(Layer.provideMerge(PgClient.layer({ url })), Layer.provide(TestKeyRing.layer))

it.live("a transaction whose connection ends fails and can be repeated, also one in another", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    yield* Effect.gen(function*() {
      const audit = yield* AuditStore
      const quotas = yield* QuotaStore
      const sql = yield* PgClient.PgClient
      const cut = sql`SELECT pg_terminate_backend(pg_backend_pid())`
      const alone = audit.commit(cut, () => [])
      const within = quotas.within({ projectId: defaultProjectId, quota: "scenes", amount: 1, limit: 10 }, alone)
      for (const transaction of [alone, within]) {
        const error = yield* Effect.flip(transaction)
        assert.isTrue(error._tag === "StoreError" && error.retryable)
      }
    }).pipe(Effect.provide(storage(url)))
  }).pipe(Effect.scoped))

const nameOf = (url: Redacted.Redacted) => new URL(Redacted.value(url)).pathname.slice(1)

/** An operator does `refuse`, then `admit`; what fails meanwhile can be repeated, and goes on by itself. */
const survives = Effect.fnUntraced(function*(
  { operator, refuse, admit, sqlState, url }: {
    readonly operator: PgConnection.PgConnection
    readonly url: Redacted.Redacted
    readonly refuse: string
    readonly admit: string
    readonly sqlState: string
  }
) {
  const quotas = yield* Effect.provide(QuotaStore, yield* Layer.build(storage(url)))
  const write = quotas.set(defaultProjectId, { scenes: 10 })
  yield* write
  const reconnected = operator.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${
      nameOf(url)
    }' AND pid <> pg_backend_pid()`
  )
  yield* Effect.andThen(operator.query(refuse), reconnected)
  const error = yield* eventually(Effect.flip(write), {
    until: ({ cause }) => inspect(cause, { depth: 9 }).includes(sqlState)
  })
  assert.isTrue(error.retryable)
  yield* Effect.andThen(operator.query(admit), reconnected)
  yield* eventually(write)
})

it.live("what a database that takes no writes refuses can be repeated", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const operator = yield* PgConnection.make({ url })
    const writes = `ALTER DATABASE ${nameOf(url)} SET default_transaction_read_only`
    yield* survives({ operator, url, refuse: `${writes} = on`, admit: `${writes} = off`, sqlState: "25006" })
  }).pipe(Effect.scoped))

it.live("what fails because a newer version has just changed a table can be repeated", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const operator = yield* PgConnection.make({ url })
    const client = PgClient.layer({ url, maxConnections: 1 })
    const layer = StoragePg.layerClient.pipe(Layer.provide([client, TestKeyRing.layer]))
    const executions = yield* Effect.provide(ExecutionStore, yield* Layer.build(layer))
    // A transaction with all columns of a table.
    const tick = executions.tick({ now: 0, limit: 1, step: () => ({ dueAt: null }) })
    yield* tick
    yield* operator.query("ALTER TABLE scene_timer ADD COLUMN added text")
    const error = yield* Effect.flip(tick)
    assert.include(inspect(error.cause, { depth: 9 }), "0A000")
    assert.isTrue(error.retryable)
    yield* tick
  }).pipe(Effect.scoped))

it.live.each([0, NaN])("%s connections are refused by name", (connections) =>
  Effect.gen(function*() {
    const url = Redacted.make("postgres://cloud@127.0.0.1/cloud")
    const storage = StoragePg.layer({ url, connections }).pipe(Layer.provide(TestKeyRing.layer))
    const cause = yield* Effect.flip(Effect.sandbox(Layer.build(storage)))
    assert.deepInclude(Cause.squash(cause), {
      name: "TypeError",
      message: `connections: expected a number from 1 on, not ${connections}`
    })
  }).pipe(Effect.scoped))

it.live.each([
  ["no address", undefined],
  ["an address in plain text", "postgres://cloud:secret@127.0.0.1/cloud"],
  ["an address of a variable that is not set", Redacted.make(undefined)]
])("%s is refused by name", ([, url]) =>
  Effect.gen(function*() {
    // @ts-expect-error for those that do not check types
    const storage = StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer))
    const cause = yield* Effect.flip(Effect.sandbox(Layer.build(storage)))
    assert.deepInclude(Cause.squash(cause), {
      name: "TypeError",
      message: "url: expected Redacted.make of a text such as postgres://host/database"
    })
  }).pipe(Effect.scoped))

it.live("what a database that takes no connections refuses can be repeated", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const elsewhere = new URL(Redacted.value(url))
    elsewhere.pathname = "/postgres"
    const operator = yield* PgConnection.make({ url: Redacted.make(elsewhere.href) })
    const connections = `ALTER DATABASE ${nameOf(url)} ALLOW_CONNECTIONS`
    yield* survives({ operator, url, refuse: `${connections} false`, admit: `${connections} true`, sqlState: "55000" })
  }).pipe(Effect.scoped))

/** A superuser with a password of its own. */
const newUser = Effect.fnUntraced(function*(operator: PgConnection.PgConnection, database: Redacted.Redacted) {
  const url = new URL(Redacted.value(database))
  url.username = `${nameOf(database)}_user`
  url.password = "first"
  yield* Effect.acquireRelease(
    operator.query(`CREATE ROLE ${url.username} SUPERUSER LOGIN PASSWORD 'first'`),
    () => Effect.orDie(operator.query(`DROP ROLE ${url.username}`))
  )
  return { user: url.username, url: Redacted.make(url.href) }
})

it.live("what fails because the database does not know the password can be repeated", () =>
  Effect.gen(function*() {
    const database = yield* newDatabase
    const operator = yield* PgConnection.make({ url: database })
    const { url, user } = yield* newUser(operator, database)
    const password = (value: string) => `ALTER ROLE ${user} PASSWORD '${value}'`
    yield* survives({ operator, url, refuse: password("second"), admit: password("first"), sqlState: "28P01" })
  }).pipe(Effect.scoped))

it.live("what fails because the user lacks a right can be repeated", () =>
  Effect.gen(function*() {
    const database = yield* newDatabase
    const operator = yield* PgConnection.make({ url: database })
    const { url, user } = yield* newUser(operator, database)
    const rights = (given: string) => `ALTER ROLE ${user} ${given}`
    yield* survives({ operator, url, refuse: rights("NOSUPERUSER"), admit: rights("SUPERUSER"), sqlState: "42501" })
  }).pipe(Effect.scoped))
