/**
 * Responses that leave together, on a server of node:http.
 */
import { assert, describe, it } from "@effect/vitest"
import { createServer, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { afterEach } from "vitest"
import { makeLeaveTogether } from "../src/LeavingResponses.ts"

const servers: Array<Server> = []
afterEach(() => {
  for (const server of servers.splice(0)) server.closeAllConnections()
})

/** A server that hands out responses as soon as so many requests are there. */
const serve = (count: number, respond: (responses: ReadonlyArray<ServerResponse>) => void): Promise<string> => {
  const leaveTogether = makeLeaveTogether()
  const responses: Array<ServerResponse> = []
  const server = createServer((request, response) => {
    leaveTogether(response)
    if (responses.push(response) === count) {
      respond(responses.toSorted((a, b) => a.req.url!.localeCompare(b.req.url!)))
    }
    request.resume()
  })
  servers.push(server.listen(0, "127.0.0.1"))
  return new Promise((resolve) =>
    server.once("listening", () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
  )
}

describe("responses that leave together", () => {
  it("go each to its own client, also more of them than wait for each other", async () => {
    const count = 100
    const url = await serve(count, (responses) => {
      for (const response of responses) response.writeHead(200).end(response.req.url)
      assert.isFalse(responses.at(-1)!.writableEnded)
      assert.isTrue(responses[0]!.writableEnded)
    })
    const paths = Array.from({ length: count }, (_, i) => `/${String(i).padStart(3, "0")}`)
    const texts = await Promise.all(paths.map(async (path) => (await fetch(url + path)).text()))
    assert.deepStrictEqual(texts, paths)
  })

  it("do not wait when they are streams, or call back", async () => {
    const url = await serve(1, ([response]) => {
      response!.write("a")
      response!.write("b")
      response!.end(() => undefined)
      assert.isTrue(response!.writableEnded)
    })
    assert.strictEqual(await (await fetch(url)).text(), "ab")
  })

  it("are not held up by one whose client has gone, nor by one of the wrong length", async () => {
    const url = await serve(3, ([gone, wrong, right]) => {
      gone!.writeHead(200).end("gone")
      gone!.destroy()
      wrong!.strictContentLength = true
      wrong!.writeHead(200, { "content-length": 9 }).end("short")
      right!.writeHead(200).end("right")
    })
    const results = await Promise.allSettled(["/1", "/2", "/3"].map(async (path) => (await fetch(url + path)).text()))
    assert.deepStrictEqual(results.map(({ status }) => status), ["rejected", "rejected", "fulfilled"])
  })
})
