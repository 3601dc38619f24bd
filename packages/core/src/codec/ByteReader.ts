/**
 * Reads numbers and bytes of one message in order, and never past its end.
 */
import type { Json } from "../kernel/Json.ts"
import { CodecMisfit, maxValues } from "./CodecDescription.ts"

/** Where values of a message go. */
export type Target = Record<string, Json>

export class ByteReader {
  readonly bytes: Uint8Array
  readonly #view: DataView
  /** The next byte to read. */
  position = 0
  /** Where the enclosing part ends. */
  end: number
  /** Where the enclosing part begins. */
  start = 0
  #values = 0

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.end = bytes.length
  }

  /** Bytes that are left in the enclosing part. */
  get left(): number {
    return this.end - this.position
  }

  /** Moves past `size` bytes and returns where they begin. Fails with a misfit of the part at `path`. */
  take(size: number, path: string): number {
    const from = this.position
    if (size > this.left) {
      throw new CodecMisfit({
        path,
        expected: `expected ${size} bytes from byte ${from} on, and there are ${this.left}`
      })
    }
    this.position += size
    return from
  }

  /** Reads a number without sign of 1 to 8 bytes. */
  uint(size: number, little: boolean, path: string): number {
    const from = this.take(size, path)
    if (size === 1) return this.bytes[from]!
    if (size === 2) return this.#view.getUint16(from, little)
    if (size === 4) return this.#view.getUint32(from, little)
    let value = 0
    for (let i = 0; i < size; i++) value = value * 256 + this.bytes[little ? from + size - 1 - i : from + i]!
    return value
  }

  /** Reads a number with sign of 1 to 8 bytes. */
  int(size: number, little: boolean, path: string): number {
    const from = this.take(size, path)
    // The sign counts from the highest byte on: without it, seven bytes hold numbers that are not exact.
    let value = 0
    for (let i = 0; i < size; i++) {
      const byte = this.bytes[little ? from + size - 1 - i : from + i]!
      value = i === 0 ? byte << 24 >> 24 : value * 256 + byte
    }
    return value
  }

  float(size: 4 | 8, little: boolean, path: string): number {
    const from = this.take(size, path)
    return size === 4 ? this.#view.getFloat32(from, little) : this.#view.getFloat64(from, little)
  }

  /** Reads the next part inside the next `size` bytes, which it must use up. */
  within(size: number, path: string, read: () => void): void {
    const { end, start } = this
    this.start = this.take(size, path)
    this.position = this.start
    this.end = this.start + size
    read()
    if (this.left > 0) throw new CodecMisfit({ path, expected: `expected the end at byte ${this.position}` })
    this.start = start
    this.end = end
  }

  /** Counts a value of the message. */
  countValue(path: string): void {
    if (++this.#values > maxValues) throw new CodecMisfit({ path, expected: `expected at most ${maxValues} values` })
  }
}

/** Puts a value in its place. */
export const put = (target: Target, members: ReadonlyArray<string>, value: Json, path: string): void => {
  let place = target
  for (let i = 0; i < members.length - 1; i++) {
    const known = Object.hasOwn(place, members[i]!) ? place[members[i]!] : (place[members[i]!] = {})
    if (typeof known !== "object" || known === null || Array.isArray(known)) {
      throw new CodecMisfit({ path, expected: `expected ${members[i]} to be an object: another part gives it a value` })
    }
    place = known as Target
  }
  place[members.at(-1)!] = value
}
