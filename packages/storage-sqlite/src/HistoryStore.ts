/**
 * The history of devices on SQLite: the values of each property by time, and the
 * events.
 */
import {
  Aggregate,
  type DeviceId,
  type EventRecord,
  type HistoryRange,
  HistoryStore,
  type Json,
  type PropertySample,
  type StoreError
} from "@device-cloud/core"
import { Clock, Effect, Layer, Option, Stream } from "effect"
import { forgetOld, forgetRemoved } from "./HistoryForgetting.ts"
import { appendHistory, deviceNumber, propertyNumber, withoutKnown } from "./HistoryWriter.ts"
import { Sqlite, type Value } from "./Sqlite.ts"

/** Can stand apart from the others (`HistoryApart` and `HistoryFromFeed` of the core). */
export const layer: Layer.Layer<HistoryStore, never, Sqlite> = Layer.effect(
  HistoryStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

/** Values that are read in one turn: some milliseconds. */
const pageSize = 2000

interface SampleRow {
  readonly time: number
  readonly place: number
  readonly value: string
}

const sampleFromRow = (propertyId: string, { time, value }: SampleRow): PropertySample => ({
  propertyId,
  time,
  value: JSON.parse(value) as Json
})

interface EventRow {
  readonly time: number
  readonly event_id: string
  readonly value: string
}

const eventFromRow = ({ event_id, time, value }: EventRow): EventRecord => ({
  eventId: event_id,
  time,
  value: JSON.parse(value) as Json
})

const make = (sql: Sqlite["Service"]) => {
  const findProperty = (deviceId: DeviceId, propertyId: string): number | undefined => {
    const device = deviceNumber(sql, deviceId)
    return device === undefined ? undefined : propertyNumber(sql, device, propertyId)
  }

  const samples = (deviceId: DeviceId, propertyId: string, { end, limit, order, start }: HistoryRange) => {
    const property = findProperty(deviceId, propertyId)
    return property === undefined ? [] : sql.all<SampleRow>(
      `SELECT time, place, value FROM history_sample WHERE property = ? AND time BETWEEN ? AND ?
        ORDER BY time ${order}, place ${order} LIMIT ?`,
      [property, start, end, limit]
    ).map((row) => sampleFromRow(propertyId, row))
  }

  const events = (
    deviceId: DeviceId,
    eventId: string | undefined,
    { end, limit, order, start }: HistoryRange
  ): ReadonlyArray<EventRecord> => {
    const device = deviceNumber(sql, deviceId)
    if (device === undefined) return []
    const values: ReadonlyArray<Value> = eventId === undefined ? [device] : [device, eventId]
    return sql.all<EventRow>(
      `SELECT time, event_id, value FROM history_event
        WHERE device = ? ${eventId === undefined ? "" : "AND event_id = ?"} AND time BETWEEN ? AND ?
        ORDER BY time ${order}, number ${order} LIMIT ?`,
      [...values, start, end, limit]
    ).map(eventFromRow)
  }

  /** All values of a property in a range, by time. Others have their turn after each page. */
  const pages = (
    operation: string,
    deviceId: DeviceId,
    propertyId: string,
    { end, start }: Pick<HistoryRange, "start" | "end">
  ): Stream.Stream<ReadonlyArray<PropertySample>, StoreError> =>
    Stream.paginate({ time: start, place: -1 }, (after) =>
      Effect.andThen(
        Effect.yieldNow,
        sql.read(operation, () => {
          const property = findProperty(deviceId, propertyId)
          const rows = property === undefined ? [] : sql.all<SampleRow>(
            `SELECT time, place, value FROM history_sample
              WHERE property = ? AND (time, place) > (?, ?) AND time <= ? ORDER BY time, place LIMIT ?`,
            [property, after.time, after.place, end, pageSize]
          )
          const page = rows.map((row) => sampleFromRow(propertyId, row))
          const last = rows.length === pageSize ? rows.at(-1) : undefined
          return [page.length === 0 ? [] : [page], Option.fromUndefinedOr(last)] as const
        })
      ))

  const propertyIds = (deviceId: DeviceId) =>
    sql.read("HistoryStore.scan", () =>
      sql.all<{ readonly property_id: string }>(
        "SELECT property_id FROM history_property WHERE device = ? ORDER BY number",
        [deviceNumber(sql, deviceId) ?? null]
      ).map(({ property_id }) => property_id))

  return HistoryStore.of({
    samples: (deviceId, propertyId, range) =>
      sql.read("HistoryStore.samples", () => samples(deviceId, propertyId, range)),
    events: (deviceId, eventId, range) => sql.read("HistoryStore.events", () => events(deviceId, eventId, range)),
    aggregate: (deviceId, propertyId, intervals) =>
      Effect.suspend(() => {
        const aggregate = new Aggregate(intervals)
        return Effect.map(
          Stream.runForEach(pages("HistoryStore.aggregate", deviceId, propertyId, intervals), (page) =>
            Effect.sync(() => {
              for (const { time, value } of page) {
                aggregate.add(time, value)
              }
            })),
          () =>
            aggregate.buckets()
        )
      }),
    scan: (deviceId, { propertyIds: chosen, ...range }) =>
      Stream.fromIterableEffect(chosen === undefined ? propertyIds(deviceId) : Effect.succeed(chosen)).pipe(
        Stream.flatMap((propertyId) => pages("HistoryStore.scan", deviceId, propertyId, range))
      ),
    devicesWithin: (deviceIds, { end, start }) =>
      sql.read("HistoryStore.devicesWithin", () =>
        deviceIds.filter((deviceId) =>
          sql.get(
            `SELECT 1 FROM history_device JOIN history_property ON history_property.device = history_device.number
              JOIN history_sample ON history_sample.property = history_property.number
              WHERE history_device.device_id = ? AND history_sample.time BETWEEN ? AND ? LIMIT 1`,
            [deviceId, start, end]
          ) !== undefined
        )),
    append: (additions) =>
      sql.write("HistoryStore.append", () => {
        const added = additions.map((addition) => withoutKnown(sql, addition))
        for (const addition of added) appendHistory(sql, addition.deviceId, addition)
      }),
    remove: (deviceIds) =>
      sql.write("HistoryStore.remove", () => {
        for (const deviceId of deviceIds) {
          sql.run("UPDATE history_device SET device_id = NULL WHERE device_id = ?", [deviceId])
        }
      }),
    prune: ({ keepDays }) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => forgetOld(sql, "HistoryStore.prune", keepDays, now)),
    maintain: forgetRemoved(sql, "HistoryStore.maintain")
  })
}
