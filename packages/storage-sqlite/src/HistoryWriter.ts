/**
 * Writes the history of devices.
 */
import {
  type DeviceId,
  equalJson,
  type EventRecord,
  type HistoryAddition,
  type Json,
  type PropertySample
} from "@device-cloud/core"
import type { Statements } from "./Sqlite.ts"

/** Returns the number of a device; undefined: nothing was stored of it. */
export const deviceNumber = (sql: Statements, deviceId: DeviceId): number | undefined =>
  sql.get<{ readonly number: number }>("SELECT number FROM history_device WHERE device_id = ?", [deviceId])?.number

/** Returns the number of a property of a device; undefined: nothing was stored of it. */
export const propertyNumber = (sql: Statements, device: number, propertyId: string): number | undefined =>
  sql.get<{ readonly number: number }>("SELECT number FROM history_property WHERE device = ? AND property_id = ?", [
    device,
    propertyId
  ])?.number

const insertDevice = (sql: Statements, deviceId: DeviceId): number =>
  sql.get<{ readonly number: number }>("INSERT INTO history_device (device_id) VALUES (?) RETURNING number", [
    deviceId
  ])!.number

/** Adds a value of a property. Returns false, and adds nothing, if nothing was stored of the property before. */
const insertSample = (sql: Statements, device: number, { propertyId, time, value }: PropertySample): boolean =>
  sql.run(
    `INSERT INTO history_sample (property, time, place, value)
      SELECT number, ?3, coalesce((SELECT max(place) + 1 FROM history_sample WHERE property = number AND time = ?3), 0), ?4
      FROM history_property WHERE device = ?1 AND property_id = ?2`,
    [device, propertyId, time, JSON.stringify(value)]
  ) > 0

/** Adds entries as they are. */
export const appendHistory = (
  sql: Statements,
  deviceId: DeviceId,
  { events, samples }: Omit<HistoryAddition, "deviceId">
): void => {
  if (samples.length + events.length === 0) return
  const device = deviceNumber(sql, deviceId) ?? insertDevice(sql, deviceId)
  for (const sample of samples) {
    if (insertSample(sql, device, sample)) continue
    sql.run("INSERT INTO history_property (device, property_id) VALUES (?, ?)", [device, sample.propertyId])
    insertSample(sql, device, sample)
  }
  for (const { eventId, time, value } of events) {
    sql.run("INSERT INTO history_event (device, time, event_id, value) VALUES (?, ?, ?, ?)", [
      device,
      time,
      eventId,
      JSON.stringify(value)
    ])
  }
}

/** Leaves out the entries that are stored. */
export const withoutKnown = (sql: Statements, { deviceId, events, samples }: HistoryAddition): HistoryAddition => {
  const device = deviceNumber(sql, deviceId)
  if (device === undefined) return { deviceId, events, samples }
  const isAmong = (rows: ReadonlyArray<{ readonly value: string }>, value: Json) =>
    rows.some((row) => equalJson(JSON.parse(row.value) as Json, value))
  const isKnownSample = ({ propertyId, time, value }: PropertySample) =>
    isAmong(
      sql.all("SELECT value FROM history_sample WHERE property = ? AND time = ?", [
        propertyNumber(sql, device, propertyId) ?? null,
        time
      ]),
      value
    )
  const isKnownEvent = ({ eventId, time, value }: EventRecord) =>
    isAmong(
      sql.all("SELECT value FROM history_event WHERE device = ? AND event_id = ? AND time = ?", [
        device,
        eventId,
        time
      ]),
      value
    )
  return {
    deviceId,
    samples: samples.filter((sample) => !isKnownSample(sample)),
    events: events.filter((event) => !isKnownEvent(event))
  }
}
