import * as StoragePg from "@device-cloud/storage-pg"
import { TestKeyRing } from "@device-cloud/testing"
import { ObjectStoreContract, suites } from "@device-cloud/testing/contracts"
import { Effect, Layer } from "effect"
import { newDatabase, postgres } from "../../../vitest.storages.ts"

suites("PostgreSQL", postgres)

ObjectStoreContract.suite(
  "PostgreSQL",
  Layer.unwrap(Effect.map(
    newDatabase,
    (url) => StoragePg.layerCloud({ url }).pipe(Layer.provide(TestKeyRing.layer))
  ))
)
