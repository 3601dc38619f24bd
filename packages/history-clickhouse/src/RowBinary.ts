/**
 * Rows in the binary format of ClickHouse: numbers keep every bit.
 */

/** Writes values one after the other into a buffer that grows. */
export class RowBinary {
  #bytes = new Uint8Array(65_536)
  #view = new DataView(this.#bytes.buffer)
  #length = 0

  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#length)
  }

  uint8(value: number): this {
    this.#view.setUint8(this.#take(1), value)
    return this
  }

  uint16(value: number): this {
    this.#view.setUint16(this.#take(2), value, true)
    return this
  }

  uint32(value: number): this {
    this.#view.setUint32(this.#take(4), value, true)
    return this
  }

  uint64(value: bigint): this {
    this.#view.setBigUint64(this.#take(8), value, true)
    return this
  }

  int64(value: number): this {
    this.#view.setBigInt64(this.#take(8), BigInt(value), true)
    return this
  }

  /** A number, or null. */
  nullableFloat64(value: number | null): this {
    this.uint8(value === null ? 1 : 0)
    if (value !== null) this.#view.setFloat64(this.#take(8), value, true)
    return this
  }

  string(value: string): this {
    const bytes = encoder.encode(value)
    for (let rest = bytes.length;; rest = Math.floor(rest / 128)) {
      this.uint8(rest < 128 ? rest : rest % 128 + 128)
      if (rest < 128) break
    }
    this.#bytes.set(bytes, this.#take(bytes.length))
    return this
  }

  /** Makes room, and returns where it begins. */
  #take(size: number): number {
    const start = this.#length
    this.#length += size
    if (this.#length > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(2 * this.#bytes.length, this.#length))
      larger.set(this.#bytes)
      this.#bytes = larger
      this.#view = new DataView(larger.buffer)
    }
    return start
  }
}

const encoder = new TextEncoder()
