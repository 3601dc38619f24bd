/**
 * Limits how often something may happen for a key within a sliding window.
 */

export interface Options {
  /** Hits within the window that reach the limit. */
  readonly limit: number
  /** Milliseconds. */
  readonly window: number
  /** Keys that are remembered; of more, those whose last hit is longest ago are forgotten. */
  readonly capacity: number
}

interface Hits {
  /** Unix milliseconds, the latest last; at most `limit` of them. */
  readonly at: Array<number>
  /** Unix milliseconds; 0: the limit is not reached. */
  fullUntil: number
}

export class RateWindow {
  readonly #options: Options
  /** The key with the latest hit comes last. */
  readonly #hits = new Map<string, Hits>()

  constructor(options: Options) {
    this.#options = options
  }

  /** Counts a hit at `now`, Unix milliseconds. True when the limit is reached; it stays so for the length of the window. */
  hit(key: string, now: number): boolean {
    const { capacity, limit, window } = this.#options
    const hits = this.#hits.get(key) ?? { at: [], fullUntil: 0 }
    hits.at.push(now)
    while (hits.at[0]! <= now - window || hits.at.length > limit) hits.at.shift()
    hits.fullUntil = hits.at.length >= limit ? now + window : 0
    this.#hits.delete(key)
    this.#hits.set(key, hits)
    if (this.#hits.size > capacity) this.#hits.delete(this.#hits.keys().next().value!)
    return hits.fullUntil > 0
  }

  /** Until when the limit counts as reached, Unix milliseconds; 0: it is not reached. */
  fullUntil(key: string): number {
    return this.#hits.get(key)?.fullUntil ?? 0
  }

  forget(key: string): void {
    this.#hits.delete(key)
  }
}
