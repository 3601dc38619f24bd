import { EmbeddedPostgres } from "@device-cloud/postgres-embedded"
import * as StoragePg from "@device-cloud/storage-pg"
import { TestKeyRing } from "@device-cloud/testing"
import { ObjectStoreContract, suites } from "@device-cloud/testing/contracts"
import { Effect, Layer, Redacted } from "effect"
import { inject } from "vitest"
import { postgres } from "../../../vitest.storages.ts"

suites("PostgreSQL", postgres)

ObjectStoreContract.suite(
  "PostgreSQL",
  Layer.unwrap(Effect.map(
    Effect.suspend(() => EmbeddedPostgres.createDatabase(Redacted.make(inject("postgresUrl")))),
    (url) => StoragePg.layerCloud({ url }).pipe(Layer.provide(TestKeyRing.layer))
  ))
)
