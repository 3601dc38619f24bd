/**
 * Limits how often something may happen for a key within a sliding window.
 */

export interface Options {
  /** Hits within the window that reach the limit. */
  readonly limit: number
  /** Length of the window, milliseconds. */
  readonly window: number
  /** Keys that are remembered. When there are more, the key whose last hit is longest ago is forgotten. */
  readonly capacity: number
}

interface Hits {
  /** The latest hits, Unix milliseconds, the latest last; at most `limit`. */
  readonly at: Array<number>
  /** When the limit stops being reached, Unix milliseconds; 0: it is not reached. */
  fullUntil: number
}

/** Text of its own: for a part of a text, such as a name in a topic, V8 keeps the whole of it in memory. */
const copied = (text: string): string => JSON.parse(JSON.stringify(text)) as string

export class RateWindow {
  readonly #options: Options
  /** The key with the latest hit comes last. */
  readonly #hits = new Map<string, Hits>()

  constructor(options: Options) {
    this.#options = options
  }

  /**
   * Counts a hit at `now`, Unix milliseconds. Returns true if the limit is
   * reached; it then stays reached for the length of the window.
   */
  hit(key: string, now: number): boolean {
    const { capacity, limit, window } = this.#options
    const hits = this.#hits.get(key) ?? { at: [], fullUntil: 0 }
    hits.at.push(now)
    while (hits.at[0]! <= now - window || hits.at.length > limit) hits.at.shift()
    hits.fullUntil = hits.at.length >= limit ? now + window : 0
    this.#hits.delete(key)
    this.#hits.set(copied(key), hits)
    if (this.#hits.size > capacity) this.#hits.delete(this.#hits.keys().next().value!)
    return hits.fullUntil > 0
  }

  /** Returns the hits of the key within the window before `now`, Unix milliseconds; at most the limit. */
  count(key: string, now: number): number {
    const since = now - this.#options.window
    return this.#hits.get(key)?.at.filter((at) => at > since).length ?? 0
  }

  /** Returns until when the limit is reached, Unix milliseconds; 0: it is not reached. */
  fullUntil(key: string): number {
    return this.#hits.get(key)?.fullUntil ?? 0
  }

  /** Forgets the hits of the key. */
  forget(key: string): void {
    this.#hits.delete(key)
  }
}
