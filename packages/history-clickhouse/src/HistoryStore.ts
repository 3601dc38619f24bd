/**
 * The history of devices on ClickHouse.
 */
import {
  type DeviceId,
  type EventRecord,
  type HistoryAddition,
  type HistoryBucket,
  type HistoryRange,
  HistoryStore,
  type Json,
  type PropertySample,
  type StoreError
} from "@device-cloud/core"
import { Clock, Effect, Layer, Stream } from "effect"
import { type ClickHouseClient, type ClickHouseOptions, literal, make as makeClient } from "./ClickHouseClient.ts"
import { RowBinary } from "./RowBinary.ts"
import { history, historyColumns, removed, tables } from "./Tables.ts"

/** Makes its tables before their first use, if they do not exist. */
export const layer = (options: ClickHouseOptions): Layer.Layer<HistoryStore> =>
  Layer.sync(HistoryStore, () => make(makeClient(options)))

const property = 0
const event = 1

const dayMillis = 86_400_000

/** Samples in a chunk of a scan. */
const chunkSize = 1000

/** A row as JSON; numbers of 64 bits are texts, or numbers on newer servers. */
interface EntryRow {
  readonly name: string
  readonly time: string | number
  readonly value: string
}

/** A sum that is too large for JSON is null. */
type BucketRow = Readonly<
  Record<Exclude<keyof HistoryBucket, "sum">, string | number> & { sum: string | number | null }
>

const valueOf = ({ value }: EntryRow): Json => JSON.parse(value)

