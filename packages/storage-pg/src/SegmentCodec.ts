/**
 * The bytes of a segment: entries of one property or event of a device on one day.
 *
 * The first byte says how the rest is written:
 *
 * - 0: as JSON, `[[time,value],…]`. SQL can write this.
 * - 1: times, then values. The first time and the differences between the steps of
 *   time are variable-length numbers, zig-zag encoded; the values follow as a JSON list.
 * - 2: the same as 1, deflated.
 *
 * Times are milliseconds of the day. Values come back as they were.
 */
import type { Json } from "@device-cloud/core"
import { deflateRawSync, inflateRawSync } from "node:zlib"

/** Entries by time; those of the same time in the order in which they were stored. */
export interface Columns {
  /** Milliseconds of the day. */
  readonly times: ReadonlyArray<number>
  readonly values: ReadonlyArray<Json>
}

const asJson = 0
const plain = 1
const deflated = 2

/** Below, deflating does not pay. */
const minDeflated = 64

/** `texts`: the values as JSON. There is at least one entry. */
export const encode = (times: ReadonlyArray<number>, texts: ReadonlyArray<string>): Uint8Array => {
  const values = Buffer.from(`[${texts.join(",")}]`)
  const bytes = Buffer.allocUnsafe(11 + times.length * 5 + values.length)
  bytes[0] = plain
  let end = writeNumber(bytes, 1, times.length)
  let time = 0
  let step = 0
  for (let i = 0; i < times.length; i++) {
    const next = times[i]! - time
    end = writeNumber(bytes, end, zigZag(next - step))
    time = times[i]!
    // The first one is no step.
    step = i === 0 ? 0 : next
  }
  end += values.copy(bytes, end)
  const whole = bytes.subarray(0, end)
  if (end < minDeflated) return whole
  const small = deflateRawSync(whole.subarray(1))
  return small.length >= end - 1 ? whole : Buffer.concat([Buffer.of(deflated), small])
}

export const decode = (data: Uint8Array): Columns => {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength)
  if (bytes[0] === asJson) {
    const entries = JSON.parse(bytes.toString("utf8", 1)) as ReadonlyArray<readonly [number, Json]>
    return { times: entries.map(([time]) => time), values: entries.map(([, value]) => value) }
  }
  return decodeColumns(bytes[0] === deflated ? inflateRawSync(bytes.subarray(1)) : bytes.subarray(1))
}

const decodeColumns = (bytes: Buffer): Columns => {
  let at = 0
  const next = (): number => {
    let number = 0
    for (let shift = 0;; shift += 7) {
      const byte = bytes[at++]!
      number |= (byte & 0x7f) << shift
      if (byte < 0x80) return number
    }
  }
  const count = next()
  const times: Array<number> = Array.from({ length: count })
  let time = 0
  let step = 0
  for (let i = 0; i < count; i++) {
    const number = next()
    const delta = step + ((number >>> 1) ^ -(number & 1))
    time += delta
    times[i] = time
    step = i === 0 ? 0 : delta
  }
  return { times, values: JSON.parse(bytes.toString("utf8", at)) as ReadonlyArray<Json> }
}

/** Small numbers of either sign to small numbers. Below 2^31: a day has fewer than 2^27 milliseconds. */
const zigZag = (number: number): number => (number << 1) ^ (number >> 31)

/** Writes seven bits a byte, the lowest first. Returns where it ends. */
const writeNumber = (bytes: Buffer, start: number, number: number): number => {
  let at = start
  let rest = number
  while (rest > 0x7f) {
    bytes[at++] = (rest & 0x7f) | 0x80
    rest >>>= 7
  }
  bytes[at++] = rest
  return at
}
