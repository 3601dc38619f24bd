/**
 * Writes MQTT PUBLISH packets, and the PUBACK before them: one buffer for each,
 * which is all that most messages to devices need.
 */

const confirmationLength = 4

const writeConfirmation = (packet: Buffer, packetId: number): number => {
  packet.writeUInt8(0x40, 0)
  packet.writeUInt8(2, 1)
  return packet.writeUInt16BE(packetId, 2)
}

/** A PUBACK packet (MQTT 3.1.1, section 3.4). */
export const confirmation = (packetId: number): Buffer => {
  const packet = Buffer.allocUnsafe(confirmationLength)
  writeConfirmation(packet, packetId)
  return packet
}

const varyingLength = (length: number): number => length < 128 ? 1 : length < 16_384 ? 2 : length < 2_097_152 ? 3 : 4

/**
 * A PUBLISH packet (MQTT 3.1.1, section 3.3); `packetId` makes it one of QoS 1,
 * otherwise it is one of QoS 0. A PUBACK for the packet `confirms` goes before it.
 */
export const encode = (
  topic: string,
  payload: string | Buffer,
  packetId: number | undefined,
  confirms?: number
): Buffer => {
  const topicLength = Buffer.byteLength(topic)
  const payloadLength = typeof payload === "string" ? Buffer.byteLength(payload) : payload.length
  let remaining = 2 + topicLength + (packetId === undefined ? 0 : 2) + payloadLength
  const start = confirms === undefined ? 0 : confirmationLength
  const packet = Buffer.allocUnsafe(start + 1 + varyingLength(remaining) + remaining)
  if (confirms !== undefined) writeConfirmation(packet, confirms)
  let at = packet.writeUInt8(packetId === undefined ? 0x30 : 0x32, start)
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
