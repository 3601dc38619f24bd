/**
 * Shadows on PostgreSQL.
 */
import { type ShadowModification, ShadowStore, type UplinkFacts } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { shadowFromRow, type ShadowRow, ShadowWriter } from "./ShadowWriter.ts"
import { storeError } from "./PgErrors.ts"

/** Part of the group that is replaced together: `UplinkStore` and `CommandStore` write shadows too. */
export const layer: Layer.Layer<ShadowStore, never, PgClient.PgClient> = Layer.effect(
  ShadowStore,
  Effect.suspend(() => make)
).pipe(
  Layer.provide(ShadowWriter.layer)
)

const noFacts: UplinkFacts = { happened: [], reactions: [] }

const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const writer = yield* ShadowWriter

  return ShadowStore.of({
    get: (deviceId) =>
      writer.read([deviceId]).pipe(
        Effect.map((shadows) => Option.fromUndefinedOr(shadows.get(deviceId))),
        Effect.mapError(storeError("ShadowStore.get"))
      ),
    sample: (productKey, limit) =>
      sql<ShadowRow>`
        WITH newest AS (
          SELECT device_id FROM device WHERE product_key = ${productKey}
          ORDER BY id DESC LIMIT ${limit}
        )
        SELECT shadow.* FROM newest JOIN shadow USING (device_id)`.pipe(
        Effect.map((rows) => rows.map(shadowFromRow)),
        Effect.mapError(storeError("ShadowStore.sample"))
      ),
    modify: <A>(modifications: ReadonlyArray<ShadowModification<A>>) =>
      writer.commit("ShadowStore.modify", {
        devices: modifications.map(({ deviceId, modify }) => ({
          deviceId,
          update: (shadow) => [...modify(shadow), noFacts] as const
        })),
        commands: []
      })
  })
})
