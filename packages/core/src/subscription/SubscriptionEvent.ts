/**
 * An event of a subscription as JSON (docs/api/subscriptions.md).
 */
import { Schema } from "effect"
import { eventDocument, eventText, eventTypes } from "../events/EventDocument.ts"
import type { FeedEntry } from "../feed/FeedStore.ts"

export const SubscriptionEvent = Schema.Struct({
  /** The same for each delivery. */
  id: Schema.String,
  type: Schema.Literals(Object.values(eventTypes)),
  /** As `GET /events` has it. */
  data: Schema.Record(Schema.String, Schema.Json)
})
export interface SubscriptionEvent extends Schema.Schema.Type<typeof SubscriptionEvent> {}

export const subscriptionEvent = ({ event, id }: FeedEntry): SubscriptionEvent => ({
  id,
  type: eventTypes[event._tag],
  data: eventDocument(event)
})

/** The text of {@link subscriptionEvent}. */
export const subscriptionEventText = ({ event, id }: FeedEntry): string =>
  `{"id":${JSON.stringify(id)},"type":"${eventTypes[event._tag]}","data":${eventText(event)}}`
