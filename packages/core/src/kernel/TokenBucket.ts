/**
 * Limits how much may happen in a time: a bucket holds tokens, fills up at a
 * steady rate, and each event takes some. Tokens are counted in milliseconds: the
 * time in which the bucket fills up by them.
 */

export class TokenBucket {
  readonly #burst: number
  /** When the bucket is full, Unix milliseconds, if nothing more is taken. */
  #fullAt = 0

  /** `burst`: what a full bucket holds, milliseconds. */
  constructor(burst: number) {
    this.#burst = burst
  }

  /** Returns how long the bucket stays empty, milliseconds; 0: there is something in it. `now`: Unix milliseconds. */
  emptyFor(now: number): number {
    return Math.max(0, this.#fullAt - this.#burst - now)
  }

  /** Takes tokens. If there are too few, the bucket stays empty for longer. */
  take(tokens: number, now: number): void {
    this.#fullAt = Math.max(this.#fullAt, now) + tokens
  }
}

/** A bucket for each key. */
export class TokenBuckets {
  readonly #burst: number
  readonly #half: number
  /** Buckets that were asked for lately. */
  #recent = new Map<string, TokenBucket>()
  /** Buckets that were asked for before that. */
  #older = new Map<string, TokenBucket>()

  /** `capacity`: buckets that are kept. When there are more, those that nobody has asked for longest are forgotten. */
  constructor({ burst, capacity }: { readonly burst: number; readonly capacity: number }) {
    this.#burst = burst
    this.#half = capacity / 2
  }

  /** Returns the bucket of the key. A new one is full. */
  of(key: string): TokenBucket {
    const known = this.#recent.get(key)
    if (known !== undefined) return known
    const bucket = this.#older.get(key) ?? new TokenBucket(this.#burst)
    if (this.#recent.size >= this.#half) {
      this.#older = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(key, bucket)
    return bucket
  }
}
