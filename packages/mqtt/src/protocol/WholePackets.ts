/**
 * Fast reader for the packets that devices send most: complete PUBLISH packets
 * of QoS 0 and 1 and complete PUBACK packets (MQTT 3.1.1, sections 3.3, 3.4).
 * The parser of aedes reads everything else (docs/decisions/0042-whole-packets.md).
 *
 * Gain: with this reader, one buffer for each reply (`PublishPacket.ts`) and two
 * batches beside each other, `mqtt-ingest-memory` at 2,000 connections went from
 * 0.91 and 1.00 of bare aedes (windows 1 and 8) to 1.04 and 1.31.
 */

/**
 * A PUBLISH packet, with the members that the parser of aedes gives it. A class and
 * no literal: V8 allocates literals that wait for a commit as old objects
 * (docs/decisions/0125-pauses.md).
 */
export class Publish {
  readonly cmd = "publish"
  readonly retain: boolean
  readonly qos: number
  readonly dup: boolean
  /** Bytes of the packet without its fixed header. */
  readonly length: number
  readonly topic: string
  readonly payload: Buffer
  readonly messageId: number | undefined

  constructor(first: number, length: number, topic: string, payload: Buffer, messageId: number | undefined) {
    this.retain = (first & 1) !== 0
    this.qos = (first >> 1) & 3
    this.dup = (first & 8) !== 0
    this.length = length
    this.topic = topic
    this.payload = payload
    this.messageId = messageId
  }
}

/** What happens to the packets that are read. */
export interface Handlers {
  /** A PUBLISH packet was read. */
  readonly onPublish: (packet: Publish) => void
  /** A PUBACK packet was read. */
  readonly onAcknowledge: (packetId: number) => void
  /** Whether to read the next packet. */
  readonly mayGoOn: () => boolean
}

const puback = 0x40

/**
 * Handles the packets at the start of `bytes`. Stops at the first packet that is
 * incomplete, malformed or of another type, and returns how many bytes it has
 * handled.
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
      const topic = bytes.toString("utf8", start + 2, topicEnd)
      onPublish(new Publish(first, length, topic, bytes.subarray(payloadStart, end), messageId))
    }
    at = end
  }
  return at
}
