/**
 * The health of the database.
 */
import { StoreHealth } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { storeError } from "./PgErrors.ts"

/** Runs `SELECT 1` for each check. */
export const layer: Layer.Layer<StoreHealth, never, PgClient.PgClient> = Layer.effect(
  StoreHealth,
  Effect.map(PgClient.PgClient, (sql) => ({
    check: Effect.asVoid(Effect.mapError(sql`SELECT 1`, storeError("StoreHealth.check")))
  }))
)
