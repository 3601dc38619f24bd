/**
 * Traces of devices, on SQLite.
 */
import { type PlacedEntry, type TracedDevice, type TraceEntry, TraceStore } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { Sqlite } from "./Sqlite.ts"

/** Can be replaced alone. Its rows go with their device. */
export const layer: Layer.Layer<TraceStore, never, Sqlite> = Layer.effect(
  TraceStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

interface EntryRow {
  readonly seq: number
  readonly entry: string
}

const fromRow = ({ entry, seq }: EntryRow): PlacedEntry => ({ seq, entry: JSON.parse(entry) as TraceEntry })

const make = (sql: Sqlite["Service"]) =>
  TraceStore.of({
    start: ({ deviceId, max, now, projectId, until }) =>
      sql.write("TraceStore.start", () =>
        sql.run(
          // Numbers of a trace that was removed were smaller.
          `INSERT INTO device_trace (device_id, project_id, until, last_seq)
            SELECT device_id, project_id, ?, ? FROM device
            WHERE device_id = ? AND project_id = ? AND (
              SELECT count(*) FROM device_trace AS other
              WHERE other.project_id = ? AND other.until > ? AND other.device_id <> ?
            ) < ?
            ON CONFLICT (device_id) DO UPDATE SET until = excluded.until`,
          [until, now, deviceId, projectId, projectId, now, deviceId, max]
        ) > 0),
    stop: (deviceId, now) =>
      sql.write("TraceStore.stop", () =>
        sql.run("UPDATE device_trace SET until = ? WHERE device_id = ? AND until > ?", [now, deviceId, now]) > 0),
    active: (now) =>
      sql.read("TraceStore.active", () =>
        sql.all<TracedDevice>(
          `SELECT device_id AS deviceId, product_key AS productKey, device_name AS deviceName, until
            FROM device_trace JOIN device USING (device_id) WHERE until > ?`,
          [now]
        )),
    append: (noted, keep) =>
      sql.write("TraceStore.append", () => {
        for (const { deviceId, dropped, entries } of noted) {
          const trace = sql.get<{ readonly last_seq: number }>(
            "SELECT last_seq FROM device_trace WHERE device_id = ?",
            [deviceId]
          )
          if (trace === undefined) {
            continue
          }
          for (const [i, entry] of entries.entries()) {
            sql.run("INSERT INTO trace_entry (device_id, seq, entry) VALUES (?, ?, ?)", [
              deviceId,
              trace.last_seq + 1 + i,
              JSON.stringify(entry)
            ])
          }
          const last = trace.last_seq + entries.length
          sql.run("UPDATE device_trace SET last_seq = ?, dropped = dropped + ? WHERE device_id = ?", [
            last,
            dropped,
            deviceId
          ])
          sql.run("DELETE FROM trace_entry WHERE device_id = ? AND seq <= ?", [deviceId, last - keep])
        }
      }),
    read: (deviceId, { after, limit }) =>
      sql.read("TraceStore.read", () => {
        const trace = sql.get<{ readonly until: number; readonly dropped: number }>(
          "SELECT until, dropped FROM device_trace WHERE device_id = ?",
          [deviceId]
        )
        if (trace === undefined) {
          return Option.none()
        }
        const rows = after === undefined
          ? sql.all<EntryRow>(
            "SELECT seq, entry FROM trace_entry WHERE device_id = ? ORDER BY seq DESC LIMIT ?",
            [deviceId, limit]
          ).toReversed()
          : sql.all<EntryRow>(
            "SELECT seq, entry FROM trace_entry WHERE device_id = ? AND seq > ? ORDER BY seq LIMIT ?",
            [deviceId, after, limit]
          )
        return Option.some({ until: trace.until, dropped: trace.dropped, entries: rows.map(fromRow) })
      }),
    prune: (before) =>
      sql.write("TraceStore.prune", () =>
        void sql.run("DELETE FROM device_trace WHERE until < ?", [before]))
  })
