/**
 * The reference: an HTTP server that publishes each request body to a device, on
 * Aedes alone.
 */
import { Aedes } from "aedes"
import { createServer as createHttpServer } from "node:http"
import { type AddressInfo, createServer } from "node:net"

const broker = await Aedes.createBroker({ maxClientsIdLength: 65_535 })

let lastId = 0
const http = createHttpServer((request, response) => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    const { params } = JSON.parse(Buffer.concat(chunks).toString()) as { readonly params: unknown }
    const topic = decodeURIComponent(request.url!.slice(1)).replace("event/property/post", "service/property/set")
    const id = String(++lastId)
    broker.publish({
      cmd: "publish",
      topic,
      payload: JSON.stringify({ id, version: "1.0.0", method: "thing.service.property.set", params }),
      qos: 1,
      dup: false,
      retain: false
    }, () => {
      response.setHeader("content-type", "application/json")
      response.end(JSON.stringify({ code: 0, message: "success", data: { message_id: id } }))
    })
  })
})

const mqtt = createServer({ noDelay: true }, broker.handle)
mqtt.listen(0, "127.0.0.1", () =>
  http.listen(0, "127.0.0.1", () => {
    const { port } = mqtt.address() as AddressInfo
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
    process.stdout.write(`${JSON.stringify({ port, url })}\n`)
  }))
