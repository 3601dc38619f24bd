import { AllowPrivateWebhooks, maxResponse, WebhookClient, type WebhookRequest } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import { assert, describe, it, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { createSocket } from "node:dgram"
import dns from "node:dns"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { type AddressInfo, createServer as createSocketServer, type Socket } from "node:net"
import { hostname } from "node:os"
import { isPublicAddress } from "../src/NodeWebhookClient.ts"

const listening = <S extends ReturnType<typeof createSocketServer>>(server: S) =>
  Effect.acquireRelease(
    Effect.callback<number>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed((server.address() as AddressInfo).port)))
    }),
    () => Effect.sync(() => server.close())
  )

const requests: Array<{ readonly method: string; readonly url: string; readonly body: string }> = []

const answer = (request: IncomingMessage, response: ServerResponse) => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk) => chunks.push(chunk))
  request.on("end", () => {
    requests.push({ method: request.method!, url: request.url!, body: Buffer.concat(chunks).toString() })
    switch (request.url) {
      case "/echo":
        return response.end(`${request.headers["x-test"]} ${Buffer.concat(chunks).toString()}`)
      case "/error":
        return response.writeHead(500).end("broken")
      case "/redirect":
        return response.writeHead(302, { location: "/echo" }).end()
      case "/endless": {
        const write = (): void => {
          if (!response.destroyed && response.write("x".repeat(10_000))) setImmediate(write)
          else response.once("drain", write)
        }
        return write()
      }
      case "/half":
        return response.write("half")
      case "/cut":
        return response.socket!.destroy()
    }
    return undefined
  })
}

class Receiver extends Context.Service<Receiver, string>()("@device-cloud/platform-node/test/Receiver") {
  static readonly layer = Layer.effect(
    Receiver,
    Effect.gen(function*() {
      const server = createServer(answer)
      yield* Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections()))
      return `http://127.0.0.1:${yield* listening(server)}`
    })
  )
}

/** A name server for this process, with addresses of names. Names that begin with `slow` get no answer. */
const nameServer = Effect.fnUntraced(function*(names: Readonly<Record<string, ReadonlyArray<string>>>) {
  const socket = yield* Effect.acquireRelease(
    Effect.sync(() => createSocket("udp4")),
    (socket) => Effect.sync(() => socket.close())
  )
  socket.on("message", (query, from) => {
    const labels: Array<string> = []
    let end = 12
    for (; query[end]! > 0; end += 1 + query[end]!) {
      labels.push(query.toString("latin1", end + 1, end + 1 + query[end]!))
    }
    const name = labels.join(".")
    if (name.startsWith("slow")) return
    const isIpv4 = query.readUInt16BE(end + 1) === 1
    const answers = isIpv4 ? names[name] ?? [] : []
    const head = Buffer.from(query.subarray(0, end + 5))
    head.writeUInt16BE(name in names ? 0x8180 : 0x8183, 2)
    head.writeUInt16BE(answers.length, 6)
    head.writeUInt32BE(0, 8)
    const records = answers.map((address) =>
      Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address.split(".").map(Number)])
    )
    socket.send(Buffer.concat([head, ...records]), from.port, from.address)
  })
  yield* Effect.callback<void>((resume) => {
    socket.bind(0, "127.0.0.1", () => resume(Effect.void))
  })
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      const before = dns.getServers()
      dns.setServers([`127.0.0.1:${socket.address().port}`])
      return before
    }),
    (before) => Effect.sync(() => dns.setServers(before))
  )
})

const send = Effect.fnUntraced(function*(url: string, fields: Partial<WebhookRequest> = {}) {
  const client = yield* WebhookClient
  return yield* client.send({
    url,
    method: "POST",
    headers: { "x-test": "hello" },
    body: "{}",
    connectTimeout: 5000,
    requestTimeout: 5000,
    admits: () => true,
    ...fields
  })
})

const allowed = Layer.merge(Receiver.layer, PlatformNode.layer).pipe(
  Layer.provide(Layer.succeed(AllowPrivateWebhooks, true))
)

