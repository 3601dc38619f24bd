/**
 * CRC-16/ARC, the checksum of a block of a file: reflected polynomial 0x8005,
 * initial value 0.
 */

const table = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xa001 : crc >>> 1
  return crc
})

/** Returns the checksum of the bytes. */
export const crc16 = (bytes: Uint8Array): number => {
  let crc = 0
  for (let i = 0; i < bytes.length; i++) crc = (crc >>> 8) ^ table[(crc ^ bytes[i]!) & 0xff]!
  return crc
}
