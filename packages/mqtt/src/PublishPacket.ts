/**
 * Writes MQTT PUBLISH packets: one buffer for each, which is all that most
 * messages to devices need.
 */

const varyingLength = (length: number): number => length < 128 ? 1 : length < 16_384 ? 2 : length < 2_097_152 ? 3 : 4

/** A PUBLISH packet (MQTT 3.1.1, section 3.3); `packetId` makes it one of QoS 1, otherwise it is one of QoS 0. */
export const encode = (topic: string, payload: string | Buffer, packetId: number | undefined): Buffer => {
  const topicLength = Buffer.byteLength(topic)
  const payloadLength = typeof payload === "string" ? Buffer.byteLength(payload) : payload.length
  let remaining = 2 + topicLength + (packetId === undefined ? 0 : 2) + payloadLength
  const packet = Buffer.allocUnsafe(1 + varyingLength(remaining) + remaining)
  let at = packet.writeUInt8(packetId === undefined ? 0x30 : 0x32, 0)
  while (remaining > 127) {
    at = packet.writeUInt8((remaining & 0x7f) | 0x80, at)
    remaining >>>= 7
  }
  at = packet.writeUInt8(remaining, at)
  at = packet.writeUInt16BE(topicLength, at)
  at += packet.write(topic, at)
  if (packetId !== undefined) at = packet.writeUInt16BE(packetId, at)
  if (typeof payload === "string") packet.write(payload, at)
  else payload.copy(packet, at)
  return packet
}
