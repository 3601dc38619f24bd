/**
 * Writes numbers and bytes of one message in order, and no more than a message
 * may have.
 */
import { CodecMisfit, maxMessageBytes } from "./CodecDescription.ts"

const firstCapacity = 256

export class ByteWriter {
  #bytes = new Uint8Array(firstCapacity)
  #view = new DataView(this.#bytes.buffer)
  /** Bytes that are written. */
  position = 0
  /** Where the enclosing part begins. */
  start = 0

  /** What is written, until the next write. */
  get bytes(): Uint8Array {
    return this.#bytes
  }

  /** Adds `size` zeros and returns where they begin. */
  take(size: number): number {
    const from = this.position
    const after = from + size
    if (after > maxMessageBytes) {
      throw new CodecMisfit({ path: "", expected: `expected a message of at most ${maxMessageBytes} bytes` })
    }
    if (after > this.#bytes.length) {
      const grown = new Uint8Array(Math.min(maxMessageBytes, Math.max(after, this.#bytes.length * 2)))
      grown.set(this.#bytes.subarray(0, from))
      this.#bytes = grown
      this.#view = new DataView(grown.buffer)
    }
    this.#bytes.fill(0, from, after)
    this.position = after
    return from
  }

  /** Writes a whole number of 1 to 8 bytes that fits them, with or without sign. */
  integer(value: number, size: number, little: boolean): void {
    this.integerAt(this.take(size), value, size, little)
  }

  /** Writes a whole number over bytes that are written. */
  integerAt(from: number, value: number, size: number, little: boolean): void {
    let rest = BigInt.asUintN(8 * size, BigInt(value))
    if (size === 8) return this.#view.setBigUint64(from, rest, little)
    for (let i = 0; i < size; i++) {
      this.#bytes[little ? from + i : from + size - 1 - i] = Number(rest & 0xffn)
      rest >>= 8n
    }
  }

  float(value: number, size: 4 | 8, little: boolean): void {
    const from = this.take(size)
    if (size === 4) this.#view.setFloat32(from, value, little)
    else this.#view.setFloat64(from, value, little)
  }

  raw(bytes: Uint8Array): void {
    const from = this.take(bytes.length)
    this.#bytes.set(bytes, from)
  }

  /** Writes a part that counts its places from here. Returns its bytes' number. */
  within(write: () => void): number {
    const { position, start } = this
    this.start = position
    write()
    this.start = start
    return this.position - position
  }

  /** Returns a copy of what is written. */
  finish(): Uint8Array {
    return this.#bytes.slice(0, this.position)
  }
}
