/**
 * What answers devices beside a bare broker: it gets the property posts of all of
 * them, parses the JSON and publishes a reply to each.
 */
import { connect } from "node:net"
import { connectPacket, packet, puback, splitter, subscribePacket, text } from "../MqttPackets.ts"

const [port, qosText] = process.argv.slice(2)
const qos = Number(qosText)

/** Of the reply's QoS. The broker acknowledges it, which nobody waits for. */
let lastId = 0
const replyTo = (topic: string, payload: string): Buffer => {
  const { id } = JSON.parse(payload) as { readonly id: string }
  const reply = { code: 200, data: {}, id, message: "success", method: "thing.event.property.post", version: "1.0" }
  lastId = (lastId % 65_535) + 1
  const packetId = qos === 0 ? Buffer.alloc(0) : Buffer.from([lastId >> 8, lastId & 0xff])
  return packet(0x30 | (qos << 1), text(`${topic}_reply`), packetId, Buffer.from(JSON.stringify(reply)))
}

let packets: Array<Buffer> = []
const split = splitter((header, bytes, start, end) => {
  switch (header >> 4) {
    case 2:
      socket.write(subscribePacket("/sys/+/+/thing/event/property/post", qos))
      return
    case 9:
      process.stdout.write("{}\n")
      return
    case 3: {
      const topicEnd = start + 2 + bytes.readUInt16BE(start)
      const hasId = (header & 6) !== 0
      if (hasId) {
        const acknowledgement = Buffer.from(puback)
        bytes.copy(acknowledgement, 2, topicEnd, topicEnd + 2)
        packets.push(acknowledgement)
      }
      const topic = bytes.toString("utf8", start + 2, topicEnd)
      packets.push(replyTo(topic, bytes.toString("utf8", topicEnd + (hasId ? 2 : 0), end)))
    }
  }
})

const socket = connect(
  { port: Number(port), host: "127.0.0.1", noDelay: true },
  () => socket.write(connectPacket({ clientId: "responder", username: "guest", password: "guest" }))
)
socket.on("data", (chunk) => {
  split(chunk)
  // All that came together goes in one write.
  if (packets.length > 0) socket.write(Buffer.concat(packets))
  packets = []
})
socket.on("error", () => process.exit(1))
