/**
 * The latest entries of an endless series, in a ring that grows to its limit. Times
 * and numbers stand beside each other in one array, and there is no object for an
 * entry: there may be millions, and the collector looks at none of them
 * (docs/decisions/0125-pauses.md).
 */

/** Entries that a ring keeps. */
const kept = 1000

const initial = 16

export class RingBuffer<A> {
  /** The time of each entry, and after it its value; NaN: the value is no number. */
  #numbers = new Float64Array(2 * initial)
  /** The values that are no numbers; undefined: there has been none. */
  #others: Array<A | undefined> | undefined
  #size = initial
  #first = 0
  #count = 0

  /** Adds an entry, in place of the oldest when the ring is full. Unix milliseconds; numbers are finite. */
  push(time: number, value: A): void {
    if (this.#count === this.#size && this.#count < kept) this.#grow()
    const at = (this.#first + this.#count) % this.#size
    this.#numbers[2 * at] = time
    if (typeof value === "number") {
      this.#numbers[2 * at + 1] = value
      if (this.#others !== undefined) this.#others[at] = undefined
    } else {
      this.#numbers[2 * at + 1] = Number.NaN
      this.#others ??= Array.from({ length: this.#size })
      this.#others[at] = value
    }
    if (this.#count < this.#size) this.#count++
    else this.#first = (this.#first + 1) % this.#size
  }

  /** The entries from `start` to `end`, both included, in the order in which they were stored. Default: all. */
  entries(
    start = Number.NEGATIVE_INFINITY,
    end = Number.POSITIVE_INFINITY
  ): ReadonlyArray<{ readonly time: number; readonly value: A }> {
    const found: Array<{ readonly time: number; readonly value: A }> = []
    for (let i = 0; i < this.#count; i++) {
      const at = (this.#first + i) % this.#size
      const time = this.#numbers[2 * at]!
      if (time >= start && time <= end) found.push({ time, value: this.#valueAt(at) })
    }
    return found
  }

  /** Whether an entry of this time has a value that `isWanted` accepts. */
  has(time: number, isWanted: (value: A) => boolean): boolean {
    for (let i = 0; i < this.#count; i++) {
      const at = (this.#first + i) % this.#size
      if (this.#numbers[2 * at] === time && isWanted(this.#valueAt(at))) return true
    }
    return false
  }

  /** Forgets entries with a time before `time`. */
  prune(time: number): void {
    if (!this.#hasBefore(time)) return
    const left = this.entries(time)
    this.#others = undefined
    this.#first = 0
    this.#count = 0
    for (const entry of left) this.push(entry.time, entry.value)
  }

  #hasBefore(time: number): boolean {
    for (let i = 0; i < this.#count; i++) {
      if (this.#numbers[2 * ((this.#first + i) % this.#size)]! < time) return true
    }
    return false
  }

  #valueAt(at: number): A {
    const number = this.#numbers[2 * at + 1]!
    return (Number.isNaN(number) ? this.#others![at] : number) as A
  }

  /** A ring that grows begins at its start: nothing of it was overwritten. */
  #grow(): void {
    const numbers = this.#numbers
    this.#size = Math.min(this.#size * 2, kept)
    this.#numbers = new Float64Array(2 * this.#size)
    this.#numbers.set(numbers)
  }
}
