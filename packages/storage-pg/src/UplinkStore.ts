/**
 * The transaction of the uplink on PostgreSQL.
 */
import { UplinkStore } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { ShadowWriter } from "./ShadowWriter.ts"
import * as UplinkReceipts from "./UplinkReceipts.ts"

/** Part of the group that is replaced together: a commit writes shadows, history, commands and executions. */
export const layer: Layer.Layer<UplinkStore, never, PgClient.PgClient> = Layer.effect(
  UplinkStore,
  Effect.suspend(() => make)
).pipe(
  Layer.provide(ShadowWriter.layer)
)

const make = Effect.gen(function*() {
  const writer = yield* ShadowWriter
  const { certainly } = yield* UplinkReceipts.make(yield* PgClient.PgClient)
  return UplinkStore.of({ commit: (batch) => writer.commit("UplinkStore.commit", batch, certainly) })
})