layer(allowed, { excludeTestServices: true })("webhooks, private addresses allowed", (it) => {
  it.effect("says what it is given, and answers what comes back", () =>
    Effect.gen(function*() {
      const url = yield* Receiver
      assert.deepStrictEqual(yield* send(`${url}/echo`), { status: 200, body: "hello {}" })
      assert.deepStrictEqual(yield* send(`${url}/error`, { method: "DELETE" }), { status: 500, body: "broken" })
      const { port } = new URL(url)
      assert.strictEqual((yield* send(`http://localhost:${port}/echo`)).status, 200)
    }))

  it.effect("does not follow redirects", () =>
    Effect.gen(function*() {
      const url = yield* Receiver
      requests.length = 0
      assert.deepStrictEqual(yield* send(`${url}/redirect`), { status: 302, body: "" })
      assert.deepStrictEqual(requests.map(({ url }) => url), ["/redirect"])
    }))

  it.effect("asks once before it connects, with each address and its port, and does not connect if it may not", () =>
    Effect.gen(function*() {
      const url = yield* Receiver
      const { port } = new URL(url)
      requests.length = 0
      for (const host of ["127.0.0.1", "localhost"]) {
        const asked: Array<ReadonlyArray<string>> = []
        const error = yield* Effect.flip(send(`http://${host}:${port}/echo`, {
          admits: (addresses) => {
            asked.push(addresses)
            return false
          }
        }))
        assert.strictEqual(error.reason, "not-admitted")
        assert.lengthOf(asked, 1)
        assert.include(asked[0]!, `127.0.0.1:${port}`)
        for (const address of asked[0]!) assert.include([`127.0.0.1:${port}`, `[::1]:${port}`], address)
      }
      assert.deepStrictEqual(requests, [])
    }))

  it.effect("reads no more than so much of an answer", () =>
    Effect.gen(function*() {
      const { body, status } = yield* send(`${yield* Receiver}/endless`)
      assert.deepStrictEqual([status, body.length], [200, maxResponse])
    }))

  it.effect("ends the connection to who has answered and does not read", () =>
    Effect.gen(function*() {
      const sockets: Array<Socket> = []
      const port = yield* listening(createSocketServer((socket) => {
        sockets.push(socket)
        socket.once("data", () => {
          socket.pause()
          socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        })
      }))
      const body = "x".repeat(64_000_000)
      assert.deepStrictEqual(yield* send(`http://127.0.0.1:${port}/`, { body }), { status: 200, body: "ok" })
      const socket = sockets[0]!
      yield* Effect.callback<void>((resume) => {
        socket.on("error", () => {})
        socket.once("close", () => resume(Effect.void))
        socket.resume()
      })
      assert.isBelow(socket.bytesRead, body.length)
    }))

  it.effect("answers that a receiver changes to another protocol", () =>
    Effect.gen(function*() {
      const port = yield* listening(createSocketServer((socket) => {
        socket.on("error", () => {})
        socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n")
      }))
      assert.deepStrictEqual(yield* send(`http://127.0.0.1:${port}/`), { status: 101, body: "" })
    }))

  it.effect("gives up on who does not answer, or does not finish", () =>
    Effect.gen(function*() {
      const url = yield* Receiver
      for (const path of ["/never", "/half"]) {
        const error = yield* Effect.flip(send(url + path, { requestTimeout: 50 }))
        assert.deepStrictEqual([error.reason, error.message], ["timeout", "No answer within 0.05 seconds"])
      }
    }))

  it.effect("says that nobody is there, or hangs up", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* Effect.flip(send(`${yield* Receiver}/cut`))).reason, "unreachable")
      const closed = yield* Effect.flip(send("http://127.0.0.1:1/"))
      // Without the address.
      assert.deepStrictEqual([closed.reason, closed.message], ["unreachable", "The connection failed (ECONNREFUSED)"])
      assert.strictEqual((yield* Effect.flip(send("http://no-such-host.invalid/"))).reason, "unreachable")
    }))

  it.effect("gives up on a connection that does not come to stand", () =>
    Effect.gen(function*() {
      // It takes the connection and never speaks TLS.
      const port = yield* listening(createSocketServer())
      const error = yield* Effect.flip(send(`https://127.0.0.1:${port}/`, { connectTimeout: 50 }))
      assert.deepStrictEqual([error.reason, error.message], ["timeout", "No connection within 0.05 seconds"])
    }))

  it.effect("still takes nothing but http and https", () =>
    Effect.gen(function*() {
      const { refuse } = yield* WebhookClient
      for (
        const url of ["file:///etc/passwd", "ftp://example.com", "http://", "example.com", "http://u:p@127.0.0.1/"]
      ) {
        assert.isDefined(refuse(url), url)
      }
    }))
})

