/**
 * Domain events as rows of the feed.
 */
import { type DomainEvent, type FeedEntry, type FeedPlace, type Json, placeOf, samplesOf } from "@device-cloud/core"
import type { SqlClient, Statement } from "effect/sql"
import type { FeedNames } from "./FeedNames.ts"

type Kind = DomainEvent["_tag"]

/** The place of a kind in this list is its number in the table. New kinds come after. */
const kinds: ReadonlyArray<Kind> = [
  "DeviceStatusChanged",
  "PropertiesReported",
  "EventReported",
  "CommandReplied",
  "UpgradeProgressed",
  "DeviceLifecycle",
  "TopologyChanged",
  "SceneExecuted",
  "ConnectionReplaced"
]

export const kindNumber = (kind: Kind): number => kinds.indexOf(kind)

/** A row of the feed. `at`: Unix milliseconds. `device`: 0 if no device belongs to the event. */
export type FeedRow = readonly [
  slot: number,
  kind: number,
  project: number,
  device: number,
  xid: number,
  seq: number,
  at: number,
  body: Json
]

/** Rows in one text, at most. Whoever selects them keeps the text below the 16 MiB that the driver takes. */
export const rowsOfText = 1000

/**
 * Selects the rows of a table in its order, at most {@link rowsOfText}, as one
 * JSON text without its brackets. PostgreSQL and the driver take 2.4 µs for a row,
 * and 4.9 µs when each column is a value of its own.
 */
export const rowsAsText = (sql: SqlClient.SqlClient, rows: Statement.Fragment): Statement.Fragment =>
  sql`SELECT string_agg(concat_ws(',', slot, kind, project, device, xid, seq,
    round(date_part('epoch', at) * 1000)::bigint, body::text), '],[') AS rows FROM ${rows} AS row`

/** The rows of a text that {@link rowsAsText} has selected; null: there are none. */
export const rowsFromText = (text: string | null): ReadonlyArray<FeedRow> =>
  text === null ? [] : JSON.parse(`[[${text}]]`) as ReadonlyArray<FeedRow>

/**
 * The body of the row: what its columns do not say. A report is the list of its
 * values in the order in which they are stored, `[property, time, value]`; an event
 * of a thing model is `[event, time, value]`.
 */
export const bodyOf = (event: DomainEvent): string => {
  switch (event._tag) {
    case "PropertiesReported":
      return JSON.stringify(samplesOf(event).map(({ propertyId, time, value }) => [propertyId, time, value]))
    case "EventReported":
      return JSON.stringify([event.eventId, event.time, event.value])
    default:
      return JSON.stringify({ ...event, _tag: undefined, device: undefined, projectId: undefined, at: undefined })
  }
}

type Samples = ReadonlyArray<readonly [propertyId: string, time: number, value: Json]>

const reported = (samples: Samples) => {
  const properties: Record<string, { readonly value: Json; readonly time: number }> = {}
  const earlier: Array<{ readonly propertyId: string; readonly time: number; readonly value: Json }> = []
  for (const [propertyId, time, value] of samples) {
    if (Object.hasOwn(properties, propertyId)) earlier.push({ propertyId, ...properties[propertyId]! })
    properties[propertyId] = { value, time }
  }
  return earlier.length === 0 ? { properties } : { properties, earlier }
}

/** Undefined: a newer server has written an event that this one does not know, or the project is gone. */
const eventFromRow = (
  [, kind, project, number, , , at, body]: FeedRow,
  { devices, projects }: FeedNames
): DomainEvent | undefined => {
  const _tag = kinds[kind]
  const device = devices.get(number)
  if (_tag === "SceneExecuted") {
    const projectId = projects.get(project)
    if (projectId === undefined) return undefined
    const named = device === undefined
      ? null
      : { deviceId: device.deviceId, productKey: device.productKey, deviceName: device.deviceName }
    return { ...body as object, _tag, at, projectId, device: named } as DomainEvent
  }
  if (_tag === undefined || device === undefined) return undefined
  switch (_tag) {
    case "PropertiesReported":
      return { _tag, device, at, ...reported(body as unknown as Samples) }
    case "EventReported": {
      const [eventId, time, value] = body as unknown as Samples[number]
      return { _tag, device, at, eventId, time, value }
    }
    default:
      return { ...body as object, _tag, device, at } as DomainEvent
  }
}

export const placeOfRow = ([part, , , , transaction, sequence]: FeedRow): FeedPlace =>
  placeOf({ transaction, sequence, part })

/** The entries of the rows; what this server does not know is left out. */
export const entriesFromRows = (rows: ReadonlyArray<FeedRow>, names: FeedNames): ReadonlyArray<FeedEntry> => {
  const entries: Array<FeedEntry> = []
  for (const row of rows) {
    const event = eventFromRow(row, names)
    if (event !== undefined) entries.push({ id: placeOfRow(row), event })
  }
  return entries
}
