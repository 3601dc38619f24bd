/**
 * Reads what nearly all bytes of devices are: PUBLISH packets of QoS 0 and 1 and
 * PUBACK packets (MQTT 3.1.1, sections 3.3, 3.4) that have arrived whole.
 */

/** A PUBLISH packet, with the members that a parser of all packets gives it. */
export interface Publish {
  readonly cmd: "publish"
  readonly retain: boolean
  readonly qos: number
  readonly dup: boolean
  /** Of the packet without its fixed header. */
  readonly length: number
  readonly topic: string
  readonly payload: Buffer
  readonly messageId: number | undefined
}

export interface Handlers {
  readonly onPublish: (packet: Publish) => void
  readonly onAcknowledge: (packetId: number) => void
  /** Whether to read on after a packet. */
  readonly mayGoOn: () => boolean
}

const puback = 0x40

/**
 * Handles the packets at the start of `bytes`, up to the first that is of
 * another kind, not whole, or in any way not as it should be. Answers how many
 * bytes these were.
 */
export const takeWhole = (bytes: Buffer, { mayGoOn, onAcknowledge, onPublish }: Handlers): number => {
  let at = 0
  while (at + 2 <= bytes.length && mayGoOn()) {
    const first = bytes[at]!
    if (first >> 4 !== 3 && first !== puback) return at
    let length = 0
    let start = at + 1
    let digit: number | undefined
    for (let shift = 0; shift < 28; shift += 7) {
      digit = bytes[start++]
      if (digit === undefined) return at
      length |= (digit & 0x7f) << shift
      if (digit < 0x80) break
    }
    const end = start + length
    if (digit! >= 0x80 || length < 2 || end > bytes.length) return at
    if (first === puback) {
      const packetId = bytes.readUInt16BE(start)
      if (length !== 2 || packetId === 0) return at
      onAcknowledge(packetId)
    } else {
      const qos = (first >> 1) & 3
      const topicEnd = start + 2 + bytes.readUInt16BE(start)
      const payloadStart = qos === 0 ? topicEnd : topicEnd + 2
      if (qos > 1 || payloadStart > end) return at
      const messageId = qos === 0 ? undefined : bytes.readUInt16BE(topicEnd)
      if (messageId === 0) return at
      onPublish({
        cmd: "publish",
        retain: (first & 1) !== 0,
        qos,
        dup: (first & 8) !== 0,
        length,
        topic: bytes.toString("utf8", start + 2, topicEnd),
        payload: bytes.subarray(payloadStart, end),
        messageId
      })
    }
    at = end
  }
  return at
}
