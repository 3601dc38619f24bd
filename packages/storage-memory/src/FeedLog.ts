/**
 * The feed in memory: the latest events, each with a number.
 */
import { type DomainEvent, type FeedEntry, type FeedPlace, placeOf } from "@device-cloud/core"

/** How many events are kept at least, unless they are forgotten; at most twice as many. */
const kept = 50_000

export class FeedLog {
  #events: Array<{ readonly event: DomainEvent; readonly recordedAt: number }> = []
  /** The number of the last event that is not kept. The first one follows from the clock: numbers of an earlier process are lower. */
  #forgotten: number

  /** `now`: Unix milliseconds. */
  constructor(now: number) {
    this.#forgotten = now * 1000
  }

  /** The number of the last event that is not kept. */
  get forgotten(): number {
    return this.#forgotten
  }

  /** The number of the last event. */
  get last(): number {
    return this.#forgotten + this.#events.length
  }

  /** `now`: Unix milliseconds. */
  append(events: ReadonlyArray<DomainEvent>, now: number): void {
    for (const event of events) this.#events.push({ event, recordedAt: now })
    if (this.#events.length > 2 * kept) this.#forget(this.#events.length - kept)
  }

  /** The entries after the event of this number, at most `limit` of them. */
  after(number: number, limit: number): ReadonlyArray<FeedEntry> {
    const start = Math.max(number - this.#forgotten, 0)
    return this.#events.slice(start, start + limit).map(({ event }, i) => ({
      id: placeOfNumber(this.#forgotten + start + i + 1),
      event
    }))
  }

  /** The entries that `isWanted` before the event of this number, at most `limit` of them, the latest first. */
  before(number: number, limit: number, isWanted: (event: DomainEvent) => boolean): ReadonlyArray<FeedEntry> {
    const entries: Array<FeedEntry> = []
    for (let i = Math.min(number - this.#forgotten - 1, this.#events.length) - 1; i >= 0; i--) {
      if (entries.length === limit) break
      const { event } = this.#events[i]!
      if (isWanted(event)) entries.push({ id: placeOfNumber(this.#forgotten + i + 1), event })
    }
    return entries
  }

  /** The number of the last event before all that were recorded at `time` or later, Unix milliseconds. */
  recordedBefore(time: number): number {
    const later = this.#events.findIndex(({ recordedAt }) => recordedAt >= time)
    return later < 0 ? this.last : this.#forgotten + later
  }

  /** Forgets the events that were recorded before `time`, Unix milliseconds. */
  forgetBefore(time: number): void {
    this.#forget(this.recordedBefore(time) - this.#forgotten)
  }

  #forget(count: number): void {
    this.#events = this.#events.slice(count)
    this.#forgotten += count
  }
}

export const placeOfNumber = (number: number): FeedPlace => placeOf({ transaction: number, sequence: 0, part: 0 })
