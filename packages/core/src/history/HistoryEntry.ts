/**
 * What devices have said over time: the values of their properties, and their
 * events.
 */
import type { Json } from "../kernel/Json.ts"

/** One reported value of a property. */
export interface PropertySample {
  readonly propertyId: string
  /** When it was measured, Unix milliseconds. */
  readonly time: number
  readonly value: Json
}

/** One occurrence of an event. */
export interface EventRecord {
  readonly eventId: string
  /** When it happened, Unix milliseconds. */
  readonly time: number
  readonly value: Json
}

/** A stretch of history. */
export interface HistoryRange {
  /** Unix milliseconds, inclusive. */
  readonly start: number
  /** Unix milliseconds, inclusive. */
  readonly end: number
  /** Entries at most. */
  readonly limit: number
  /** By time. */
  readonly order: "asc" | "desc"
}
