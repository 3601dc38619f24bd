/**
 * Addresses from which devices were authenticated lately.
 */

/** Addresses that are remembered at least, if there are so many; at most twice as many. */
const capacity = 50_000

/** Milliseconds for which an address is remembered at least, unless there are too many; at most twice as long. */
const lifetime = 12 * 3_600_000

/** Two sets take turns: an address costs no time stamp and no timer. */
export class LatelyKnown {
  readonly #now: () => number
  #current = new Set<string>()
  #previous = new Set<string>()
  #since: number

  /** `now` returns Unix milliseconds. */
  constructor(now: () => number) {
    this.#now = now
    this.#since = now()
  }

  has(address: string): boolean {
    this.#turn()
    return this.#current.has(address) || this.#previous.has(address)
  }

  add(address: string): void {
    this.#turn()
    this.#current.add(address)
  }

  #turn(): void {
    const now = this.#now()
    if (this.#current.size < capacity && now - this.#since < lifetime) return
    // After two lifetimes without a call nothing is remembered.
    this.#previous = now - this.#since < 2 * lifetime ? this.#current : new Set()
    this.#current = new Set()
    this.#since = now
  }
}