layer(Layer.merge(Receiver.layer, PlatformNode.layer), { excludeTestServices: true })("webhooks", (it) => {
  it.effect("reach no private address, whatever stands for it", () =>
    Effect.gen(function*() {
      const { refuse } = yield* WebhookClient
      const { port } = new URL(yield* Receiver)
      requests.length = 0
      for (
        const host of [
          "127.0.0.1",
          "127.1",
          "2130706433",
          "0x7f000001",
          "0177.0.0.1",
          "0x7f.1",
          "0",
          "[::1]",
          "[::]",
          "[::ffff:127.0.0.1]",
          "[::ffff:7f00:1]",
          "[0:0:0:0:0:ffff:127.0.0.1]",
          "[64:ff9b::7f00:1]",
          "[2002:7f00:1::]",
          "[fe80::1]",
          "[fd00::1]",
          "10.1.2.3",
          "192.168.1.1",
          "172.31.255.255",
          "169.254.169.254",
          "100.64.0.1",
          "１２７.0.0.1",
          "localhost",
          "LOCALHOST.",
          "a.localhost"
        ]
      ) {
        const url = `http://${host}:${port}/echo`
        assert.match(refuse(url) ?? "", /public address/, host)
        const { message, reason } = yield* Effect.flip(send(url))
        assert.deepStrictEqual([reason, message], ["forbidden", "Expected a public address"], host)
      }
      assert.deepStrictEqual(requests, [])
    }))

  it.effect("look at the address that a name stands for when they connect", () =>
    Effect.gen(function*() {
      const { refuse } = yield* WebhookClient
      const { port } = new URL(yield* Receiver)
      requests.length = 0
      // The name of this machine says nothing, and stands for an address of it, where machines have their names.
      const url = `http://${hostname()}:${port}/echo`
      assert.isUndefined(refuse(url))
      const { message, reason } = yield* Effect.flip(send(url))
      // Nobody learns from a webhook which names the network has, and what they stand for.
      assert.deepStrictEqual(
        [reason, message],
        ["unreachable", "The name of the host leads to no public address"]
      )
      const nobody = yield* Effect.flip(send(`http://no-such-host.invalid:${port}/echo`))
      assert.deepStrictEqual([nobody.reason, nobody.message], [reason, message])
      yield* nameServer({ "inside.test": ["127.0.0.1"], "both.test": ["8.8.8.8", "127.0.0.1"], "nothing.test": [] })
      for (const host of ["inside.test", "both.test", "nothing.test", "nobody.test"]) {
        const error = yield* Effect.flip(send(`http://${host}:${port}/echo`))
        assert.deepStrictEqual([error.reason, error.message], [reason, message], host)
      }
      assert.deepStrictEqual(requests, [])
    }))

  it.effect("names that nobody answers for hold up no other name", () =>
    Effect.gen(function*() {
      yield* nameServer({ "quick.test": ["8.8.4.4", "8.8.8.8"] })
      const slow = yield* Effect.forEach(
        Array.from({ length: 40 }, (_, i) => `http://slow${i}.test/`),
        (url) => Effect.forkChild(Effect.flip(send(url, { connectTimeout: 60_000, requestTimeout: 60_000 })))
      )
      const asked: Array<ReadonlyArray<string>> = []
      const admits = (addresses: ReadonlyArray<string>) => {
        asked.push(addresses)
        return false
      }
      assert.deepInclude(yield* Effect.flip(send("https://quick.test/", { admits })), { reason: "not-admitted" })
      assert.deepStrictEqual(asked, [["8.8.4.4:443", "8.8.8.8:443"]])
      // Nor one of another part of the process, such as the driver of a database.
      yield* Effect.promise(() => dns.promises.lookup("localhost"))
      assert.isTrue(slow.every((fiber) => fiber.pollUnsafe() === undefined))
      yield* Fiber.interruptAll(slow)
    }))
})

describe("public addresses", () => {
  it.each(
    [
      ["8.8.8.8", true],
      ["172.15.0.1", true],
      ["172.32.0.1", true],
      ["2606:4700::1111", true],
      ["224.0.0.1", false],
      ["255.255.255.255", false],
      ["2001:db8::1", false],
      ["ff02::1", false],
      ["::ffff:8.8.8.8", false],
      ["example.com", false]
    ] as const
  )("%s: %s", (address, expected) => assert.strictEqual(isPublicAddress(address), expected))
})
