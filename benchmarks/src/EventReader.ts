/**
 * A subscriber to the stream of events, in a process of its own: it reads and
 * counts.
 */
import { request } from "node:http"

const [url = "", accessKey = ""] = process.argv.slice(2)

request(`${url}/openapi/v1/events`, { headers: { authorization: `Bearer ${accessKey}` } }, (response) => {
  let bytes = 0
  response.on("data", (chunk: Buffer) => {
    if (bytes === 0) process.stdout.write("{}\n")
    bytes += chunk.length
  })
}).end()
