import { StoreHealth } from "@device-cloud/core"
import { EmbeddedPostgres } from "@device-cloud/postgres-embedded"
import * as StoragePg from "@device-cloud/storage-pg"
import { eventually } from "@device-cloud/testing"
import { PgClient, PgConnection } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { chownSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { inspect } from "node:util"
import { fill, mayMount, smallDisk } from "../../../vitest.disks.ts"
import { newDatabase } from "../../../vitest.storages.ts"

const healthOf = (url: Redacted.Redacted) =>
  Effect.map(
    Layer.build(StoragePg.layerStoreHealth.pipe(Layer.provide(PgClient.layer({ url, multiplex: true })))),
    (context) => StoreHealth.pipe(Effect.provide(context))
  ).pipe(Effect.flatten)

/** A full disk, on which the directory is, makes the database unhealthy until there is room again. It answers all the time. */
const suffersFrom = Effect.fnUntraced(function*(directory: string, url: Redacted.Redacted) {
  const { check } = yield* healthOf(url)
  yield* check
  const filler = join(directory, "filler")
  fill(filler)
  const error = yield* eventually(Effect.flip(check))
  assert.include(inspect(error, { depth: 9 }), "No space left on device")
  const connection = yield* PgConnection.make({ url })
  assert.strictEqual((yield* connection.query("SELECT 1 AS one")).rows.length, 1)
  rmSync(filler)
  yield* check
})

it.live.runIf(mayMount)(
  "a database whose disk is full is not healthy until it has room again",
  () =>
    Effect.gen(function*() {
      const directory = yield* smallDisk(96)
      const { url } = yield* EmbeddedPostgres.make({ directory, durable: false })
      yield* suffersFrom(directory, url)
    })
)

it.live.runIf(mayMount)(
  "a database whose tables come to a disk of their own is not healthy while that one is full",
  () =>
    Effect.gen(function*() {
      const directory = yield* smallDisk(8)
      const url = yield* newDatabase
      const connection = yield* PgConnection.make({ url })
      const database = new URL(Redacted.value(url)).pathname.slice(1)
      const { rows: [shown] } = yield* connection.query("SHOW data_directory")
      const { gid, uid } = statSync(String(shown!["data_directory"]))
      chownSync(directory, uid, gid)
      const tablespace = `small_${database}`
      yield* Effect.acquireRelease(
        connection.query(`CREATE TABLESPACE ${tablespace} LOCATION '${directory}'`),
        () => Effect.orDie(connection.query(`DROP TABLESPACE ${tablespace}`))
      )
      yield* connection.query(`ALTER DATABASE ${database} SET default_tablespace = '${tablespace}'`)
      yield* suffersFrom(directory, url)
    })
)

it.live("a database that takes no writes is not healthy", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const connection = yield* PgConnection.make({ url })
    const name = new URL(Redacted.value(url)).pathname.slice(1)
    yield* connection.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`)
    const { check } = yield* healthOf(url)
    assert.include(String((yield* Effect.flip(check)).cause), "read-only")
  }))
