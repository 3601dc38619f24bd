/**
 * Checksums of messages: sums and CRCs.
 */
import type { ChecksumPart, CrcParameters } from "./CodecDescription.ts"

/** A checksum of `size` bytes. */
export interface Checksum {
  /** 1, 2 or 4 bytes. */
  readonly size: number
  /** Returns the checksum of the bytes from `start` to before `end`. */
  readonly of: (bytes: Uint8Array, start: number, end: number) => number
}

const fold = (step: (sum: number, byte: number) => number): Checksum => ({
  size: 1,
  of: (bytes, start, end) => {
    let sum = 0
    for (let i = start; i < end; i++) sum = step(sum, bytes[i]!)
    return sum
  }
})

const reflected = (value: number, width: number): number => {
  let mirrored = 0
  for (let bit = 0; bit < width; bit++) if ((value >>> bit) & 1) mirrored |= 1 << (width - 1 - bit)
  return mirrored >>> 0
}

const crc = ({ init = 0, poly, reflect = false, width, xor = 0 }: CrcParameters): Checksum => {
  const mask = width === 32 ? 0xffff_ffff : (1 << width) - 1
  const top = width - 8
  const mirrored = reflected(poly & mask, width)
  const table = Uint32Array.from({ length: 256 }, (_, byte) => {
    let value = reflect ? byte : byte << top
    for (let bit = 0; bit < 8; bit++) {
      if (reflect) value = value & 1 ? (value >>> 1) ^ mirrored : value >>> 1
      else value = (value >>> (width - 1)) & 1 ? (value << 1) ^ poly : value << 1
    }
    return value & mask
  })
  const start = reflect ? reflected(init & mask, width) : init & mask
  return {
    size: width / 8,
    of: (bytes, from, end) => {
      let value = start
      for (let i = from; i < end; i++) {
        value = reflect
          ? (value >>> 8) ^ table[(value ^ bytes[i]!) & 0xff]!
          : (value << 8) ^ table[((value >>> top) ^ bytes[i]!) & 0xff]!
        value &= mask
      }
      return ((value ^ xor) & mask) >>> 0
    }
  }
}

const named: Readonly<Record<Extract<ChecksumPart["algorithm"], string>, Checksum>> = {
  sum8: fold((sum, byte) => (sum + byte) & 0xff),
  xor8: fold((sum, byte) => sum ^ byte),
  crc8: crc({ width: 8, poly: 0x07 }),
  "crc16-modbus": crc({ width: 16, poly: 0x8005, init: 0xffff, reflect: true }),
  "crc16-arc": crc({ width: 16, poly: 0x8005, reflect: true }),
  "crc16-ccitt": crc({ width: 16, poly: 0x1021, init: 0xffff }),
  "crc16-xmodem": crc({ width: 16, poly: 0x1021 }),
  "crc16-kermit": crc({ width: 16, poly: 0x1021, reflect: true }),
  crc32: crc({ width: 32, poly: 0x04c1_1db7, init: 0xffff_ffff, reflect: true, xor: 0xffff_ffff })
}

/** Returns the checksum of this name, or with these parameters. */
export const checksumOf = (algorithm: ChecksumPart["algorithm"]): Checksum =>
  typeof algorithm === "string" ? named[algorithm] : crc(algorithm)
