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
  readonly #ofAddress: number
  /** Those with a place, and whether something has come from them since the last look. */
  readonly #reading = new Map<Reader, boolean>()
  readonly #waiting = new Set<Reader>()

  /** `ofAddress`: places that readers of one address may have. */
  constructor(count: number, ofAddress = count) {
    this.#count = count
    this.#ofAddress = ofAddress
  }

  /** Something has come. Returns whether more may be read; otherwise `resume` is called when it may. */
  take(reader: Reader): boolean {
    if (this.#reading.has(reader) || this.#hasRoomFor(reader, this.#taken())) {
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

  /** After it, there is room for none of those that wait. */
  #admit(): void {
    while (true) {
      const next = this.#next()
      if (next === undefined) return
      this.#waiting.delete(next)
      this.#reading.set(next, true)
      next.resume()
    }
  }

  /** The first that waits and has room, of the addresses with the fewest places. */
  #next(): Reader | undefined {
    const taken = this.#taken()
    const placesOf = ({ address }: Reader) => taken.get(address) ?? 0
    let next: Reader | undefined
    for (const reader of this.#waiting) {
      if (!this.#hasRoomFor(reader, taken)) continue
      if (next === undefined || placesOf(reader) < placesOf(next)) next = reader
    }
    return next
  }

  #hasRoomFor({ address }: Reader, taken: ReadonlyMap<string, number>): boolean {
    return this.#reading.size < this.#count && (taken.get(address) ?? 0) < this.#ofAddress
  }

  /** How many places there are for each address that has some. */
  #taken(): ReadonlyMap<string, number> {
    const taken = new Map<string, number>()
    for (const { address } of this.#reading.keys()) taken.set(address, (taken.get(address) ?? 0) + 1)
    return taken
  }
}
