/**
 * The history that follows from what has happened. Pure.
 */
import type { DomainEvent } from "../events/DomainEvent.ts"
import type { EventRecord, PropertySample } from "./HistoryEntry.ts"

/** Returns what the events add to the history of their device, in the order in which it is stored. */
export const historyOf = (
  happened: ReadonlyArray<DomainEvent>
): { readonly samples: ReadonlyArray<PropertySample>; readonly events: ReadonlyArray<EventRecord> } => {
  const samples: Array<PropertySample> = []
  const events: Array<EventRecord> = []
  for (const event of happened) {
    if (event._tag === "PropertiesReported") {
      for (const sample of samplesOf(event)) samples.push(sample)
    } else if (event._tag === "EventReported") {
      events.push({ eventId: event.eventId, time: event.time, value: event.value })
    }
  }
  return { samples, events }
}

/** Returns the values of a report in the order in which they are stored. */
export const samplesOf = (
  { earlier, properties }: Pick<DomainEvent & { readonly _tag: "PropertiesReported" }, "earlier" | "properties">
): ReadonlyArray<PropertySample> => {
  const samples = earlier === undefined ? [] : [...earlier]
  for (const propertyId in properties) {
    const { time, value } = properties[propertyId]!
    samples.push({ propertyId, time, value })
  }
  return samples
}
