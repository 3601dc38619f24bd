/**
 * Random numbers that follow from a seed: sfc32, which passes PractRand. Each part of
 * a simulation has numbers of its own, so that leaving one part out changes no other.
 */
import type { Random } from "effect"

export class SeededRandom implements Random.Random {
  #a: number
  #b: number
  #c: number
  #counter = 1

  /** Different seeds give independent numbers. */
  constructor(...seed: ReadonlyArray<number | string>) {
    // FNV-1a, three times with different starts.
    const text = seed.join("/")
    const hash = (start: number) => {
      let h = start
      for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193)
      return h >>> 0
    }
    this.#a = hash(0x811c9dc5)
    this.#b = hash(0x9e3779b9)
    this.#c = hash(0x85ebca6b)
    for (let i = 0; i < 12; i++) this.#next()
  }

  #next(): number {
    const t = (((this.#a + this.#b) | 0) + this.#counter) | 0
    this.#counter = (this.#counter + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + t) | 0
    return t >>> 0
  }

  nextDoubleUnsafe(): number {
    return this.#next() / 2 ** 32
  }

  nextIntUnsafe(): number {
    return (this.#next() & 0x1fffff) * 2 ** 32 + this.#next()
  }

  /** A number from `min` to `max`, not `max` itself. */
  between(min: number, max: number): number {
    return min + this.nextDoubleUnsafe() * (max - min)
  }

  /** A whole number from `min` to `max`, both included. */
  int(min: number, max: number): number {
    return Math.floor(this.between(min, max + 1))
  }

  /** True in `part` of all cases, 0 to 1. */
  chance(part: number): boolean {
    return this.nextDoubleUnsafe() < part
  }

  pick<A>(items: ReadonlyArray<A>): A {
    return items[this.int(0, items.length - 1)]!
  }

  bytes(size: number): Uint8Array {
    return Uint8Array.from({ length: size }, () => this.#next() & 0xff)
  }
}
