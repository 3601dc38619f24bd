/**
 * The reference: Aedes alone. It accepts every connection,
 * parses the JSON of a message and publishes a reply.
 */
import { Aedes } from "aedes"
import { type AddressInfo, createServer } from "node:net"
import { createServer as createTlsServer } from "node:tls"
import { readFileSync } from "node:fs"

const [certificate, key] = process.argv.slice(2)

const broker = await Aedes.createBroker({
  maxClientsIdLength: 65_535,
  published: (packet, client, done) => {
    if (client !== null) {
      const { id } = JSON.parse(packet.payload.toString()) as { readonly id: string }
      const reply = { code: 200, data: {}, id, message: "success", method: "thing.event.property.post", version: "1.0" }
      client.publish({
        cmd: "publish",
        topic: `${packet.topic}_reply`,
        payload: JSON.stringify(reply),
        qos: packet.qos,
        dup: false,
        retain: false
      }, () => {})
    }
    done()
  }
})

const server = certificate === undefined || key === undefined
  ? createServer({ noDelay: true }, broker.handle)
  : createTlsServer({ cert: readFileSync(certificate), key: readFileSync(key), noDelay: true }, broker.handle)
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`)
})
