/**
 * Randoms that devices have used, on SQLite.
 */
import { maxRandoms, ReplayStore } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { Sqlite } from "./Sqlite.ts"

/** Stands alone: its table refers to no other. */
export const layer: Layer.Layer<ReplayStore, never, Sqlite> = Layer.effect(
  ReplayStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

const make = (sql: Sqlite["Service"]) =>
  ReplayStore.of({
    use: ({ at, deviceId, random, until }) =>
      sql.write("ReplayStore.use", () => {
        const known = sql.get<{ readonly until: number }>(
          "SELECT until FROM uplink_random WHERE device_id = ? AND random = ?",
          [deviceId, random]
        )
        if (known !== undefined && known.until >= at) return "used"
        const { count } = sql.get<{ readonly count: number }>(
          "SELECT count(*) AS count FROM uplink_random WHERE device_id = ? AND until >= ?",
          [deviceId, at]
        )!
        if (count >= maxRandoms) return "full"
        sql.run("INSERT OR REPLACE INTO uplink_random (device_id, random, until) VALUES (?, ?, ?)", [
          deviceId,
          random,
          until
        ])
        return "fresh"
      }),
    prune: ({ endedBefore, limit }) =>
      sql.write("ReplayStore.prune", () =>
        sql.run("DELETE FROM uplink_random WHERE rowid IN (SELECT rowid FROM uplink_random WHERE until < ? LIMIT ?)", [
          endedBefore,
          limit
        ]))
  })