const make = (client: ClickHouseClient): HistoryStore["Service"] => {
  let hasTables = false
  /** The highest number that an entry got; the next gets a higher one. */
  let lastNumber = 0n
  /** What is older has been forgotten, Unix milliseconds. */
  let horizon = Number.NEGATIVE_INFINITY

  /** Makes the tables before the first statement, and before one that follows a failure: they may be gone. */
  const prepared = <A>(operation: string, run: Effect.Effect<A, StoreError>): Effect.Effect<A, StoreError> =>
    Effect.suspend(() =>
      hasTables ? run : Effect.forEach(tables, (table) => client.run(operation, table), { discard: true }).pipe(
        Effect.andThen(Effect.sync(() => void (hasTables = true))),
        Effect.andThen(run)
      )
    ).pipe(Effect.tapError(() => Effect.sync(() => void (hasTables = false))))

  /** A rank, which is lower than that of anything that this node has stored before. */
  const nextRank = (now: number): bigint => {
    const byTime = BigInt(now) << 20n
    lastNumber = byTime > lastNumber ? byTime : lastNumber + 1n
    return 2n ** 63n - lastNumber
  }

  const dayOf = (now: number): number => Math.floor(now / dayMillis)

  /** The entries of a device that are there, in a range of time. */
  const entriesOf = (
    deviceId: DeviceId,
    kind: number,
    names: ReadonlyArray<string> | undefined,
    { end, start }: Pick<HistoryRange, "start" | "end">
  ): string => {
    const device = literal(deviceId)
    const named = names === undefined
      ? ""
      : names.length === 0
      ? "AND 0"
      : `AND name IN (${names.map(literal).join(", ")})`
    return `${history} FINAL
      WHERE device = ${device} AND kind = ${kind} ${named} AND time BETWEEN ${Math.max(start, horizon)} AND ${end}
        AND rank < (
          SELECT if(count() = 0, toUInt64(18446744073709551615), min(rank)) FROM ${removed} WHERE device = ${device}
        )`
  }

  /** Finds devices whose last row is an entry: what came before a removal is no longer there. */
  const devicesWithin = (
    deviceIds: ReadonlyArray<DeviceId>,
    { end, start }: Pick<HistoryRange, "start" | "end">
  ): Effect.Effect<ReadonlyArray<DeviceId>, StoreError> => {
    if (deviceIds.length === 0) return Effect.succeed([])
    const operation = "HistoryStore.devicesWithin"
    const devices = deviceIds.map(literal).join(", ")
    const select = `SELECT device FROM (
        SELECT device, rank, 0 AS gone FROM ${history}
        WHERE device IN (${devices}) AND kind = ${property} AND time BETWEEN ${Math.max(start, horizon)} AND ${end}
        UNION ALL
        SELECT device, rank, 1 AS gone FROM ${removed} WHERE device IN (${devices})
      ) GROUP BY device HAVING argMin(gone, rank) = 0`
    return Effect.map(
      prepared(operation, client.rows<{ readonly device: DeviceId }>(operation, select)),
      (rows) => rows.map(({ device }) => device)
    )
  }

  const read = (operation: string, range: HistoryRange, entries: string) =>
    prepared(
      operation,
      client.rows<EntryRow>(
        operation,
        `SELECT name, time, value FROM ${entries}
        ORDER BY ${range.order === "asc" ? "time ASC, rank DESC" : "time DESC, rank ASC"} LIMIT ${range.limit}`
      )
    )

  const appendTo = (rows: RowBinary, { deviceId, events, samples }: HistoryAddition, now: number) => {
    const copies = new Map<string, number>()
    const add = (kind: number, name: string, time: number, value: Json) => {
      const text = JSON.stringify(value)
      const key = JSON.stringify([kind, name, time, text])
      const copy = copies.get(key) ?? 0
      copies.set(key, copy + 1)
      rows.uint16(dayOf(now)).string(deviceId).uint8(kind).string(name).int64(time).uint32(copy).uint64(nextRank(now))
        .string(text).nullableFloat64(typeof value === "number" ? value : null)
    }
    for (const { propertyId, time, value } of samples) add(property, propertyId, time, value)
    for (const { eventId, time, value } of events) add(event, eventId, time, value)
  }

  const append = Effect.fnUntraced(function*(additions: ReadonlyArray<HistoryAddition>) {
    const now = yield* Clock.currentTimeMillis
    const rows = new RowBinary()
    for (const addition of additions) appendTo(rows, addition, now)
    if (rows.bytes.length === 0) return
    const operation = "HistoryStore.append"
    yield* prepared(
      operation,
      client.run(operation, `INSERT INTO ${history} (${historyColumns}) FORMAT RowBinary`, rows.bytes)
    )
  })

  const remove = Effect.fnUntraced(function*(deviceIds: ReadonlyArray<DeviceId>) {
    if (deviceIds.length === 0) return
    const now = yield* Clock.currentTimeMillis
    const rows = new RowBinary()
    for (const deviceId of deviceIds) rows.uint16(dayOf(now)).string(deviceId).uint64(nextRank(now))
    const operation = "HistoryStore.remove"
    yield* prepared(
      operation,
      client.run(operation, `INSERT INTO ${removed} (stored, device, rank) FORMAT RowBinary`, rows.bytes)
    )
  })

  /** Drops the partitions of whole months before the time. */
  const dropBefore = Effect.fnUntraced(function*(operation: string, time: number) {
    const old = yield* client.rows<{ readonly table: string; readonly partition: string }>(
      operation,
      `SELECT DISTINCT table, partition FROM system.parts
      WHERE active AND database = currentDatabase() AND table IN ('${history}', '${removed}')
        AND toUInt32(partition) < toYYYYMM(toDate(${dayOf(time)}))`
    )
    yield* Effect.forEach(
      old,
      ({ partition, table }) => client.run(operation, `ALTER TABLE ${table} DROP PARTITION ${partition}`),
      { discard: true }
    )
  })

  return {
    samples: (deviceId, propertyId, range) =>
      Effect.map(
        read("HistoryStore.samples", range, entriesOf(deviceId, property, [propertyId], range)),
        (rows) => rows.map((row): PropertySample => ({ propertyId, time: Number(row.time), value: valueOf(row) }))
      ),
    events: (deviceId, eventId, range) =>
      Effect.map(
        read(
          "HistoryStore.events",
          range,
          entriesOf(deviceId, event, eventId === undefined ? undefined : [eventId], range)
        ),
        (rows) => rows.map((row): EventRecord => ({ eventId: row.name, time: Number(row.time), value: valueOf(row) }))
      ),
    aggregate: (deviceId, propertyId, { end, interval, start }) => {
      const operation = "HistoryStore.aggregate"
      const select = `SELECT ${start} + intDiv(time - ${start}, ${interval}) * ${interval} AS bucket, count() AS count,
          min(number) AS min, max(number) AS max, sum(number) AS sum,
          argMin(number, (time, 9223372036854775808 - rank)) AS first,
          argMax(number, (time, 9223372036854775808 - rank)) AS last
        FROM ${entriesOf(deviceId, property, [propertyId], { start, end })} AND number IS NOT NULL
        GROUP BY bucket ORDER BY bucket`
      return Effect.map(
        prepared(operation, client.rows<BucketRow & { readonly bucket: string | number }>(operation, select)),
        (rows) =>
          rows.map(({ bucket, count, first, last, max, min, sum }): HistoryBucket => ({
            time: Number(bucket),
            count: Number(count),
            min: Number(min),
            max: Number(max),
            sum: sum === null ? Number.NaN : Number(sum),
            first: Number(first),
            last: Number(last)
          }))
      )
    },
    scan: (deviceId, { propertyIds, ...range }) => {
      const operation = "HistoryStore.scan"
      const select = Effect.sync(() =>
        client.stream<EntryRow>(
          operation,
          `SELECT name, time, value FROM ${entriesOf(deviceId, property, propertyIds, range)}
          ORDER BY name, time, rank DESC`
        )
      )
      return Stream.unwrap(prepared(operation, select)).pipe(
        Stream.map((row): PropertySample => ({ propertyId: row.name, time: Number(row.time), value: valueOf(row) })),
        Stream.grouped(chunkSize)
      )
    },
    devicesWithin,
    append,
    remove,
    // The server merges its rows by itself.
    maintain: Effect.void,
    prune: Effect.fnUntraced(function*({ keepDays }) {
      horizon = keepDays === 0 ? Number.NEGATIVE_INFINITY : (yield* Clock.currentTimeMillis) - keepDays * dayMillis
      const operation = "HistoryStore.prune"
      if (keepDays > 0) yield* prepared(operation, dropBefore(operation, horizon))
    })
  }
}
