/**
 * Traces of devices, on PostgreSQL.
 */
import {
  type DeviceId,
  type NotedEntries,
  type PlacedEntry,
  type TracedDevice,
  type TraceEntry,
  TraceStore
} from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { storeError } from "./PgErrors.ts"
import { instant, texts, wholeNumbers } from "./PgParameters.ts"

/** Can be replaced alone. Its rows go with their device. */
export const layer: Layer.Layer<TraceStore, never, PgClient.PgClient> = Layer.effect(
  TraceStore,
  Effect.map(PgClient.PgClient, (sql) => make(sql))
)

const make = (sql: PgClient.PgClient) => {
  const start: TraceStore["Service"]["start"] = Effect.fnUntraced(
    function*({ deviceId, max, now, projectId, until }) {
      // One after the other in a project, so that they count each other.
      yield* sql`SELECT id FROM project WHERE id = ${projectId} FOR NO KEY UPDATE`
      const started = yield* sql`
        -- Numbers of a trace that was removed were smaller.
        INSERT INTO device_trace (device_id, project_id, until, last_seq)
        SELECT device_id, project_id, ${instant(until)}, ${now}::float8::bigint FROM device
        WHERE device_id = ${deviceId} AND project_id = ${projectId} AND (
          SELECT count(*) FROM device_trace AS other
          WHERE other.project_id = ${projectId} AND other.until > ${instant(now)} AND other.device_id <> ${deviceId}
        ) < ${max}
        -- One that is removed at the same moment is gone.
        FOR KEY SHARE
        ON CONFLICT (device_id) DO UPDATE SET until = excluded.until
        RETURNING device_id`
      return started.length > 0
    },
    sql.withTransaction,
    Effect.mapError(storeError("TraceStore.start"))
  )

  /** Makes room for entries. Returns the last number of each device after that. */
  const reserve = Effect.fnUntraced(function*(noted: ReadonlyArray<NotedEntries>) {
    const deviceIds = texts(noted.map(({ deviceId }) => deviceId))
    // In one order, so that nodes that append at the same time wait for each other in one direction.
    yield* sql`
      SELECT device_id FROM device_trace WHERE device_id = ANY(${deviceIds}) ORDER BY device_id FOR NO KEY UPDATE`
    const rows = yield* sql<{ readonly device_id: DeviceId; readonly last_seq: number }>`
      UPDATE device_trace AS trace
      SET last_seq = trace.last_seq + noted.entries::bigint, dropped = trace.dropped + noted.dropped::bigint
      FROM unnest(
        ${deviceIds},
        ${wholeNumbers(noted.map(({ entries }) => entries.length))},
        ${wholeNumbers(noted.map(({ dropped }) => dropped))}
      ) AS noted (device_id, entries, dropped)
      WHERE trace.device_id = noted.device_id
      RETURNING trace.device_id, trace.last_seq::float8 AS last_seq`
    return new Map(rows.map(({ device_id, last_seq }) => [device_id, last_seq]))
  })

  const append: TraceStore["Service"]["append"] = Effect.fnUntraced(
    function*(noted, keep) {
      const lastOf = yield* reserve(noted)
      const added = noted.flatMap(({ deviceId, entries }) => {
        const last = lastOf.get(deviceId)
        return last === undefined
          ? []
          : entries.map((entry, i) => ({ deviceId, seq: last - entries.length + 1 + i, entry: JSON.stringify(entry) }))
      })
      yield* sql`
        INSERT INTO trace_entry (device_id, seq, entry)
        SELECT device_id, seq::bigint, entry FROM unnest(
          ${texts(added.map(({ deviceId }) => deviceId))},
          ${wholeNumbers(added.map(({ seq }) => seq))},
          ${texts(added.map(({ entry }) => entry))}
        ) AS added (device_id, seq, entry)`
      yield* sql`
        DELETE FROM trace_entry AS entry USING unnest(
          ${texts([...lastOf.keys()])}, ${wholeNumbers([...lastOf.values()].map((last) => last - keep))}
        ) AS old (device_id, seq)
        WHERE entry.device_id = old.device_id AND entry.seq <= old.seq::bigint`
    },
    sql.withTransaction,
    Effect.mapError(storeError("TraceStore.append"))
  )

  const entriesOf = (deviceId: DeviceId, after: number | undefined, limit: number) =>
    after === undefined
      ? sql<EntryRow>`
        SELECT seq::float8 AS seq, entry FROM (
          SELECT seq, entry FROM trace_entry WHERE device_id = ${deviceId} ORDER BY seq DESC LIMIT ${limit}
        ) AS latest ORDER BY seq`
      : sql<EntryRow>`
        SELECT seq::float8 AS seq, entry FROM trace_entry
        WHERE device_id = ${deviceId} AND seq > ${after}::float8::bigint ORDER BY seq LIMIT ${limit}`

  return TraceStore.of({
    start,
    stop: (deviceId, now) =>
      sql`
        UPDATE device_trace SET until = ${instant(now)}
        WHERE device_id = ${deviceId} AND until > ${instant(now)} RETURNING device_id`.pipe(
        Effect.map(({ length }) => length > 0),
        Effect.mapError(storeError("TraceStore.stop"))
      ),
    active: (now) =>
      sql<Omit<TracedDevice, "until"> & { readonly until: Date }>`
        SELECT device_id AS "deviceId", product_key AS "productKey", device_name AS "deviceName", until
        FROM device_trace JOIN device USING (device_id) WHERE until > ${instant(now)}`.pipe(
        Effect.map((rows) => rows.map(({ until, ...device }) => ({ ...device, until: until.getTime() }))),
        Effect.mapError(storeError("TraceStore.active"))
      ),
    append,
    read: Effect.fnUntraced(
      function*(deviceId, { after, limit }) {
        const [trace] = yield* sql<{ readonly until: Date; readonly dropped: number }>`
          SELECT until, dropped::float8 AS dropped FROM device_trace WHERE device_id = ${deviceId}`
        if (trace === undefined) return Option.none()
        const entries = yield* entriesOf(deviceId, after, limit)
        return Option.some({ until: trace.until.getTime(), dropped: trace.dropped, entries: entries.map(fromRow) })
      },
      Effect.mapError(storeError("TraceStore.read"))
    ),
    prune: (before) =>
      sql`
        WITH ended AS (
          SELECT device_id FROM device_trace WHERE until < ${instant(before)} ORDER BY device_id FOR UPDATE
        )
        DELETE FROM device_trace USING ended WHERE device_trace.device_id = ended.device_id`.pipe(
        Effect.asVoid,
        Effect.mapError(storeError("TraceStore.prune"))
      )
  })
}

interface EntryRow {
  readonly seq: number
  readonly entry: string
}

const fromRow = ({ entry, seq }: EntryRow): PlacedEntry => ({ seq, entry: JSON.parse(entry) as TraceEntry })
