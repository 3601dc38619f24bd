import { NodeBus } from "@device-cloud/core"
import * as StoragePg from "@device-cloud/storage-pg"
import { eventually } from "@device-cloud/testing"
import { NodeBusContract } from "@device-cloud/testing/contracts"
import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer } from "effect"
import { newDatabase } from "../../../vitest.storages.ts"

NodeBusContract.suite(
  "PostgreSQL",
  Effect.gen(function*() {
    const url = yield* newDatabase
    const client = PgClient.layer({ url, multiplex: true })
    const sql = Context.get(yield* Layer.build(client), PgClient.PgClient)
    return {
      node: Layer.build(Layer.fresh(StoragePg.layerNodeBus.pipe(Layer.provide(client)))).pipe(
        Effect.map((node) => Context.get(node, NodeBus))
      ),
      breakConnections: eventually(
        sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND query LIKE 'LISTEN%'`,
        { until: ({ length }) => length > 0 }
      ).pipe(Effect.asVoid)
    }
  })
)
