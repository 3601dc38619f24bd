/**
 * The writes of a history that stands apart: they come from outside the database,
 * and not from the feed.
 */
import type { DeviceId, HistoryAddition } from "@device-cloud/core"
import { Clock, Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { dayOf, type EntryKind, type Gathered, HistoryEntries, signs } from "./HistoryEntries.ts"
import { keepOf } from "./HistoryPlace.ts"
import { texts, wholeNumbers } from "./PgParameters.ts"
import { decode } from "./SegmentCodec.ts"
import { insertSegments, segmentsOf } from "./Segments.ts"

type Sql = SqlClient.SqlClient

/** As `HistoryStore.append`. */
export const append: (sql: Sql, additions: ReadonlyArray<HistoryAddition>) => Effect.Effect<void, SqlError.SqlError> =
  Effect.fnUntraced(function*(sql: Sql, additions: ReadonlyArray<HistoryAddition>) {
    const said = additions.filter(({ events, samples }) => samples.length + events.length > 0)
    if (said.length === 0) return
    const numbers = yield* numbersOf(sql, [...new Set(said.map(({ deviceId }) => deviceId))])
    const entries = new HistoryEntries()
    const add = (deviceId: DeviceId, kind: EntryKind, name: string, time: number, value: unknown) =>
      entries.add(numbers.get(deviceId)!, kind, name, time, JSON.stringify(value))
    for (const { deviceId, events, samples } of said) {
      for (const { propertyId, time, value } of samples) add(deviceId, "property", propertyId, time, value)
      for (const { eventId, time, value } of events) add(deviceId, "event", eventId, time, value)
    }
    const fresh = yield* withoutKnown(sql, entries.all)
    const [place] = yield* sql<{ readonly keep: number }>`SELECT keep_days AS keep FROM history_place`
    const today = dayOf(yield* Clock.currentTimeMillis)
    const keeps = yield* keepOf(sql, [...numbers.values()])
    const segments = yield* segmentsOf(sql, fresh, (device) => keeps.get(device) ?? place!.keep, today)
    if (segments.length > 0) yield* sql.withTransaction(insertSegments(sql, segments))
  })

/** As `HistoryStore.remove`. */
export const remove = (sql: Sql, deviceIds: ReadonlyArray<DeviceId>): Effect.Effect<void, SqlError.SqlError> =>
  Effect.asVoid(sql`
    WITH gone AS (DELETE FROM history_device WHERE device_id = ANY(${texts(deviceIds)}))
    DELETE FROM history_segment WHERE device IN (
      SELECT number FROM history_device WHERE device_id = ANY(${texts(deviceIds)})
      UNION ALL SELECT id FROM device WHERE device_id = ANY(${texts(deviceIds)})
    )`)

/** The number of each device; those that have none get one. */
const numbersOf = Effect.fnUntraced(function*(sql: Sql, deviceIds: ReadonlyArray<DeviceId>) {
  const read = sql<{ readonly device_id: string; readonly number: bigint }>`
    SELECT device_id, id AS number FROM device WHERE device_id = ANY(${texts(deviceIds)})
    UNION ALL
    SELECT device_id, number FROM history_device WHERE device_id = ANY(${texts(deviceIds)})
      AND NOT EXISTS (SELECT FROM device WHERE device.device_id = history_device.device_id)`
  let known = yield* read
  if (known.length < deviceIds.length) {
    const numbered = new Set(known.map(({ device_id }) => device_id))
    const missing = deviceIds.filter((deviceId) => !numbered.has(deviceId))
    yield* sql`INSERT INTO history_device (device_id)
      SELECT device_id FROM unnest(${texts(missing)}) AS new (device_id) ORDER BY device_id ON CONFLICT DO NOTHING`
    known = yield* read
  }
  return new Map(known.map(({ device_id, number }) => [device_id, Number(number)]))
})

/** Leaves out entries that are stored: they have the same time and value. */
const withoutKnown = Effect.fnUntraced(function*(sql: Sql, gathered: ReadonlyArray<Gathered>) {
  const rows = yield* sql<{ readonly place: number; readonly data: Uint8Array }>`
    SELECT wanted.place::int AS place, segment.data FROM unnest(
      ${wholeNumbers(gathered.map(({ device }) => device))}::bigint[],
      ${wholeNumbers(gathered.map(({ kind }) => signs[kind]))}::int[],
      ${texts(gathered.map(({ name }) => name))},
      ${wholeNumbers(gathered.map(({ day }) => day))}::int[],
      ${wholeNumbers(gathered.map(({ times }) => Math.min(...times)))}::int[],
      ${wholeNumbers(gathered.map(({ times }) => Math.max(...times)))}::int[]
    ) WITH ORDINALITY AS wanted (device, sign, name, day, first, last, place)
    JOIN history_name USING (name)
    JOIN history_segment AS segment ON segment.device = wanted.device
      AND segment.series = wanted.sign * history_name.number AND segment.day = wanted.day
      AND segment.first <= wanted.last AND segment.last >= wanted.first`
  const known = new Map<number, Set<string>>()
  for (const { data, place } of rows) {
    const { times, values } = decode(data)
    const found = known.get(place) ?? new Set()
    for (let i = 0; i < times.length; i++) found.add(`${times[i]} ${JSON.stringify(values[i])}`)
    known.set(place, found)
  }
  return gathered.flatMap((entries, i) => {
    const stored = known.get(i + 1)
    if (stored === undefined) return [entries]
    const fresh = entries.times.map((time, at) => !stored.has(`${time} ${entries.texts[at]}`))
    const isFresh = (_: unknown, at: number): boolean => fresh[at]!
    const times = entries.times.filter(isFresh)
    return times.length === 0 ? [] : [{ ...entries, times, texts: entries.texts.filter(isFresh) }]
  })
})
