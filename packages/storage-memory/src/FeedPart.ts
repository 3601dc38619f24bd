/**
 * A part of the feed in memory: events in their order.
 *
 * Most events are reports of properties, and stay for many collections of garbage. As
 * objects they are a dozen each, which the collector moves twice and marks; here they
 * are numbers in columns (docs/decisions/0125-pauses.md).
 */
import type { DomainEvent, Json } from "@device-cloud/core"

/** Events in a part. */
const size = 1024
/** Values in a part, and what they weigh until it is full. */
const room = 4 * size
/** Characters of a text that weigh as much as a number, and the bytes that this weight stands for. */
const charactersOfWeight = 64

/** A number weighs 1; a value with others in it weighs 1 more than they. */
const weightOf = (value: unknown): number => {
  if (typeof value === "string") return 1 + Math.floor(value.length / charactersOfWeight)
  if (typeof value !== "object" || value === null) return 1
  let weight = 1
  for (const inner of Object.values(value)) weight += weightOf(inner)
  return weight
}

type Report = DomainEvent & { readonly _tag: "PropertiesReported" }

/** What an event says first. */
export type Head = Pick<DomainEvent, "_tag" | "device">

export class FeedPart {
  /** The number of the event before the first. */
  before = 0
  #count = 0
  /** Unix milliseconds. */
  readonly #recordedAt = new Float64Array(size)
  /** Reports by their device, other events as they are. */
  readonly #events: Array<DomainEvent | Report["device"] | undefined> = Array.from({ length: size })
  /** The properties of reports; undefined: another event. */
  readonly #properties: Array<ReadonlyArray<string> | undefined> = Array.from({ length: size })
  /** When reports came in. */
  readonly #at = new Float64Array(size)
  /** Where the values of each report begin. */
  readonly #starts = new Uint16Array(size)
  #values = 0
  #weight = 0
  /** The time of each value, and after it the value; NaN: it is no number. */
  readonly #numbers = new Float64Array(2 * room)
  readonly #others: Array<Json | undefined> = Array.from({ length: room })
  /** The properties of the latest report of each product: most reports have those of the one before. */
  readonly #latest = new Map<string, ReadonlyArray<string>>()

  /** The number of the last event. */
  get last(): number {
    return this.before + this.#count
  }

  /** About how much memory the events take. */
  get bytes(): number {
    return this.#weight * charactersOfWeight
  }

  /** Forgets everything; the next event has the number after `before`. */
  restart(before: number): void {
    this.before = before
    this.#count = 0
    this.#values = 0
    this.#weight = 0
    this.#events.fill(undefined)
    this.#properties.fill(undefined)
    this.#others.fill(undefined)
    this.#latest.clear()
  }

  /** Returns false if there is no room; an empty part has room for every event. `now`: Unix milliseconds. */
  append(event: DomainEvent, now: number): boolean {
    const at = this.#count
    if (at === size || this.#weight >= room) return false
    if (event._tag === "PropertiesReported" && event.earlier === undefined) {
      const properties = this.#propertiesOf(event)
      if (properties.length <= room) {
        if (this.#values + properties.length > room) return false
        this.#appendReport(at, event, properties)
      } else this.#appendOther(at, event)
    } else this.#appendOther(at, event)
    this.#recordedAt[at] = now
    this.#count++
    return true
  }

  /** When the event of this number was recorded, Unix milliseconds. */
  recordedAt(number: number): number {
    return this.#recordedAt[number - this.before - 1]!
  }

  /** What the event of this number says first. */
  head(number: number): Head {
    const at = number - this.before - 1
    return this.#properties[at] === undefined
      ? this.#events[at] as DomainEvent
      : { _tag: "PropertiesReported", device: this.#events[at] as Report["device"] }
  }

  /** The event of this number. */
  event(number: number): DomainEvent {
    const at = number - this.before - 1
    const ids = this.#properties[at]
    if (ids === undefined) return this.#events[at] as DomainEvent
    const properties: Record<string, { readonly value: Json; readonly time: number }> = {}
    for (let i = 0; i < ids.length; i++) {
      const place = this.#starts[at]! + i
      const number = this.#numbers[2 * place + 1]!
      properties[ids[i]!] = {
        value: Number.isNaN(number) ? this.#others[place]! : number,
        time: this.#numbers[2 * place]!
      }
    }
    return {
      _tag: "PropertiesReported",
      device: this.#events[at] as Report["device"],
      at: this.#at[at]!,
      properties
    }
  }

  #appendOther(at: number, event: DomainEvent): void {
    this.#events[at] = event
    this.#weight += weightOf(event)
  }

  #appendReport(at: number, { at: receivedAt, device, properties }: Report, ids: ReadonlyArray<string>): void {
    this.#events[at] = device
    this.#properties[at] = ids
    this.#at[at] = receivedAt
    this.#starts[at] = this.#values
    this.#weight += ids.length
    for (let i = 0; i < ids.length; i++) {
      const { time, value } = properties[ids[i]!]!
      const place = this.#values++
      this.#numbers[2 * place] = time
      if (typeof value === "number") this.#numbers[2 * place + 1] = value
      else {
        this.#numbers[2 * place + 1] = Number.NaN
        this.#others[place] = value
        this.#weight += weightOf(value) - 1
      }
    }
  }

  /** The properties of a report, in one array for all neighbours that have the same. */
  #propertiesOf({ device: { productKey }, properties }: Report): ReadonlyArray<string> {
    const latest = this.#latest.get(productKey)
    if (latest !== undefined) {
      let same = 0
      for (const id in properties) {
        if (latest[same++] !== id) {
          same = -1
          break
        }
      }
      if (same === latest.length) return latest
    }
    const ids = Object.keys(properties)
    this.#latest.set(productKey, ids)
    return ids
  }
}
