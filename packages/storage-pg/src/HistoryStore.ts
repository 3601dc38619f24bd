/**
 * The history of devices on PostgreSQL.
 */
import { type HistoryRange, HistoryStore, type Json } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import type { Statement } from "effect/sql"
import { storeError } from "./PgErrors.ts"
import { instant } from "./PgParameters.ts"

interface Row {
  readonly name: string
  readonly time: Date
  readonly value: Json
}

const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient

  const select = (
    table: "property_sample" | "device_event",
    name: "property_id" | "event_id",
    where: Statement.Fragment,
    { end, limit, order, start }: HistoryRange
  ) => {
    const direction = sql.literal(order === "asc" ? "ASC" : "DESC")
    return sql<Row>`
      SELECT ${sql(name)} AS name, time, value FROM ${sql(table)}
      WHERE ${where} AND time BETWEEN ${instant(start)} AND ${instant(end)}
      ORDER BY time ${direction}, id ${direction} LIMIT ${limit}`
  }

  const prune = (table: "property_sample" | "device_event", storedBefore: number, limit: number) =>
    Effect.map(
      sql<{ readonly count: bigint }>`
        WITH old AS (
          DELETE FROM ${sql(table)} WHERE ctid = ANY(ARRAY(
            SELECT ctid FROM ${sql(table)} WHERE stored_at < ${instant(storedBefore)} LIMIT ${limit}
          )) RETURNING 1
        )
        SELECT count(*) AS count FROM old`,
      ([row]) => Number(row!.count)
    )

  return HistoryStore.of({
    samples: (deviceId, propertyId, range) =>
      select(
        "property_sample",
        "property_id",
        sql`device_id = ${deviceId} AND property_id = ${propertyId}`,
        range
      ).pipe(
        Effect.map((rows) => rows.map(({ time, value }) => ({ propertyId, time: time.getTime(), value }))),
        Effect.mapError(storeError("HistoryStore.samples"))
      ),
    events: (deviceId, eventId, range) =>
      select(
        "device_event",
        "event_id",
        eventId === undefined ? sql`device_id = ${deviceId}` : sql`device_id = ${deviceId} AND event_id = ${eventId}`,
        range
      ).pipe(
        Effect.map((rows) => rows.map(({ name, time, value }) => ({ eventId: name, time: time.getTime(), value }))),
        Effect.mapError(storeError("HistoryStore.events"))
      ),
    prune: ({ limit, storedBefore }) =>
      Effect.all([prune("property_sample", storedBefore, limit), prune("device_event", storedBefore, limit)]).pipe(
        Effect.map(([samples, events]) => samples + events),
        Effect.mapError(storeError("HistoryStore.prune"))
      )
  })
})

export const layer: Layer.Layer<HistoryStore, never, PgClient.PgClient> = Layer.effect(HistoryStore, make)
