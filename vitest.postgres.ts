/**
 * One PostgreSQL server for all test files; each file makes a database of its own.
 */
import { EmbeddedPostgres } from "@device-cloud/postgres-embedded"
import { Effect, Exit, Redacted, Scope } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { TestProject } from "vitest/node"

declare module "vitest" {
  interface ProvidedContext {
    readonly postgresUrl: string
  }
}

export const setup = async (project: TestProject) => {
  const directory = await mkdtemp(join(tmpdir(), "device-cloud-test-"))
  const scope = Scope.makeUnsafe()
  const { url } = await Effect.runPromise(
    Scope.provide(EmbeddedPostgres.make({ directory, durable: false }), scope)
  )
  project.provide("postgresUrl", Redacted.value(url))
  return async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    await rm(directory, { recursive: true, force: true })
  }
}
