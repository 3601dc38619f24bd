/**
 * The latest entries of something that goes on and on, in a ring that grows to
 * its limit. It holds no object for each entry: there may be millions.
 */

/** Entries that are kept. */
const kept = 1000

const initial = 16

export class RingBuffer<A> {
  #times = new Float64Array(initial)
  #storedAt = new Float64Array(initial)
  #values: Array<A | undefined> = Array.from({ length: initial })
  #first = 0
  #count = 0

  push(time: number, value: A, storedAt: number): void {
    if (this.#count === this.#times.length && this.#count < kept) this.#grow()
    const size = this.#times.length
    const at = (this.#first + this.#count) % size
    this.#times[at] = time
    this.#storedAt[at] = storedAt
    this.#values[at] = value
    if (this.#count < size) this.#count++
    else this.#first = (this.#first + 1) % size
  }

  /** In the order in which they were stored. */
  entries(): ReadonlyArray<{ readonly time: number; readonly value: A }> {
    return Array.from({ length: this.#count }, (_, i) => {
      const at = (this.#first + i) % this.#times.length
      return { time: this.#times[at]!, value: this.#values[at] as A }
    })
  }

  /** Forgets what was stored before, at most `limit` entries; answers how many. */
  prune(storedBefore: number, limit: number): number {
    let pruned = 0
    while (pruned < limit && this.#count > 0 && this.#storedAt[this.#first]! < storedBefore) {
      this.#values[this.#first] = undefined
      this.#first = (this.#first + 1) % this.#times.length
      this.#count--
      pruned++
    }
    return pruned
  }

  /** Takes what is there to a larger ring. */
  #grow(): void {
    const size = Math.min(this.#times.length * 2, kept)
    const entries = this.entries()
    const storedAt = entries.map((_, i) => this.#storedAt[(this.#first + i) % this.#storedAt.length]!)
    this.#times = new Float64Array(size)
    this.#storedAt = new Float64Array(size)
    this.#values = Array.from({ length: size })
    this.#first = 0
    for (const [i, { time, value }] of entries.entries()) {
      this.#times[i] = time
      this.#storedAt[i] = storedAt[i]!
      this.#values[i] = value
    }
  }
}
