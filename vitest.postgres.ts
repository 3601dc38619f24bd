/**
 * One PostgreSQL server for all test files; each file makes a database of its own,
 * most of them as a copy of one that has the tables.
 */
import { EmbeddedPostgres } from "@device-cloud/postgres-embedded"
import { PgClient, PgConnection } from "@effect/sql-pg"
import { Effect, Exit, Layer, Redacted, Scope } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { TestProject } from "vitest/node"
// Not the whole package: all test runs wait for this.
import * as Migrations from "./packages/storage-pg/src/Migrations.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly postgresUrl: string
    /** A database with all tables and nothing in them, to copy. */
    readonly templateUrl: string
  }
}

/** Visits each of some hundred databases once a minute, in a process of its own: a tenth of the processor time of all tests. */
const withoutVacuum = (url: Redacted.Redacted) =>
  Effect.scoped(Effect.gen(function*() {
    const connection = yield* PgConnection.make({ url })
    yield* connection.query("ALTER SYSTEM SET autovacuum = off")
    yield* connection.query("SELECT pg_reload_conf()")
  }))

export const setup = async (project: TestProject) => {
  const directory = await mkdtemp(join(tmpdir(), "device-cloud-test-"))
  const scope = Scope.makeUnsafe()
  const { template, url } = await Effect.runPromise(
    Effect.gen(function*() {
      const { url } = yield* EmbeddedPostgres.make({ directory, durable: false })
      yield* withoutVacuum(url)
      const template = yield* EmbeddedPostgres.createDatabase(url)
      yield* Effect.scoped(Layer.build(Migrations.layer.pipe(Layer.provide(PgClient.layer({ url: template })))))
      return { template, url }
    }).pipe(Scope.provide(scope))
  )
  project.provide("postgresUrl", Redacted.value(url))
  project.provide("templateUrl", Redacted.value(template))
  return async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    await rm(directory, { recursive: true, force: true })
  }
}
