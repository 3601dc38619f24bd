/**
 * History on PostgreSQL as real devices leave it, packed by the store's own packer.
 */
import {
  type Device,
  type DeviceCloud,
  type DeviceId,
  type DomainEvent,
  FeedStore,
  HistoryStore,
  type Json
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StoragePg from "@device-cloud/storage-pg"
import { insertDevice } from "@device-cloud/testing/contracts"
import { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Layer, Redacted } from "effect"

export const millisOfDay = 86_400_000

/** Devices that report, and the properties of each. */
export const reporters = 20
export const properties = 10

/** The key under which secrets are sealed. */
export const secretsKey = `${"b".repeat(42)}A=`

/** The stores on a database, and a connection beside them. */
export const layer = (url: string): Layer.Layer<DeviceCloud.Stores | PgClient.PgClient, unknown> =>
  Layer.merge(
    StoragePg.layer({ url: Redacted.make(url) }).pipe(
      Layer.provide(PlatformNode.NodeKeyRing.layerKeys(Redacted.make(secretsKey)))
    ),
    PgClient.layer({ url: Redacted.make(url) })
  )

/** Numbers from 0 to 1, the same in each run. */
const dice = (seed: number) => {
  let state = seed
  return (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const rounded = (value: number, digits: number): number => Number(value.toFixed(digits))

/** The next values of a device: a climate and power meter. */
const makeMeter = (seed: number) => {
  const roll = dice(seed)
  const noise = (width: number): number => (roll() - 0.5) * width
  let [temperature, humidity, pressure, energy, mode, open] = [21, 45, 1013, 1200, "eco", false]
  return (): Readonly<Record<string, Json>> => {
    temperature += noise(0.2) + (21 - temperature) * 0.001
    humidity += noise(0.6) + (45 - humidity) * 0.001
    pressure += noise(0.04)
    const current = 1.8 + noise(0.4)
    const voltage = 230 + noise(3)
    energy += current * voltage / 60_000
    if (roll() < 0.002) mode = ["eco", "comfort", "away"][Math.floor(roll() * 3)]!
    if (roll() < 0.01) open = !open
    return {
      temperature: rounded(temperature, 1),
      humidity: rounded(humidity, 1),
      pressure: rounded(pressure, 2),
      voltage: rounded(voltage, 1),
      current: rounded(current, 3),
      power: rounded(current * voltage, 1),
      energy: rounded(energy, 3),
      rssi: Math.round(-67 + noise(12)),
      mode,
      open
    }
  }
}

export interface Reporter {
  readonly device: Device
  /** A report of that time, Unix milliseconds, and up to a second later. */
  readonly reportAt: (time: number) => DomainEvent
}

export const makeReporters = Effect.forEach(
  Array.from({ length: reporters }),
  (_, i) =>
    Effect.map(insertDevice, ({ device }): Reporter => {
      const [next, roll] = [makeMeter(i), dice(-i)]
      return {
        device,
        reportAt: (time) => {
          const at = time + Math.floor(roll() * 1000)
          const values = Object.entries(next()).map(([id, value]) => [id, { value, time: at }])
          return { _tag: "PropertiesReported", device, at, properties: Object.fromEntries(values) }
        }
      }
    })
)

const eventsAtOnce = 500

/** Stores a report of each device for each step from `start` to `end`, Unix milliseconds. */
export const report = Effect.fnUntraced(function*(
  reporters: ReadonlyArray<Reporter>,
  { end, start, step }: { readonly start: number; readonly end: number; readonly step: number }
) {
  const feed = yield* FeedStore
  let events: Array<DomainEvent> = []
  for (let time = start; time < end; time += step) {
    for (const { reportAt } of reporters) events.push(reportAt(time))
    if (events.length >= eventsAtOnce || time + step >= end) {
      yield* feed.append(events)
      events = []
    }
  }
})

/** Packs what is reported, as after ten minutes. */
export const pack = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  yield* sql`UPDATE history_place SET packed_at = now() - interval '1 hour'`
  yield* (yield* HistoryStore).maintain
})

/** Packs, and merges all days but the present one, as when each has ended. */
export const merge = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  yield* sql`UPDATE history_unmerged SET marked_at = now() - interval '1 day'`
  yield* pack
})

