/**
 * A domain event on the wire, as a server-sent event (docs/api/events.md).
 */
import { eventDocument, eventTypes, type FeedEntry } from "@device-cloud/core"

const encoder = new TextEncoder()

const bytesOf = (text: string): Uint8Array => encoder.encode(text)

/** The bytes of an event. */
export const encode = ({ event, id }: FeedEntry): Uint8Array =>
  bytesOf(`id: ${id}\nevent: ${eventTypes[event._tag]}\ndata: ${JSON.stringify(eventDocument(event))}\n\n`)

/** Events are missing here. */
export const gap: Uint8Array = bytesOf("event: gap\ndata: {}\n\n")

/** The beginning of a stream. It tells the client at once that it is connected. */
export const beginning: Uint8Array = bytesOf("retry: 1000\n\n")

/** Says nothing, so that no proxy takes the connection for dead. */
export const heartbeat: Uint8Array = bytesOf(":\n\n")
