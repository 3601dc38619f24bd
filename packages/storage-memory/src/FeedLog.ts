/**
 * The feed in memory: the latest events, each with a number.
 */
import { type DomainEvent, type FeedEntry, type FeedPlace, placeOf } from "@device-cloud/core"
import { FeedPart, type Head } from "./FeedPart.ts"

/** How many events are kept at least, unless they are forgotten or large. */
const kept = 50_000
/** The parts that are kept at most: two million numbers, or 128 MiB of text. */
const maxParts = 512

export class FeedLog {
  /** In order, without gaps; there is at least one. */
  readonly #parts: Array<FeedPart>
  /** The number of the last event that is not kept. The first one follows from the clock: numbers of an earlier process are lower. */
  #forgotten: number

  /** `now`: Unix milliseconds. */
  constructor(now: number) {
    this.#forgotten = now * 1000
    const part = new FeedPart()
    part.restart(this.#forgotten)
    this.#parts = [part]
  }

  /** The number of the last event that is not kept. */
  get forgotten(): number {
    return this.#forgotten
  }

  /** The number of the last event. */
  get last(): number {
    return this.#parts.at(-1)!.last
  }

  /** `now`: Unix milliseconds. */
  append(events: ReadonlyArray<DomainEvent>, now: number): void {
    for (const event of events) {
      if (!this.#parts.at(-1)!.append(event, now)) this.#begin().append(event, now)
    }
  }

  /** The entries after the event of this number, at most `limit` of them. */
  after(number: number, limit: number): ReadonlyArray<FeedEntry> {
    const entries: Array<FeedEntry> = []
    const end = Math.min(Math.max(number, this.#forgotten) + limit, this.last)
    for (let next = Math.max(number, this.#forgotten) + 1, i = this.#partOf(next); next <= end; i++) {
      const part = this.#parts[i]!
      for (; next <= Math.min(end, part.last); next++) entries.push(entryOf(part, next))
    }
    return entries
  }

  /** The entries that `isWanted` before the event of this number, at most `limit` of them, the latest first. */
  before(number: number, limit: number, isWanted: (head: Head) => boolean): ReadonlyArray<FeedEntry> {
    const entries: Array<FeedEntry> = []
    let next = Math.min(number - 1, this.last)
    for (let i = this.#partOf(next); i >= 0; i--) {
      const part = this.#parts[i]!
      for (; next > Math.max(part.before, this.#forgotten); next--) {
        if (entries.length === limit) return entries
        if (isWanted(part.head(next))) entries.push(entryOf(part, next))
      }
    }
    return entries
  }

  /** The number of the last event before all that were recorded at `time` or later, Unix milliseconds. */
  recordedBefore(time: number): number {
    for (const part of this.#parts) {
      for (let next = Math.max(part.before, this.#forgotten) + 1; next <= part.last; next++) {
        if (part.recordedAt(next) >= time) return next - 1
      }
    }
    return this.last
  }

  /** Forgets the events that were recorded before `time`, Unix milliseconds. */
  forgetBefore(time: number): void {
    this.#forgotten = this.recordedBefore(time)
    while (this.#parts.length > 1 && this.#parts[0]!.last <= this.#forgotten) this.#parts.shift()
  }

  /** Forgets the oldest parts until the others take at most so many bytes. The last one stays. */
  forgetBeyond(maxBytes: number): void {
    let bytes = this.#parts.reduce((sum, part) => sum + part.bytes, 0)
    while (this.#parts.length > 1 && bytes > maxBytes) bytes -= this.#parts.shift()!.bytes
    this.#forgotten = Math.max(this.#forgotten, this.#parts[0]!.before)
  }

  /** Returns a new part at the end: the oldest, if the others are enough. */
  #begin(): FeedPart {
    const { last } = this
    const [first, second] = this.#parts
    const isEnough = second !== undefined && (last - second.before >= kept || this.#parts.length === maxParts)
    if (isEnough) this.#parts.shift()
    const part = isEnough ? first! : new FeedPart()
    part.restart(last)
    this.#parts.push(part)
    this.#forgotten = Math.max(this.#forgotten, this.#parts[0]!.before)
    return part
  }

  /** The place of the last part that begins before the event of this number; -1: there is none. */
  #partOf(number: number): number {
    return this.#parts.findLastIndex(({ before }) => before < number)
  }
}

const entryOf = (part: FeedPart, number: number): FeedEntry => ({
  id: placeOfNumber(number),
  event: part.event(number)
})

export const placeOfNumber = (number: number): FeedPlace => placeOf({ transaction: number, sequence: 0, part: 0 })
