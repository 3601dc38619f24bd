/**
 * The reference for connections over TLS: a server that only does handshakes.
 */
import { readFileSync } from "node:fs"
import type { AddressInfo } from "node:net"
import { createServer } from "node:tls"

const [certificate, key] = process.argv.slice(2)
const server = createServer({ cert: readFileSync(certificate!), key: readFileSync(key!) }, (socket) => {
  socket.on("error", () => {})
  // One byte stands for the CONNACK.
  socket.write(Buffer.from([0x20, 2, 0, 0]))
})
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`)
})
