/**
 * `history-bytes`: bytes on disk of a stored value, with indexes. Twenty devices
 * report ten properties once a minute for three days; the history is packed every ten
 * minutes, and merged when a day has ended.
 */
import { HistoryStore } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { Part } from "./Comparison.ts"
import { withDatabase } from "./Database.ts"
import {
  bytesOf,
  layer,
  makeReporters,
  merge,
  millisOfDay,
  narrowTable,
  pack,
  properties,
  report
} from "./StoredHistory.ts"

const days = 3
const minute = 60_000
const start = Date.UTC(2026, 0, 1)

const measure = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  yield* (yield* HistoryStore).prune({ keepDays: 0 })
  const reporters = yield* makeReporters
  for (let day = start; day < start + days * millisOfDay; day += millisOfDay) {
    for (let time = day; time < day + millisOfDay; time += 10 * minute) {
      yield* report(reporters, { start: time, end: time + 10 * minute, step: minute })
      yield* pack
    }
    yield* merge
    yield* sql`VACUUM history_segment`
  }
  yield* narrowTable
  yield* sql`
    INSERT INTO narrow_sample (device_id, property_id, time, value)
    SELECT device_id, entry ->> 0, to_timestamp((entry ->> 1)::float8 / 1000), entry -> 2
    FROM feed JOIN device ON device.id = feed.device, json_array_elements(body) AS entry
    WHERE kind = 1 ORDER BY xid, seq`
  const samples = reporters.length * properties * days * millisOfDay / minute
  return {
    ours: (yield* bytesOf(["history_segment", "history_name"])) / samples,
    theirs: (yield* bytesOf(["narrow_sample"])) / samples
  }
})

const threeDays: Part = () =>
  withDatabase(async (url) => {
    const { ours, theirs } = await Effect.runPromise(Effect.provide(measure, layer(url)))
    return [{
      benchmark: "history-bytes",
      scenario: "a value a minute, bytes of each",
      reference: "a row for each value",
      ours: { value: Number(ours.toFixed(1)) },
      theirs: { value: Number(theirs.toFixed(1)) },
      // At most a third of the reference.
      ratio: theirs / ours,
      bar: 3
    }]
  })

export const historyBytes: ReadonlyArray<Part> = [threeDays]
