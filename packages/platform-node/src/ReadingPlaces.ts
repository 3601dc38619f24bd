/**
 * Large bodies are read a few at a time, so that hundreds of them together hold
 * the thread for milliseconds only (docs/decisions/0061-turns-on-the-thread.md).
 */

/** A connection with a large body. */
export interface Reader {
  /** The client that sends it. */
  readonly address: string
  /** Reads on: it has a place now. */
  readonly resume: () => void
}

export class ReadingPlaces {
  readonly #count: number
  /** Those with a place, and whether something has come from them since the last look. */
  readonly #reading = new Map<Reader, boolean>()
  readonly #waiting = new Set<Reader>()

  constructor(count: number) {
    this.#count = count
  }

  /** Something has come. Returns whether more may be read; otherwise `resume` is called when it may. */
  take(reader: Reader): boolean {
    if (this.#reading.has(reader) || (this.#waiting.size === 0 && this.#reading.size < this.#count)) {
      this.#reading.set(reader, true)
      return true
    }
    this.#waiting.add(reader)
    return false
  }

  /** The body has ended, however it did. */
  leave(reader: Reader): void {
    this.#waiting.delete(reader)
    if (this.#reading.delete(reader)) this.#admit()
  }

  /** Gives the places to others from which nothing has come since the last call. They wait again when something comes. */
  takeFromIdle(): void {
    for (const [reader, isBusy] of this.#reading) {
      if (isBusy) this.#reading.set(reader, false)
      else this.#reading.delete(reader)
    }
    this.#admit()
  }

  #admit(): void {
    while (this.#waiting.size > 0 && this.#reading.size < this.#count) {
      const next = this.#next()
      this.#waiting.delete(next)
      this.#reading.set(next, true)
      next.resume()
    }
  }

  /** The first that waits, of the addresses with the fewest places. */
  #next(): Reader {
    const places = new Map<string, number>()
    for (const { address } of this.#reading.keys()) places.set(address, (places.get(address) ?? 0) + 1)
    const placesOf = ({ address }: Reader) => places.get(address) ?? 0
    return [...this.#waiting].reduce((a, b) => placesOf(b) < placesOf(a) ? b : a)
  }
}
