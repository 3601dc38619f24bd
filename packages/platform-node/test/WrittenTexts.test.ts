/**
 * Texts of responses that have been written, on a server of node:http.
 */
import { assert, it } from "@effect/vitest"
import { HttpServerResponse } from "effect/http"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { letGo } from "../src/WrittenTexts.ts"

const bodyOf = ({ body }: HttpServerResponse.HttpServerResponse) => {
  if (body._tag !== "Uint8Array") throw new Error(`The body is ${body._tag}`)
  return body
}

it("a response loses its text once it is written, and others that have the same text keep it", async () => {
  const shared = HttpServerResponse.text("ä".repeat(20_000), { contentType: "text/csv" })
  const made: Array<HttpServerResponse.HttpServerResponse> = []
  const server = createServer((_request, response) => {
    const own = letGo(response, shared)
    made.push(own)
    response.writeHead(own.status, own.headers).end(bodyOf(own).text)
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  try {
    for (let i = 0; i < 2; i++) {
      const response = await fetch(url)
      assert.strictEqual(response.headers.get("content-type"), "text/csv")
      assert.strictEqual(response.headers.get("content-length"), "40000")
      assert.strictEqual(await response.text(), "ä".repeat(20_000))
    }
  } finally {
    server.close().closeAllConnections()
    await once(server, "close")
  }
  assert.deepStrictEqual(made.map((own) => bodyOf(own).text), ["", ""])
  assert.strictEqual(bodyOf(shared).text, "ä".repeat(20_000))
})

it("a short text, bytes and a response without a body are left as they are", () => {
  for (
    const response of [
      HttpServerResponse.text("short"),
      HttpServerResponse.uint8Array(new Uint8Array(20_000)),
      HttpServerResponse.empty()
    ]
  ) {
    assert.strictEqual(letGo(undefined as never, response), response)
  }
})
