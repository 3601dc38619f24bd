/**
 * Shadows on SQLite.
 */
import { ShadowStore } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { findShadow, modifyShadow, shadowFromRow, type ShadowRow } from "./ShadowRow.ts"
import { Sqlite } from "./Sqlite.ts"

/** Part of the group that is replaced together: `UplinkStore` and `CommandStore` write shadows too. */
export const layer: Layer.Layer<ShadowStore, never, Sqlite> = Layer.effect(
  ShadowStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

const make = (sql: Sqlite["Service"]) =>
  ShadowStore.of({
    get: (deviceId) => sql.read("ShadowStore.get", () => Option.fromUndefinedOr(findShadow(sql, deviceId))),
    sample: (productKey, limit) =>
      sql.read("ShadowStore.sample", () =>
        sql.all<ShadowRow>(
          `SELECT shadow.* FROM (
            SELECT device_id FROM device WHERE product_key = ? ORDER BY id DESC LIMIT ?
          ) JOIN shadow USING (device_id)`,
          [productKey, limit]
        ).map(shadowFromRow)),
    modify: (modifications) =>
      sql.write("ShadowStore.modify", () => modifications.map((modification) => modifyShadow(sql, modification)))
  })
