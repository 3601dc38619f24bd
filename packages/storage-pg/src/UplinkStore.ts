/**
 * The transaction of the uplink on PostgreSQL.
 */
import { UplinkStore } from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { ShadowWriter } from "./ShadowWriter.ts"

const make = Effect.map(
  ShadowWriter,
  (writer) => UplinkStore.of({ commit: (batch) => writer.commit("UplinkStore.commit", batch) })
)

export const layer: Layer.Layer<UplinkStore, never, PgClient.PgClient> = Layer.effect(UplinkStore, make).pipe(
  Layer.provide(ShadowWriter.layer)
)
