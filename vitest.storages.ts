/**
 * The storages that tests run on. Each test file gets a database of its own.
 */
import type { DeviceCloud, ObjectStore, StoreHealth } from "@device-cloud/core"
import { EmbeddedPostgres } from "@device-cloud/postgres-embedded"
import * as StorageMemory from "@device-cloud/storage-memory"
import * as StoragePg from "@device-cloud/storage-pg"
import * as StorageSqlite from "@device-cloud/storage-sqlite"
import { TestKeyRing } from "@device-cloud/testing"
import { Effect, Layer, Redacted } from "effect"
import type { SqlClient } from "effect/sql"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { inject } from "vitest"

declare module "vitest" {
  interface ProvidedContext {
    /** Tests of random cases run one of so many. */
    readonly share: number
  }
}

/** One of so many random cases runs, `npm run fuzz` apart. */
export const share = inject("share")

/** Makes an empty database on the PostgreSQL of the tests. Its URL. */
export const newEmptyDatabase = Effect.suspend(() =>
  EmbeddedPostgres.createDatabase(Redacted.make(inject("postgresUrl")))
)

/** Makes one with all tables of `storage-pg`, in a third of the time that it takes to make the tables. */
export const newDatabase = Effect.suspend(() =>
  EmbeddedPostgres.createDatabase(Redacted.make(inject("postgresUrl")), Redacted.make(inject("templateUrl")))
)

export const postgres: Layer.Layer<DeviceCloud.Stores | StoreHealth, unknown> = Layer.unwrap(
  Effect.map(newDatabase, (url) => StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer)))
)

/** How many statements on the database wait for a lock. `text`: of those alone that have it. */
export const blockedStatements = (sql: SqlClient.SqlClient, text = "") =>
  // Within a transaction, PostgreSQL would go on telling of the connections that there were at first.
  Effect.andThen(
    sql`SELECT pg_stat_clear_snapshot()`,
    Effect.map(
      sql<{ readonly count: number }>`SELECT count(*)::int AS count FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' AND strpos(query, ${text}) > 0`,
      ([row]) => row!.count
    )
  )

/** A directory that goes with the scope. */
export const temporaryDirectory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-sqlite-"))),
  (directory) => Effect.promise(() => rm(directory, { recursive: true }))
)

export const sqlite: Layer.Layer<DeviceCloud.Stores | StoreHealth | ObjectStore, unknown> = Layer.unwrap(
  Effect.map(
    temporaryDirectory,
    (directory) =>
      StorageSqlite.layer({ filename: join(directory, "test.sqlite") }).pipe(Layer.provide(TestKeyRing.layer))
  )
)

export const storages = [["memory", StorageMemory.layer], ["PostgreSQL", postgres]] as const

/** For the suites that go through most stores: the others would find no more on SQLite than the contracts do. */
export const everyStorage = [...storages, ["SQLite", sqlite]] as const
