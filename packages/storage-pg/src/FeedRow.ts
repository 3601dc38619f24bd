/**
 * Domain events as rows of the feed.
 */
import {
  type DeviceId,
  type DeviceName,
  type DomainEvent,
  type FeedEntry,
  type FeedPlace,
  type Json,
  placeOf,
  type ProductKey,
  type ProjectId,
  samplesOf
} from "@device-cloud/core"

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

/** A row of the feed with the names of its device. */
export interface FeedRow {
  readonly slot: number
  readonly xid: bigint
  readonly seq: bigint
  readonly kind: number
  readonly at: Date
  readonly body: Json
  readonly project_id: string
  /** Null: no device belongs to the event. */
  readonly device_id: string | null
  readonly product_key: string
  readonly device_name: string
}

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

const eventFromRow = (row: FeedRow): DomainEvent => {
  const _tag = kinds[row.kind]!
  const at = row.at.getTime()
  const projectId = row.project_id as ProjectId
  const named = {
    deviceId: row.device_id as DeviceId,
    productKey: row.product_key as ProductKey,
    deviceName: row.device_name as DeviceName
  }
  if (_tag === "SceneExecuted") {
    const device = row.device_id === null ? null : named
    return { ...row.body as object, _tag, at, projectId, device } as DomainEvent
  }
  const device = { ...named, projectId }
  switch (_tag) {
    case "PropertiesReported":
      return { _tag, device, at, ...reported(row.body as unknown as Samples) }
    case "EventReported": {
      const [eventId, time, value] = row.body as unknown as Samples[number]
      return { _tag, device, at, eventId, time, value }
    }
    default:
      return { ...row.body as object, _tag, device, at } as DomainEvent
  }
}

export const placeOfRow = ({ seq, slot, xid }: FeedRow): FeedPlace =>
  placeOf({ transaction: Number(xid), sequence: Number(seq), part: slot })

/** No entries: a newer server has written an event that this one does not know. */
export const entriesFromRow = (row: FeedRow): ReadonlyArray<FeedEntry> =>
  kinds[row.kind] === undefined ? [] : [{ id: placeOfRow(row), event: eventFromRow(row) }]
