/**
 * Randoms that devices have used, on PostgreSQL.
 */
import { maxRandoms, ReplayStore } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { storeError } from "./PgErrors.ts"
import { instant } from "./PgParameters.ts"

/** Stands alone: its table refers to no other. */
export const layer: Layer.Layer<ReplayStore, never, PgClient.PgClient> = Layer.effect(
  ReplayStore,
  Effect.map(PgClient.PgClient, (sql) => make(sql))
)

const make = (sql: PgClient.PgClient) =>
  ReplayStore.of({
    use: ({ at, deviceId, random, until }) =>
      sql<{ readonly is_fresh: boolean; readonly is_used: boolean }>`
        WITH counted AS (
          SELECT count(*) AS amount FROM (
            SELECT FROM uplink_random WHERE device_id = ${deviceId} AND until >= ${instant(at)}
            LIMIT ${maxRandoms}
          ) AS of_device
        ), marked AS (
          INSERT INTO uplink_random AS known (device_id, random, until)
          SELECT ${deviceId}, ${random}, ${instant(until)} FROM counted WHERE amount < ${maxRandoms}
          ON CONFLICT (device_id, random) DO UPDATE SET until = excluded.until WHERE known.until < ${instant(at)}
          RETURNING random
        )
        SELECT EXISTS (SELECT FROM marked) AS is_fresh,
          amount < ${maxRandoms} OR EXISTS (
            SELECT FROM uplink_random WHERE device_id = ${deviceId} AND random = ${random} AND until >= ${instant(at)}
          ) AS is_used
        FROM counted`.pipe(
        Effect.map(([row]) => row!.is_fresh ? "fresh" as const : row!.is_used ? "used" as const : "full" as const),
        Effect.mapError(storeError("ReplayStore.use"))
      ),
    prune: ({ endedBefore, limit }) =>
      sql<{ readonly random: string }>`
        DELETE FROM uplink_random WHERE ctid = ANY(ARRAY(
          SELECT ctid FROM uplink_random WHERE until < ${instant(endedBefore)} LIMIT ${limit}
        )) RETURNING random`.pipe(
        Effect.map((rows) => rows.length),
        Effect.mapError(storeError("ReplayStore.prune"))
      )
  })
