import * as StoragePg from "@device-cloud/storage-pg"
import { EmbeddedPostgres } from "@device-cloud/testing"
import { suites } from "@device-cloud/testing/contracts"
import { Effect, Layer, Redacted } from "effect"
import { inject } from "vitest"

const stores = Layer.unwrap(
  Effect.map(
    EmbeddedPostgres.createDatabase(Redacted.make(inject("postgresUrl"))),
    (url) => StoragePg.layer({ url })
  )
)

suites("PostgreSQL", stores)
