/**
 * The floors of sockets: servers that read and write as much as the cloud does for an operation, and do nothing else.
 */
import { createServer as createHttpServer } from "node:http"
import { type AddressInfo, createServer } from "node:net"
import { packet, text } from "../MqttPackets.ts"

/** What the load takes for the reply to a report. */
const reply = packet(
  0x30,
  text("/sys/a1B2c3D4e5F/load1/thing/event/property/post_reply"),
  Buffer.from(
    JSON.stringify({
      code: 200,
      data: {},
      id: "1",
      message: "success",
      method: "thing.event.property.post",
      version: "1.0"
    })
  )
)
const connack = Buffer.from([0x20, 2, 0, 0])

/** Replies to the first chunk of a connection as to a CONNECT, and to all others as to a report. */
const mqtt = createServer({ noDelay: true }, (socket) => {
  let isConnected = false
  socket.on("data", () => {
    socket.write(isConnected ? reply : connack)
    isConnected = true
  })
  socket.on("error", () => {})
})

const answer = Buffer.from(JSON.stringify({ code: 0, message: "success", data: { message_id: 1 } }))

const http = createHttpServer((request, response) => {
  request.on("data", () => {})
  request.on("end", () => {
    response.setHeader("content-type", "application/json")
    response.setHeader("content-length", answer.length)
    response.end(answer)
  })
})

mqtt.listen(0, "127.0.0.1", () =>
  http.listen(0, "127.0.0.1", () => {
    const ports = [mqtt, http].map((server) => (server.address() as AddressInfo).port)
    process.stdout.write(`${JSON.stringify({ port: ports[0], httpPort: ports[1] })}\n`)
  }))
