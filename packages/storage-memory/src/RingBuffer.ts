/**
 * The latest entries of an endless series, in a ring that grows to its limit.
 * It holds arrays of numbers and values and no object for each entry, because
 * there may be millions.
 */

/** Entries that a ring keeps. */
const kept = 1000

const initial = 16

export class RingBuffer<A> {
  #times = new Float64Array(initial)
  #values: Array<A | undefined> = Array.from({ length: initial })
  #first = 0
  #count = 0

  /** Adds an entry, in place of the oldest when the ring is full. Unix milliseconds. */
  push(time: number, value: A): void {
    if (this.#count === this.#times.length && this.#count < kept) this.#grow()
    const size = this.#times.length
    const at = (this.#first + this.#count) % size
    this.#times[at] = time
    this.#values[at] = value
    if (this.#count < size) this.#count++
    else this.#first = (this.#first + 1) % size
  }

  /** The entries from `start` to `end`, both included, in the order in which they were stored. Default: all. */
  entries(
    start = Number.NEGATIVE_INFINITY,
    end = Number.POSITIVE_INFINITY
  ): ReadonlyArray<{ readonly time: number; readonly value: A }> {
    const found: Array<{ readonly time: number; readonly value: A }> = []
    for (let i = 0; i < this.#count; i++) {
      const at = (this.#first + i) % this.#times.length
      const time = this.#times[at]!
      if (time >= start && time <= end) found.push({ time, value: this.#values[at] as A })
    }
    return found
  }

  /** Whether an entry of this time has a value that `isWanted` accepts. */
  has(time: number, isWanted: (value: A) => boolean): boolean {
    for (let i = 0; i < this.#count; i++) {
      const at = (this.#first + i) % this.#times.length
      if (this.#times[at] === time && isWanted(this.#values[at] as A)) return true
    }
    return false
  }

  /** Forgets entries with a time before `time`. */
  prune(time: number): void {
    const left = this.entries(time)
    if (left.length === this.#count) return
    this.#restart(this.#times.length, left)
  }

  /** Moves all entries to a larger ring. */
  #grow(): void {
    this.#restart(Math.min(this.#times.length * 2, kept), this.entries())
  }

  #restart(size: number, entries: ReadonlyArray<{ readonly time: number; readonly value: A }>): void {
    this.#times = new Float64Array(size)
    this.#values = Array.from({ length: size })
    this.#first = 0
    this.#count = 0
    for (const { time, value } of entries) this.push(time, value)
  }
}
