/**
 * Requests that no description has made, and what is no request at all.
 */
import { call, ownerKey, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { HttpServer } from "effect/http"
import { connect } from "node:net"
import { storages } from "../../../../vitest.storages.ts"
import { assertNone, caseOf, complaintsOf, concurrency } from "./Complaints.ts"
import { goesOnWorking, operations } from "./FuzzedTenant.ts"
import { oddHeaders, segments, texts } from "./OddValues.ts"
import * as RawRequest from "./RawRequest.ts"

/** Sends bytes, and answers with the first line that comes back; empty: the connection was closed without one. */
const exchange = (bytes: string) =>
  Effect.flatMap(HttpServer.HttpServer, ({ address }) =>
    Effect.callback<string>((resume) => {
      assert("port" in address)
      const socket = connect(address.port, "127.0.0.1", () => socket.write(bytes, "latin1"))
      let text = ""
      socket.on("data", (chunk) => {
        text += chunk.toString("latin1")
        if (text.includes("\r\n")) socket.destroy()
      })
      socket.on("error", () => {})
      socket.on("close", () => resume(Effect.succeed(text.split("\r\n")[0]!)))
      return Effect.sync(() => socket.destroy())
    }))

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`any request on ${name}`, (it) => {
    it.effect("answers on any path, and any method", () =>
      Effect.gen(function*() {
        const send = yield* RawRequest.make
        const authorization = `Bearer ${ownerKey}`
        const all = yield* operations
        const paths = [...new Set(all.map(({ path }) => path.replaceAll(/[{}]/g, "")))]
        const others = [
          "/healthz",
          "/readyz",
          "/metrics",
          "/docs",
          "/openapi.json",
          "/objects/x/y",
          "/",
          "//",
          "/%",
          "*"
        ]
        const methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "QUERY"]
        const uploaded = yield* call("POST", "/oss", {
          raw: "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\ncontent\r\n--x--\r\n",
          headers: { "content-type": "multipart/form-data; boundary=x" }
        })
        const { pathname } = new URL(uploaded.body.data.url)
        const ranges = [
          "bytes=0-",
          "bytes=-0",
          "bytes=9-1",
          "bytes=1e3-",
          "bytes=0-0,2-2",
          `bytes=${"9".repeat(400)}-`,
          "x"
        ]
        const cases = [
          ...[...paths, ...others].flatMap((path) => methods.map((method) => caseOf(method, path, { authorization }))),
          ...segments.flatMap((segment) => [
            caseOf("GET", `/${segment}`),
            caseOf("POST", `/openapi/${segment}/products`, { authorization }),
            caseOf("GET", `/objects/${segment}/a`),
            caseOf("DELETE", `${pathname}${segment}x`, { authorization })
          ]),
          ...ranges.flatMap((range) => [
            caseOf("GET", pathname, { range }),
            caseOf("GET", pathname, { range, "if-range": texts[21]! }),
            caseOf("HEAD", pathname, { range })
          ]),
          ...["*", "W/\"x\"", ",,,", "\"".repeat(5000)].map((etag) =>
            caseOf("GET", pathname, { "if-none-match": etag })
          ),
          ...oddHeaders.map(([, headers]) => caseOf("GET", pathname, headers))
        ]
        const plain = /^\/(?:metrics|docs|openapi\.json)/
        const complaints = yield* Effect.forEach(
          cases,
          (made) =>
            Effect.map(
              send(made.request),
              (answer) => plain.test(made.request.path) && answer.status === 200 ? [] : complaintsOf(made, answer)
            ),
          { concurrency }
        )
        assertNone(complaints.flat())
      }).pipe(Effect.scoped))

    it.effect("what is no HTTP ends its own connection at most", () =>
      Effect.gen(function*() {
        const lines = [
          "GET /healthz HTTP/1.1\r\n\r\n",
          "GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n",
          "get /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
          "GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
          "GET / spaces HTTP/1.1\r\nHost: x\r\n\r\n",
          "GET /healthz HTTP/1.1\r\nHost x\r\n\r\n",
          "GET /healthz HTTP/1.1\r\nHost: x\r\nX: \0\r\n\r\n",
          "GET /healthz HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n",
          "CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n",
          "GET http://example.com/healthz HTTP/1.1\r\nHost: x\r\n\r\n",
          `GET /${"x".repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
          `GET /healthz HTTP/1.1\r\nHost: x\r\n${"X: y\r\n".repeat(5000)}\r\n`,
          "POST /openapi/v1/products HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
          "POST /openapi/v1/products HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n{}",
          "POST /openapi/v1/products HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
          "POST /openapi/v1/products HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
          "POST /openapi/v1/products HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n{}",
          "GET /openapi/v1/products HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
          "GET /openapi/v1/products HTTP/1.1\r\nHost: x\r\nConnection: upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n",
          "POST /openapi/v1/products HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Length: 2\r\n\r\n{}",
          "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
          "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
          "\x10\x0f\x00\x04MQTT\x04\x02\x00\x3c\x00\x03abc",
          "\0".repeat(100),
          "' OR 1=1 --\r\n\r\n"
        ]
        const answers = yield* Effect.forEach(lines, exchange, { concurrency: "unbounded" })
        assertNone(answers.flatMap((answer, i) =>
          /^(?:$|HTTP\/1\.1 [1-4])/.test(answer) ? [] : [`${answer} TO ${JSON.stringify(lines[i]!.slice(0, 200))}`]
        ))
        assert.strictEqual((yield* call("GET", "//healthz", { key: null })).status, 200)
      }))

    it.effect("goes on working", () => goesOnWorking)
  })
}
