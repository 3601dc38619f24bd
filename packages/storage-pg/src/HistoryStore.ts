/**
 * The history of devices on PostgreSQL.
 */
import {
  Aggregate,
  type DeviceId,
  type HistoryAddition,
  type HistoryRange,
  type HistoryScan,
  HistoryStore,
  type Json
} from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Layer, Option, Stream } from "effect"
import type { Statement } from "effect/sql"
import { type Clients, clients } from "./LongReads.ts"
import { storeError } from "./PgErrors.ts"
import { eachByIndex, instant, instants, texts } from "./PgParameters.ts"

/** Stands alone: its tables refer to no others. */
export const layer: Layer.Layer<HistoryStore, never, PgClient.PgClient> = Layer.effect(
  HistoryStore,
  Effect.map(clients, (both) => make(both))
)

interface Row {
  readonly name: string
  readonly time: Date
  readonly value: Json
}

interface ScannedRow extends Row {
  readonly id: bigint
}

/** Entries of one statement. */
const pageSize = 1000

const millisOfDay = 86_400_000

const make = ({ reads, sql }: Clients): HistoryStore["Service"] => {
  const select = (
    table: "property_sample" | "device_event",
    name: "property_id" | "event_id",
    where: Statement.Fragment,
    { end, limit, order, start }: HistoryRange
  ) => {
    const direction = sql.literal(order === "asc" ? "ASC" : "DESC")
    return reads<Row>`
      SELECT ${sql(name)} AS name, time, value FROM ${sql(table)}
      WHERE ${where} AND time BETWEEN ${instant(start)} AND ${instant(end)}
      ORDER BY time ${direction}, id ${direction} LIMIT ${limit}`
  }

  const append = (additions: ReadonlyArray<HistoryAddition>) => {
    const samples = additions.flatMap(({ deviceId, samples }) => samples.map((sample) => ({ deviceId, ...sample })))
    const events = additions.flatMap(({ deviceId, events }) => events.map((event) => ({ deviceId, ...event })))
    const parts: Array<Statement.Fragment> = []
    if (samples.length > 0) {
      parts.push(sql`sampled AS (
        INSERT INTO property_sample (device_id, property_id, time, value)
        SELECT device_id, property_id, time, value FROM (SELECT * FROM unnest(
          ${texts(samples.map(({ deviceId }) => deviceId))},
          ${texts(samples.map(({ propertyId }) => propertyId))},
          ${instants(samples.map(({ time }) => time))},
          ${texts(samples.map(({ value }) => JSON.stringify(value)))}::json[]
        ) WITH ORDINALITY ${eachByIndex(sql, samples.length)}) AS sample (device_id, property_id, time, value, place)
        WHERE NOT EXISTS (
          SELECT FROM property_sample AS known
          WHERE known.device_id = sample.device_id AND known.property_id = sample.property_id
            AND known.time = sample.time AND known.value::text = sample.value::text
        )
        ORDER BY place
      )`)
    }
    if (events.length > 0) {
      parts.push(sql`happened AS (
        INSERT INTO device_event (device_id, event_id, time, value)
        SELECT device_id, event_id, time, value FROM (SELECT * FROM unnest(
          ${texts(events.map(({ deviceId }) => deviceId))},
          ${texts(events.map(({ eventId }) => eventId))},
          ${instants(events.map(({ time }) => time))},
          ${texts(events.map(({ value }) => JSON.stringify(value)))}::json[]
        ) WITH ORDINALITY ${eachByIndex(sql, events.length)}) AS event (device_id, event_id, time, value, place)
        WHERE NOT EXISTS (
          SELECT FROM device_event AS known
          WHERE known.device_id = event.device_id AND known.event_id = event.event_id
            AND known.time = event.time AND known.value::text = event.value::text
        )
        ORDER BY place
      )`)
    }
    return parts.length === 0 ? Effect.void : Effect.asVoid(sql`WITH ${sql.csv(parts)} SELECT 1`)
  }

  const scan = (deviceId: DeviceId, { end, propertyIds, start }: HistoryScan) =>
    Stream.paginate({ name: "", time: new Date(0), id: 0n }, (after: Omit<ScannedRow, "value">) =>
      Effect.map(
        reads<ScannedRow>`
          SELECT property_id AS name, time, id, value FROM property_sample
          WHERE device_id = ${deviceId} AND time BETWEEN ${instant(start)} AND ${instant(end)}
            AND (property_id, time, id) > (${after.name}, ${instant(after.time.getTime())}, ${after.id})
            AND ${propertyIds === undefined ? sql`true` : sql`property_id = ANY(${texts(propertyIds)})`}
          ORDER BY property_id, time, id LIMIT ${pageSize}`,
        (rows) =>
          [
            rows.length === 0
              ? []
              : [rows.map(({ name, time, value }) => ({ propertyId: name, time: time.getTime(), value }))],
            rows.length < pageSize ? Option.none() : Option.some(rows.at(-1)!)
          ] as const
      ))

  const prune = Effect.fnUntraced(function*(table: "property_sample" | "device_event", oldest: number) {
    for (let count = pageSize; count === pageSize;) {
      const [row] = yield* sql<{ readonly count: number }>`
        WITH old AS (
          DELETE FROM ${sql(table)} WHERE ctid = ANY(ARRAY(
            SELECT ctid FROM ${sql(table)} WHERE time < ${instant(oldest)} LIMIT ${pageSize}
          )) RETURNING 1
        )
        SELECT count(*)::int AS count FROM old`
      count = row!.count
    }
  })

  return {
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
    aggregate: (deviceId, propertyId, intervals) =>
      Effect.suspend(() => {
        const aggregate = new Aggregate(intervals)
        return scan(deviceId, { ...intervals, propertyIds: [propertyId] }).pipe(
          Stream.runForEach((samples) =>
            Effect.sync(() => {
              for (const { time, value } of samples) aggregate.add(time, value)
            })
          ),
          Effect.as(aggregate),
          Effect.map((filled) => filled.buckets()),
          Effect.mapError(storeError("HistoryStore.aggregate"))
        )
      }),
    scan: (deviceId, range) => Stream.mapError(scan(deviceId, range), storeError("HistoryStore.scan")),
    append: (additions) => Effect.mapError(append(additions), storeError("HistoryStore.append")),
    remove: (deviceIds) =>
      sql`
        WITH samples AS (DELETE FROM property_sample WHERE device_id = ANY(${texts(deviceIds)}))
        DELETE FROM device_event WHERE device_id = ANY(${texts(deviceIds)})`.pipe(
        Effect.asVoid,
        Effect.mapError(storeError("HistoryStore.remove"))
      ),
    prune: ({ keepDays }) =>
      keepDays === 0 ? Effect.void : Clock.currentTimeMillis.pipe(
        Effect.map((now) => now - keepDays * millisOfDay),
        Effect.tap((oldest) => prune("property_sample", oldest)),
        Effect.flatMap((oldest) => prune("device_event", oldest)),
        Effect.mapError(storeError("HistoryStore.prune"))
      )
  }
}
