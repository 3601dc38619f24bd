/**
 * `history-read`: a day of one property among 100,000,000 stored values, as they are
 * and summed up, and its latest values.
 */
import { type DeviceId, HistoryStore } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, ManagedRuntime } from "effect"
import { compare, type Part, type Row } from "./Comparison.ts"
import { Latencies, type LoadResult, measured, type Times } from "./Measurement.ts"
import { withDatabase } from "./Database.ts"
import { bareDays, fill, fillBare, type Filled, layer, millisOfDay } from "./StoredHistory.ts"

const tenMinutes = 600_000

/** Runs the query one time after the other. */
const measure = async (query: () => Promise<number>, expected: number, times: Times): Promise<LoadResult> => {
  const latencies = new Latencies()
  const ending = new AbortController()
  const running = (async () => {
    while (!ending.signal.aborted) {
      const from = performance.now()
      const found = await query()
      if (Math.abs(found - expected) > expected / 10) throw new Error(`${found} results, not ${expected}`)
      latencies.record(performance.now() - from)
    }
  })()
  const result = await measured(times, latencies)
  ending.abort()
  await running
  return result
}

/** The numeric properties, by their place in the reference. */
const names = ["temperature", "humidity", "pressure", "voltage", "current", "power", "energy", "rssi"] as const

const pick = <A>(items: ReadonlyArray<A>): A => items[Math.floor(Math.random() * items.length)]!

const compareReads = async (
  run: <A, E>(effect: Effect.Effect<A, E, HistoryStore | PgClient.PgClient>) => Promise<A>,
  { devices, lastDay, samples, valuesOfDay, days }: Filled
): Promise<ReadonlyArray<Row>> => {
  const day = (count: number) => (lastDay - Math.floor(Math.random() * count)) * millisOfDay
  const ours =
    (query: (deviceId: DeviceId, name: string, start: number) => Effect.Effect<number, unknown, HistoryStore>) => () =>
      run(query(pick(devices), pick(names), day(days)))
  const bare = (
    query: (
      device: number,
      property: number,
      start: Date,
      end: Date
    ) => Effect.Effect<number, unknown, PgClient.PgClient>
  ) =>
  () => {
    const start = day(bareDays)
    const [device, property] = [pick([...devices.keys()]), pick([...names.keys()])]
    return run(query(device, property, new Date(start), new Date(start + millisOfDay - 1)))
  }
  const results: Array<Row> = []
  const add = async (
    scenario: string,
    bar: number | undefined,
    expected: number,
    first: () => Promise<number>,
    second: () => Promise<number>
  ) =>
    results.push(
      ...await compare({
        benchmark: "history-read",
        scenario: `${scenario}, ${Math.round(samples / 1e6)} M values`,
        ours: (times) => measure(first, expected, times),
        references: {
          "bare table": { ...bar === undefined ? {} : { bar }, measure: (times) => measure(second, expected, times) }
        }
      })
    )
  await add(
    `a day, ${valuesOfDay} values`,
    0.8,
    valuesOfDay,
    ours((deviceId, name, start) =>
      Effect.map(
        HistoryStore.use((store) =>
          store.samples(deviceId, name, { start, end: start + millisOfDay - 1, limit: 10_000, order: "asc" })
        ),
        ({ length }) => length
      )
    ),
    bare((device, property, start, end) =>
      Effect.flatMap(PgClient.PgClient, (sql) =>
        Effect.map(
          sql`SELECT time, value FROM bare_sample
            WHERE device = ${device}::int AND property = ${property}::int AND time BETWEEN ${start} AND ${end} ORDER BY time`,
          ({ length }) => length
        ))
    )
  )
  await add(
    "a day by 10 minutes",
    0.8,
    millisOfDay / tenMinutes,
    ours((deviceId, name, start) =>
      Effect.map(
        HistoryStore.use((store) =>
          store.aggregate(deviceId, name, { start, end: start + millisOfDay - 1, interval: tenMinutes })
        ),
        ({ length }) => length
      )
    ),
    bare((device, property, start, end) =>
      Effect.flatMap(PgClient.PgClient, (sql) =>
        Effect.map(
          sql`SELECT date_bin('10 minutes', time, ${start}) AS bucket, count(*), min(value), max(value), sum(value),
              (array_agg(value ORDER BY time))[1] AS first, (array_agg(value ORDER BY time DESC))[1] AS last
            FROM bare_sample
            WHERE device = ${device}::int AND property = ${property}::int AND time BETWEEN ${start} AND ${end}
            GROUP BY bucket ORDER BY bucket`,
          ({ length }) => length
        ))
    )
  )
  await add(
    "the latest 100 values",
    // A row that is packed is read whole.
    undefined,
    100,
    ours((deviceId, name) =>
      Effect.map(
        HistoryStore.use((store) =>
          store.samples(deviceId, name, { start: 0, end: 8.64e15, limit: 100, order: "desc" })
        ),
        ({ length }) => length
      )
    ),
    bare((device, property) =>
      Effect.flatMap(PgClient.PgClient, (sql) =>
        Effect.map(
          sql`SELECT time, value FROM bare_sample WHERE device = ${device}::int AND property = ${property}::int
            ORDER BY time DESC LIMIT 100`,
          ({ length }) => length
        ))
    )
  )
  return results
}

const reads: Part = () =>
  withDatabase(async (url) => {
    const runtime = ManagedRuntime.make(Layer.orDie(layer(url)))
    try {
      const filled = await runtime.runPromise(Effect.tap(fill, fillBare))
      return await compareReads((effect) => runtime.runPromise(effect), filled)
    } finally {
      await runtime.dispose()
    }
  })

export const historyRead: ReadonlyArray<Part> = [reads]
