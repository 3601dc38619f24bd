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

const insertProperty = (sql: Statements, device: number, propertyId: string): number =>
  sql.get<{ readonly number: number }>(
    "INSERT INTO history_property (device, property_id) VALUES (?, ?) RETURNING number",
    [device, propertyId]
  )!.number

/** Adds entries as they are. */
export const appendHistory = (
  sql: Statements,
  deviceId: DeviceId,
  { events, samples }: Omit<HistoryAddition, "deviceId">
): void => {
  if (samples.length + events.length === 0) return
  const device = deviceNumber(sql, deviceId) ?? insertDevice(sql, deviceId)
  for (const { propertyId, time, value } of samples) {
    const property = propertyNumber(sql, device, propertyId) ?? insertProperty(sql, device, propertyId)
    sql.run(
      `INSERT INTO history_sample (property, time, place, value)
        SELECT ?1, ?2, coalesce(max(place) + 1, 0), ?3 FROM history_sample WHERE property = ?1 AND time = ?2`,
      [property, time, JSON.stringify(value)]
    )
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