/** The bytes of tables with their indexes and partitions. */
export const bytesOf = Effect.fnUntraced(function*(tables: ReadonlyArray<string>) {
  const sql = yield* PgClient.PgClient
  let bytes = 0
  for (const table of tables) {
    const [row] = yield* sql<{ readonly bytes: number }>`
      SELECT sum(pg_total_relation_size(relid))::float8 AS bytes FROM (
        SELECT relid FROM pg_partition_tree(${table}::text::regclass) UNION SELECT ${table}::text::regclass
      ) AS part`
    bytes += row!.bytes
  }
  return bytes
})

/** The table that history was in before it was packed. */
export const narrowTable = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  yield* sql`CREATE TABLE narrow_sample (id bigint GENERATED ALWAYS AS IDENTITY, device_id text COLLATE "C" NOT NULL,
    property_id text COLLATE "C" NOT NULL, time timestamptz NOT NULL, value json NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT now())`
  yield* sql`CREATE INDEX ON narrow_sample (device_id, property_id, time, id)`
  yield* sql`CREATE INDEX ON narrow_sample USING brin (stored_at)`
})

/** A database with a history of some months. */
export interface Filled {
  readonly devices: ReadonlyArray<DeviceId>
  /** Days since 1970: the last one with values, of `days` in all. */
  readonly lastDay: number
  readonly days: number
  /** Of each property. */
  readonly valuesOfDay: number
  readonly samples: number
}

const step = 10_000

/** Values of a day. */
export const samplesOfDay = reporters * properties * millisOfDay / step

/**
 * Fills the history with days in parts of five: one as devices report it, once every
 * ten seconds, and the same rows for each of the days before.
 */
export const fillDays = Effect.fnUntraced(function*(days: number) {
  const sql = yield* PgClient.PgClient
  yield* (yield* HistoryStore).prune({ keepDays: 60 })
  const reporters = yield* makeReporters
  const lastDay = Math.floor((yield* Clock.currentTimeMillis) / millisOfDay) - 1
  const start = lastDay * millisOfDay
  // A part is made when something is packed for it.
  yield* report(reporters.slice(0, 1), { start: start - (days - 1) * millisOfDay, end: start, step: millisOfDay })
  yield* report(reporters, { start, end: start + millisOfDay, step })
  yield* pack
  yield* merge
  yield* sql`
    INSERT INTO history_segment (device, series, day, keep, first, last, count, data)
    SELECT device, series, day - earlier, keep, first, last, count, data
    FROM generate_series(${days - 1}::int, 1, -1) AS earlier, history_segment WHERE day = ${lastDay}`
  yield* sql`VACUUM ANALYZE history_segment`
  return {
    devices: reporters.map(({ device }) => device.deviceId),
    lastDay,
    days,
    valuesOfDay: millisOfDay / step,
    samples: days * samplesOfDay
  }
})

/** Fills the history with 100,000,000 values. */
export const fill = fillDays(58)

/** Days that the bare table has: a tenth of the values. */
export const bareDays = 6

/** A table with nothing but numbers of devices and properties, times and values, and one index. */
export const fillBare = Effect.fnUntraced(function*({ devices, lastDay, valuesOfDay }: Filled) {
  const sql = yield* PgClient.PgClient
  yield* sql`CREATE TABLE bare_sample (device int NOT NULL, property int NOT NULL, time timestamptz NOT NULL,
    value float8 NOT NULL)`
  yield* sql`
    INSERT INTO bare_sample
    SELECT device, property, to_timestamp((${lastDay}::float8 - day) * 86400 + i * 86400.0 / ${valuesOfDay}),
      round(random()::numeric * 100, 1)::float8
    FROM generate_series(${bareDays - 1}::int, 0, -1) AS day, generate_series(0, ${valuesOfDay - 1}::int) AS i,
      generate_series(0, ${devices.length - 1}::int) AS device, generate_series(0, ${properties - 1}::int) AS property`
  yield* sql`CREATE INDEX ON bare_sample (device, property, time)`
  yield* sql`VACUUM ANALYZE bare_sample`
})
