/**
 * The packets of MQTT that loads write and read: just enough to be much cheaper
 * than the measured broker.
 */

/** Text with its length in front. */
export const text = (value: string): Buffer => {
  const bytes = Buffer.from(value)
  const length = Buffer.alloc(2)
  length.writeUInt16BE(bytes.length)
  return Buffer.concat([length, bytes])
}

/** A packet with the first byte `header`. */
export const packet = (header: number, ...body: ReadonlyArray<Buffer>): Buffer => {
  const rest = Buffer.concat(body)
  const length: Array<number> = []
  let remaining = rest.length
  do {
    const digit = remaining % 128
    remaining = Math.floor(remaining / 128)
    length.push(remaining > 0 ? digit | 0x80 : digit)
  } while (remaining > 0)
  return Buffer.concat([Buffer.from([header, ...length]), rest])
}

/** How a device says who it is. */
export interface Credentials {
  readonly clientId: string
  readonly username: string
  readonly password: string
}

/** A CONNECT of MQTT 3.1.1 without limit to silence. */
export const connectPacket = (device: Credentials, cleanSession = true): Buffer =>
  packet(
    0x10,
    text("MQTT"),
    Buffer.from([4, cleanSession ? 0xc2 : 0xc0, 0, 0]),
    text(device.clientId),
    text(device.username),
    text(device.password)
  )

export const subscribePacket = (topic: string, qos: number): Buffer =>
  packet(0x82, Buffer.from([0, 1]), text(topic), Buffer.from([qos]))

/** A PUBACK; its packet identifier is in bytes 2 and 3. */
export const puback = Buffer.from([0x40, 2, 0, 0])

const success = Buffer.from("{\"code\":200,")

/** Returns the reply to a device's message as text, unless it is a success. It stands in `bytes` from `start` to `end`. */
export const refusalIn = (bytes: Buffer, start: number, end: number): string | undefined =>
  bytes.compare(success, 0, success.length, start, Math.min(start + success.length, end)) === 0
    ? undefined
    : bytes.toString("utf8", start, end)

/** Calls `onPacket` for each whole packet in a stream of chunks. */
export const splitter = (onPacket: (header: number, bytes: Buffer, bodyStart: number, bodyEnd: number) => void) => {
  let rest: Buffer | undefined
  return (chunk: Buffer) => {
    let bytes = rest === undefined ? chunk : Buffer.concat([rest, chunk])
    rest = undefined
    while (bytes.length >= 2) {
      let length = 0
      let start = 1
      let shift = 0
      while (true) {
        const digit = bytes[start]
        if (digit === undefined) {
          rest = bytes
          return
        }
        start++
        length |= (digit & 0x7f) << shift
        shift += 7
        if ((digit & 0x80) === 0) break
      }
      if (bytes.length < start + length) break
      onPacket(bytes[0]!, bytes, start, start + length)
      bytes = bytes.subarray(start + length)
    }
    if (bytes.length > 0) rest = bytes
  }
}
