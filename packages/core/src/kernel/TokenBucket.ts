/**
 * Limits how much may happen in a time: a bucket holds tokens, fills up at a
 * steady rate, and each event takes some. Tokens are counted in milliseconds: the
 * time in which the bucket fills up by them.
 */

/** A bucket from which so much is taken within a second is busy, milliseconds: a twentieth of its rate. */
const busy = 50

export class TokenBucket {
  readonly #burst: number
  readonly #onBusy: () => void
  /** When the bucket is full, Unix milliseconds, if nothing more is taken. */
  #fullAt = 0
  /** What was taken since an instant, at most a second ago or until somebody asks for it. */
  #taken = 0
  #takenSince = 0
  #isBusy = false

  /** `burst`: what a full bucket holds, milliseconds. `onBusy`: called when much is taken within a second. */
  constructor(burst: number, onBusy: () => void) {
    this.#burst = burst
    this.#onBusy = onBusy
  }

  /** Returns how long the bucket stays empty, milliseconds; 0: there is something in it. `now`: Unix milliseconds. */
  emptyFor(now: number): number {
    return Math.max(0, this.#fullAt - this.#burst - now)
  }

  /** Takes tokens. If there are too few, the bucket stays empty for longer. */
  take(tokens: number, now: number): void {
    this.charge(tokens, now)
    if (now - this.#takenSince >= 1000 && !this.#isBusy) {
      this.#takenSince = now
      this.#taken = 0
    }
    this.#taken += tokens
    if (this.#taken < busy || this.#isBusy) return
    this.#isBusy = true
    this.#onBusy()
  }

  /** Takes tokens that do not count as taken here. */
  charge(tokens: number, now: number): void {
    this.#fullAt = Math.max(this.#fullAt, now) + tokens
  }

  /** Returns what was taken since the bucket was not busy, and lets it be so again. */
  taken(): number {
    const taken = this.#taken
    this.#taken = 0
    this.#isBusy = false
    return taken
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
  /** Buckets that are busy. */
  readonly #busy = new Map<string, TokenBucket>()

  /** `capacity`: buckets that are kept. When there are more, those that nobody has asked for longest are forgotten. */
  constructor({ burst, capacity }: { readonly burst: number; readonly capacity: number }) {
    this.#burst = burst
    this.#half = capacity / 2
  }

  /** Returns the bucket of the key. A new one is full. */
  of(key: string): TokenBucket {
    const known = this.#recent.get(key)
    if (known !== undefined) return known
    const bucket = this.#older.get(key) ?? this.#make(key)
    if (this.#recent.size >= this.#half) {
      this.#older = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(key, bucket)
    return bucket
  }

  /** Returns what was taken from the buckets that are busy since the last call, by their keys. */
  taken(): ReadonlyArray<readonly [key: string, tokens: number]> {
    const taken = [...this.#busy].map(([key, bucket]) => [key, Math.round(bucket.taken())] as const)
    this.#busy.clear()
    return taken
  }

  #make(key: string): TokenBucket {
    const bucket: TokenBucket = new TokenBucket(this.#burst, () => {
      if (this.#busy.size < this.#half) this.#busy.set(key, bucket)
    })
    return bucket
  }
}
