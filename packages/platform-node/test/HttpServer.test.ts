import { HttpServer as NodeServer } from "@device-cloud/platform-node"
import { assert, it } from "@effect/vitest"
import { ByteSize, Deferred, Effect, Exit, Fiber, Layer } from "effect"
import {
  HttpIncomingMessage,
  HttpServer,
  type HttpServerError,
  HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import { createServer } from "node:http"
import { connect, type Socket } from "node:net"

const limit = ByteSize.kibibytes(64)

/** Serves `answer` for each request; answers the port. */
const serve = (
  answer: (
    request: HttpServerRequest.HttpServerRequest
  ) => Effect.Effect<string, HttpServerError.HttpServerError>
) =>
  Effect.gen(function*() {
    const app = Effect.flatMap(HttpServerRequest.HttpServerRequest, answer).pipe(
      Effect.map((text) => HttpServerResponse.text(text)),
      Effect.catch(({ reason }) =>
        Effect.succeed(HttpServerResponse.text(reason._tag === "RequestParseError" ? `${reason.reason}` : reason._tag))
      ),
      Effect.provideService(HttpIncomingMessage.MaxBodySize, limit)
    )
    const services = yield* Layer.build(
      HttpServer.serve(app).pipe(Layer.provideMerge(NodeServer.layer(createServer, { host: "127.0.0.1", port: 0 })))
    )
    const { address } = yield* Effect.provide(HttpServer.HttpServer, services)
    return Number(new URL(HttpServer.formatAddress(address)).port)
  })

const open = (port: number) =>
  Effect.acquireRelease(
    Effect.callback<Socket>((resume) => {
      const socket = connect(port, "127.0.0.1", () => resume(Effect.succeed(socket)))
    }),
    (socket) => Effect.sync(() => socket.destroy())
  )

/** What comes back until `count` answers have been read. */
const answersOf = (socket: Socket, count: number) =>
  Effect.callback<string>((resume) => {
    let text = ""
    socket.on("data", (chunk) => {
      text += String(chunk)
      if (text.split("HTTP/1.1 200").length > count && !text.endsWith("\r\n\r\n")) resume(Effect.succeed(text))
    })
  })

const post = (port: number, body: string) =>
  Effect.promise(async () => (await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body })).text())

it.live("bodies are read as text, JSON and bytes, again and again", () =>
  Effect.gen(function*() {
    const port = yield* serve((request) =>
      Effect.gen(function*() {
        const text = yield* request.text
        const json = yield* request.json
        const bytes = yield* request.arrayBuffer
        return `${text} ${JSON.stringify(json)} ${bytes.byteLength} ${yield* request.text}`
      })
    )
    assert.strictEqual(yield* post(port, `{"ü":1}`), `{"ü":1} {"ü":1} 8 {"ü":1}`)
    const large = JSON.stringify("x".repeat(60_000))
    assert.strictEqual(yield* post(port, large), `${large} ${large} 60002 ${large}`)
  }))

it.live("a body in many pieces and an empty one are whole, and the connection goes on", () =>
  Effect.gen(function*() {
    const port = yield* serve((request) => Effect.map(request.text, (text) => `<${text}>`))
    const socket = yield* open(port)
    const answers = yield* Effect.forkChild(answersOf(socket, 3), { startImmediately: true })
    for (
      const part of ["POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n", "2\r\nab\r\n", "1\r\nc\r\n"]
    ) {
      socket.write(part)
      yield* Effect.sleep("20 millis")
    }
    socket.write("0\r\n\r\nPOST / HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n")
    socket.write("POST / HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\nde")
    const text = yield* Fiber.join(answers)
    assert.deepStrictEqual([...text.matchAll(/<.*>/g)].map(([body]) => body), ["<abc>", "<>", "<de>"])
    assert.include(text, "HTTP/1.1 100 Continue")
  }))

it.live("a body over the limit is refused, and the connection goes on", () =>
  Effect.gen(function*() {
    const port = yield* serve((request) => request.text)
    assert.strictEqual(yield* post(port, "x".repeat(65_537)), "BodyTooLarge")
    assert.strictEqual(yield* post(port, "x".repeat(65_536)), "x".repeat(65_536))
  }))

it.live("a client that goes before the end of its body ends the reading", () =>
  Effect.gen(function*() {
    const ended = yield* Deferred.make<Exit.Exit<string, unknown>>()
    const began = yield* Deferred.make<void>()
    const port = yield* serve((request) =>
      Effect.andThen(
        Deferred.succeed(began, undefined),
        Effect.onExit(request.text, (exit) => Deferred.succeed(ended, exit))
      )
    )
    const socket = yield* open(port)
    socket.write("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 10\r\n\r\nabc")
    yield* Deferred.await(began)
    socket.destroy()
    assert.isTrue(Exit.isFailure(yield* Deferred.await(ended)))
  }))
