/**
 * A domain event on the wire, as a server-sent event (docs/api/events.md).
 */
import { eventText, eventTypes, type FeedEntry, type FeedPlace, feedStart } from "@device-cloud/core"

const encoder = new TextEncoder()

export const bytesOf = (text: string): Uint8Array => encoder.encode(text)

/** The text of an event. */
export const textOf = ({ event, id }: FeedEntry): string =>
  `id: ${id}\nevent: ${eventTypes[event._tag]}\ndata: ${eventText(event)}\n\n`

/** The bytes of events. */
export const encode = (entries: ReadonlyArray<FeedEntry>): Uint8Array => bytesOf(entries.map(textOf).join(""))

/** Events are missing here. */
export const gap: Uint8Array = bytesOf("event: gap\ndata: {}\n\n")

/** The beginning of a stream. It tells the client at once that it is connected. */
export const beginning: Uint8Array = bytesOf("retry: 1000\n\n")

/** The same with a place: a client whose connection breaks before its first event goes on there. */
export const beginningAfter = (place: FeedPlace): Uint8Array =>
  place === feedStart ? beginning : bytesOf(`retry: 1000\nid: ${place}\n\n`)

/** Says nothing, so that no proxy takes the connection for dead. */
export const heartbeat: Uint8Array = bytesOf(":\n\n")

/** The same, with a place: a client that comes back goes on there. */
export const heartbeatAt = (place: FeedPlace): Uint8Array => bytesOf(`id: ${place}\n\n`)
