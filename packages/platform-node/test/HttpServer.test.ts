import { KnownAddresses, parseTrustedProxies, TrustedProxies } from "@device-cloud/core"
import { HttpServer as NodeServer } from "@device-cloud/platform-node"
import { assert, it } from "@effect/vitest"
import { ByteSize, Clock, Deferred, Effect, Exit, Fiber, Layer, Result, Stream } from "effect"
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
  ) => Effect.Effect<string | HttpServerResponse.HttpServerResponse, HttpServerError.HttpServerError>,
  limits?: Partial<NodeServer.Limits>,
  create: Parameters<typeof NodeServer.layer>[0] = createServer
) =>
  Effect.gen(function*() {
    const app = Effect.flatMap(HttpServerRequest.HttpServerRequest, answer).pipe(
      Effect.map((answer) => typeof answer === "string" ? HttpServerResponse.text(answer) : answer),
      Effect.catch(({ reason }) =>
        Effect.succeed(HttpServerResponse.text(reason._tag === "RequestParseError" ? `${reason.reason}` : reason._tag))
      ),
      Effect.provideService(HttpIncomingMessage.MaxBodySize, limit)
    )
    const services = yield* Layer.build(
      HttpServer.serve(app).pipe(
        Layer.provideMerge(NodeServer.layer(create, { host: "127.0.0.1", port: 0 }, limits))
      )
    )
    const { address } = yield* Effect.provide(HttpServer.HttpServer, services)
    return Number(new URL(HttpServer.formatAddress(address)).port)
  })

const open = (port: number, localAddress = "127.0.0.1") =>
  Effect.acquireRelease(
    Effect.callback<Socket>((resume) => {
      const socket = connect({ port, host: "127.0.0.1", localAddress }, () => resume(Effect.succeed(socket)))
      // The server may end it at once.
      socket.on("error", () => {})
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

/** Keeps the thread busy for so many milliseconds. */
const work = (millis: number) => {
  const until = performance.now() + millis
  while (performance.now() < until);
}

/** Serves requests that are so many milliseconds of work each, but for `/`. `order`: their addresses as they begin. */
const serveWork = (millis: number, order: Array<string>) =>
  serve(({ url }) =>
    Effect.sync(() => {
      if (url !== "/") {
        order.push(url)
        work(millis)
      }
      return "<answer>"
    })
  )

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

it.live("a request that offers HTTP/2 over plain HTTP keeps its body, and the connection goes on", () =>
  Effect.gen(function*() {
    const port = yield* serve(
      (request) => Effect.map(request.text, (text) => `<${text}>`)
    )
    const socket = yield* open(port)
    const offer = "host: h\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n"
    const ask = (request: string) =>
      Effect.callback<string>((resume) => {
        socket.once("data", (chunk) => resume(Effect.succeed(/<.*>/.exec(String(chunk))?.[0] ?? "")))
        socket.write(request)
      })
    assert.strictEqual(yield* ask(`POST / HTTP/1.1\r\n${offer}content-length: 3\r\n\r\nabc`), "<abc>")
    assert.strictEqual(yield* ask(`GET / HTTP/1.1\r\n${offer}\r\n`), "<>")
    assert.strictEqual(yield* ask("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nde"), "<de>")
  }))

it.live("a body that is announced as larger than the limit is refused before it comes", () =>
  Effect.gen(function*() {
    const socket = yield* open(yield* serve((request) => request.text))
    socket.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 70000\r\n\r\n")
    assert.include(yield* answersOf(socket, 1), "BodyTooLarge")
    const next = answersOf(socket, 1)
    socket.write(`${"x".repeat(70_000)}POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi`)
    assert.include(yield* next, "hi")
  }))

it.live("a body over the limit is refused, and the connection goes on", () =>
  Effect.gen(function*() {
    const port = yield* serve((request) => request.text)
    assert.strictEqual(yield* post(port, "x".repeat(65_537)), "BodyTooLarge")
    assert.strictEqual(yield* post(port, "x".repeat(65_536)), "x".repeat(65_536))
  }))

it.live("a large body is read after hundreds whose clients were refused and have gone", () =>
  Effect.gen(function*() {
    const port = yield* serve((request) => request.text)
    const refused = Effect.scoped(Effect.gen(function*() {
      const socket = yield* open(port)
      const answer = yield* Effect.forkChild(answersOf(socket, 1), { startImmediately: true })
      socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 70000\r\n\r\n${"x".repeat(20_000)}`)
      assert.include(yield* Fiber.join(answer), "BodyTooLarge")
    }))
    yield* Effect.replicateEffect(refused, 600, { concurrency: 600, discard: true })
    assert.strictEqual((yield* post(port, "x".repeat(60_000))).length, 60_000)
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

it.live("header names are written with capitals, as device SDKs compare them", () =>
  Effect.gen(function*() {
    const services = yield* Layer.build(
      HttpServer.serve(
        Effect.succeed(HttpServerResponse.text("ok", { headers: { etag: "\"1\"", "x-request-id": "a" } }))
      ).pipe(Layer.provideMerge(NodeServer.layer(createServer, { host: "127.0.0.1", port: 0 })))
    )
    const { address } = yield* Effect.provide(HttpServer.HttpServer, services)
    const socket = yield* open(Number(new URL(HttpServer.formatAddress(address)).port))
    socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    const text = yield* answersOf(socket, 1)
    const names = text.split("\r\n\r\n")[0]!.split("\r\n").slice(1).map((line) => line.split(":")[0]!)
    assert.includeMembers(names, ["ETag", "X-Request-Id", "Content-Type", "Content-Length", "Date"])
    assert.deepStrictEqual(names.filter((name) => /(?:^|-)[a-z]/.test(name)), [])
  }).pipe(Effect.scoped))

it.live("responses have the time of the cloud as their date, whatever the system's clock says", () =>
  Effect.gen(function*() {
    const system = yield* Clock.Clock
    const clock = Clock.Clock.of({ ...system, currentTimeMillisUnsafe: () => Date.parse("2030-01-31T12:00:00.900Z") })
    const port = yield* Effect.provideService(serve(() => Effect.succeed("ok")), Clock.Clock, clock)
    const response = yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}/`))
    assert.strictEqual(response.headers.get("date"), "Thu, 31 Jan 2030 12:00:00 GMT")
  }).pipe(Effect.scoped))

/** Sends a request whose body has 1,000 bytes, and so many of them. */
const begin = (port: number, bytes: number, headers = "") =>
  Effect.tap(open(port), (socket) =>
    Effect.sync(() => {
      socket.write(`POST / HTTP/1.1\r\nhost: h\r\n${headers}content-length: 1000\r\n\r\n${"x".repeat(bytes)}`)
    }))

const refusalOr = (request: HttpServerRequest.HttpServerRequest) =>
  request.text.pipe(
    Effect.map((text) => `<${text.length}>`),
    Effect.catch(({ reason }) => Effect.succeed(`<${(reason.cause as { readonly reason: string }).reason}>`))
  )

/** Behind a proxy, and over TLS, a request gets the address of its client, and is another one. */
const ofOther = (request: HttpServerRequest.HttpServerRequest) => request.modify({ protocol: "https" })

it.live.each(
  [
    [
      "when unfinished bodies hold too many bytes, the oldest is refused and later ones are read",
      (request: HttpServerRequest.HttpServerRequest) => request
    ],
    ["unfinished bodies of requests that got an address are bounded, too", ofOther]
  ] as const
)(
  "%s",
  ([, made]) =>
    Effect.gen(function*() {
      const port = yield* serve((request) => refusalOr(made(request)), { bodyBytes: 1500 })
      const first = yield* begin(port, 900)
      const answer = yield* Effect.forkChild(answersOf(first, 1), { startImmediately: true })
      const second = yield* begin(port, 900)
      assert.include(yield* Fiber.join(answer), "<crowded>")
      const whole = yield* Effect.forkChild(answersOf(second, 1), { startImmediately: true })
      second.write("x".repeat(100))
      assert.include(yield* Fiber.join(whole), "<1000>")
    })
)

it.live("behind a trusted proxy bodies count for their clients: one that sends much takes no room from the others", () =>
  Effect.gen(function*() {
    const port = yield* serve(refusalOr, { bodyBytes: 2000 })
    const of = (client: string, bytes: number) => begin(port, bytes, `x-forwarded-for: ${client}\r\n`)
    const small = yield* of("192.0.2.1", 500)
    const large = yield* of("192.0.2.2", 900)
    const answer = yield* Effect.forkChild(answersOf(large, 1), { startImmediately: true })
    const whole = yield* Effect.forkChild(answersOf(small, 1), { startImmediately: true })
    yield* of("192.0.2.2", 900)
    assert.include(yield* Fiber.join(answer), "<crowded>")
    small.write("x".repeat(500))
    assert.include(yield* Fiber.join(whole), "<1000>")
  }).pipe(Effect.provideService(TrustedProxies, Result.getOrThrow(parseTrustedProxies(["127.0.0.1"])))))

it.live("large bodies of an address that sends many are read later, its small ones and those of others at once", () =>
  Effect.gen(function*() {
    let large = 0
    const port = yield* serve(
      (request) =>
        Effect.map(request.text, ({ length }) => {
          if (length === 60_000) large++
          return `<${length}>`
        }),
      { bodyRate: 20_000 }
    )
    const send = (size: number, localAddress: string) =>
      Effect.gen(function*() {
        const socket = yield* open(port, localAddress)
        const answer = yield* Effect.forkChild(answersOf(socket, 1), { startImmediately: true })
        socket.write(`POST / HTTP/1.1\r\nhost: h\r\ncontent-length: ${size}\r\n\r\n${"x".repeat(size)}`)
        assert.include(yield* Fiber.join(answer), `<${size}>`)
      })
    // At this rate they take half a minute.
    yield* Effect.forkScoped(
      Effect.all(Array.from({ length: 12 }, () => send(60_000, "127.0.0.1")), { concurrency: "unbounded" }),
      { startImmediately: true }
    )
    yield* send(1000, "127.0.0.1")
    yield* send(30_000, "127.0.0.2")
    // Read later, but read.
    yield* send(30_000, "127.0.0.2")
    assert.isBelow(large, 12)
  }))

it.live.each(["addressConnections", "bodyBytes", "bodyRate", "connections"])(
  "a limit %s that is none is refused",
  (name) =>
    Effect.gen(function*() {
      for (const limit of [0, Number.NaN, "64"]) {
        const exit = yield* Effect.exit(serve((request) => request.text, { [name]: limit }))
        assert.isTrue(Exit.isFailure(exit) && String(exit.cause).includes(`limits.${name}: expected a number above 0`))
      }
      yield* serve((request) => request.text, { [name]: undefined } as object)
    })
)

it.live("a body that arrives too slowly is refused, and its connection ends", () =>
  Effect.gen(function*() {
    const port = yield* serve(refusalOr, { bodyTime: "10 millis" })
    const socket = yield* begin(port, 1)
    const closed = Effect.callback<void>((resume) => {
      socket.once("close", () => resume(Effect.void))
    })
    const ended = yield* Effect.forkChild(closed, { startImmediately: true })
    assert.include(yield* answersOf(socket, 1), "<slow>")
    yield* Fiber.join(ended)
  }))

it.live("a connection ends whose client has its response and does not complete its request", () =>
  Effect.gen(function*() {
    const port = yield* serve(() => Effect.succeed("<not read>"))
    const socket = yield* begin(port, 1)
    yield* Effect.callback<void>((resume) => {
      socket.resume()
      socket.once("close", () => resume(Effect.void))
    })
  }))

it.live("a connection ends that has offered a WebSocket and got a response, also if the client does not end it", () =>
  Effect.gen(function*() {
    const port = yield* serve(() => Effect.succeed("<answer>"))
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true })
    socket.write("GET / HTTP/1.1\r\nhost: h\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n")
    assert.include(yield* answersOf(socket, 1), "<answer>")
    yield* Effect.callback<void>((resume) => {
      // Only what is sent shows that nobody is there any more.
      const sending = setInterval(() => socket.write("x"), 10)
      socket.on("error", () => {})
      socket.once("close", () => resume(Effect.void))
      return Effect.sync(() => clearInterval(sending))
    }).pipe(Effect.ensuring(Effect.sync(() => socket.destroy())))
  }))

it.live("a response to HTTP/1.0 that breaks off resets its connection, a whole one does not", () =>
  Effect.gen(function*() {
    const port = yield* serve(({ url }) => {
      const end = url === "/broken" ? Stream.fail("the storage is away") : Stream.empty
      const lines = Stream.concat(Stream.make("<part>"), end)
      return Effect.succeed(HttpServerResponse.stream(Stream.encodeText(lines)))
    })
    const endOf = (path: string) =>
      Effect.flatMap(open(port), (socket) =>
        Effect.callback<string>((resume) => {
          socket.once("error", ({ message }) => resume(Effect.succeed(message)))
          socket.once("end", () => resume(Effect.succeed("end")))
          socket.resume().write(`GET ${path} HTTP/1.0\r\n\r\n`)
        }))
    assert.deepStrictEqual([yield* endOf("/whole"), yield* endOf("/broken")], ["end", "read ECONNRESET"])
  }))

/** Resolves when the server has ended the connection. */
const ended = (socket: Socket) =>
  Effect.callback<void>((resume) => {
    if (socket.closed) return resume(Effect.void)
    socket.resume().once("close", () => resume(Effect.void))
  })

const ask = Effect.fnUntraced(function*(socket: Socket) {
  const answer = yield* Effect.forkChild(answersOf(socket, 1), { startImmediately: true })
  socket.write("GET / HTTP/1.1\r\nhost: h\r\n\r\n")
  assert.include(yield* Fiber.join(answer), "<answer>")
})

/** Serves an answer, with `/slow` not before the test ends. */
const serveSlowly = Effect.fnUntraced(function*(limits: Partial<NodeServer.Limits>) {
  const mayEnd = yield* Deferred.make<void>()
  const port = yield* serve(
    ({ url }) => Effect.as(url === "/slow" ? Deferred.await(mayEnd) : Effect.void, "<answer>"),
    limits
  )
  yield* Effect.addFinalizer(() => Deferred.succeed(mayEnd, undefined))
  return port
})

it.live("above the limit of connections the one that has been idle longest ends", () =>
  Effect.gen(function*() {
    const port = yield* serveSlowly({ connections: 4, addressConnections: 4 })
    const busy = yield* open(port)
    busy.write("GET /slow HTTP/1.1\r\nhost: h\r\n\r\n")
    const silent = yield* open(port)
    const [first, second] = [yield* open(port), yield* open(port)]
    yield* ask(second)
    yield* ask(first)
    for (const longest of [silent, second, first]) {
      const closing = yield* Effect.forkChild(ended(longest), { startImmediately: true })
      yield* ask(yield* open(port))
      yield* Fiber.join(closing)
    }
    assert.isFalse(busy.destroyed)
  }))

it.live("an address has no more than its share of the connections, whatever it asks", () =>
  Effect.gen(function*() {
    for (const path of ["/", "/slow"]) {
      const port = yield* serveSlowly({ connections: 5, addressConnections: 3 })
      for (let i = 0; i < 3; i++) {
        const socket = yield* open(port)
        if (path === "/") yield* ask(socket)
        else socket.write(`GET ${path} HTTP/1.1\r\nhost: h\r\n\r\n`)
      }
      const other = yield* open(port, "127.0.0.2")
      yield* ask(other)
      const closing = yield* Effect.forkChild(ended(other), { startImmediately: true })
      // Each of these ends one of its own address.
      for (let i = 0; i < 5; i++) {
        const more = yield* open(port)
        if (path === "/") yield* ask(more)
        else yield* ended(more)
      }
      yield* ask(yield* open(port, "127.0.0.2"))
      assert.isUndefined(closing.pollUnsafe())
    }
  }))

it.live("a client gets in from an address that is known while strangers hold all other connections", () =>
  Effect.gen(function*() {
    const known = yield* KnownAddresses
    const port = yield* serveSlowly({ connections: 10, addressConnections: 10 })
    const busy = yield* Effect.forEach(Array.from({ length: 9 }), () => open(port))
    for (const socket of busy) {
      // The answer shows that the server has read the slow request behind it.
      const answer = yield* Effect.forkChild(answersOf(socket, 1), { startImmediately: true })
      socket.write("GET / HTTP/1.1\r\nhost: h\r\n\r\nGET /slow HTTP/1.1\r\nhost: h\r\n\r\n")
      yield* Fiber.join(answer)
    }
    yield* ended(yield* open(port))
    known.add("127.0.0.2")
    const acquainted = yield* open(port, "127.0.0.2")
    yield* ask(acquainted)
    yield* ended(yield* open(port))
    yield* ask(acquainted)
    assert.isTrue(busy.every(({ destroyed }) => !destroyed))
    // Who is known makes room for others who are, and not for strangers.
    const closing = yield* Effect.forkChild(ended(acquainted), { startImmediately: true })
    yield* ask(yield* open(port, "127.0.0.2"))
    yield* Fiber.join(closing)
  }).pipe(Effect.provide(KnownAddresses.layer)))

it.live("a connection that carries another protocol is not silent", () =>
  Effect.gen(function*() {
    const server = createServer()
    // Ahead of the listener of the API.
    const emit = server.emit.bind(server) as (event: string, ...args: ReadonlyArray<unknown>) => boolean
    server.emit = ((event: string, ...args: [unknown, Socket]) =>
      event === "upgrade"
        ? args[1].resume().once("end", () => args[1].end()).write("HTTP/1.1 101 Switching Protocols\r\n\r\n")
        : emit(event, ...args)) as typeof server.emit
    const port = yield* serve(() => Effect.succeed("<answer>"), { connections: 2 }, () => server)
    const upgraded = yield* open(port)
    yield* Effect.callback<void>((resume) => {
      upgraded.once("data", () => resume(Effect.void))
      upgraded.write("GET / HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n")
    })
    const silent = yield* open(port)
    const closing = yield* Effect.forkChild(
      Effect.callback<void>((resume) => {
        silent.resume().once("close", () => resume(Effect.void))
      }),
      { startImmediately: true }
    )
    yield* open(port)
    yield* Fiber.join(closing)
    assert.isFalse(upgraded.destroyed)
  }))

it.live.each(["", "expect: 100-continue\r\n"])(
  "expensive requests leave other sockets their turn, and one of another access key does not wait for all",
  (expect) =>
    Effect.gen(function*() {
      let phase = 0
      const count = () => {
        phase++
        counting = setImmediate(count)
      }
      let counting = setImmediate(count)
      yield* Effect.addFinalizer(() => Effect.sync(() => clearImmediate(counting)))
      const order: Array<string> = []
      const phases = new Set<number>()
      const port = yield* serve((request) =>
        Effect.sync(() => {
          const key = request.headers["authorization"]
          if (key === undefined) return "<answer>"
          order.push(key)
          phases.add(phase)
          // Longer than a turn.
          work(5)
          return "<answer>"
        })
      )
      const sockets = yield* Effect.forEach(Array.from({ length: 21 }), () => open(port), { concurrency: "unbounded" })
      /** All sockets send a request at once. */
      const ask = (fieldsOf: (i: number) => string) =>
        Effect.forEach(sockets, (socket, i) => {
          socket.write(`GET / HTTP/1.1\r\nhost: h\r\n${fieldsOf(i)}\r\n`)
          return answersOf(socket, 1)
        }, { concurrency: "unbounded" })
      // The server has taken all connections.
      yield* ask(() => "")
      yield* ask((i) => `${expect}authorization: ${i < 20 ? "many" : "one"}\r\n`)
      assert.isBelow(order.indexOf("one"), 10)
      assert.isAtLeast(phases.size, 10)
    })
)

it.live("a request from an address that is known does not wait for those of strangers", () =>
  Effect.gen(function*() {
    const known = yield* KnownAddresses
    known.add("127.0.0.1")
    const order: Array<string> = []
    const port = yield* serveWork(5, order)
    const addresses = Array.from({ length: 20 }, (_, i) => `127.0.1.${i + 1}`)
    const sockets = yield* Effect.forEach([...addresses, "127.0.0.1"], (address) => open(port, address), {
      concurrency: "unbounded"
    })
    const askAll = (urlOf: (i: number) => string) =>
      Effect.forEach(sockets, (socket, i) => {
        socket.write(`GET ${urlOf(i)} HTTP/1.1\r\nhost: h\r\n\r\n`)
        return answersOf(socket, 1)
      }, { concurrency: "unbounded" })
    yield* askAll(() => "/")
    yield* askAll((i) => i < 20 ? "/stranger" : "/known")
    assert.isBelow(order.indexOf("/known"), 10)
  }).pipe(Effect.provide(KnownAddresses.layer)))

it.live("one that comes from an address that is known behind hundreds of strangers is not the last", () =>
  Effect.gen(function*() {
    const known = yield* KnownAddresses
    known.add("127.0.0.1")
    const order: Array<string> = []
    const port = yield* serveWork(0.2, order)
    const begin = (url: string, localAddress: string) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const socket = connect({ port, host: "127.0.0.1", localAddress }, () =>
            socket.write(`GET ${url} HTTP/1.1\r\nhost: h\r\n\r\n`))
          return socket.on("error", () => {})
        }),
        (socket) =>
          Effect.sync(() => socket.destroy())
      )
    yield* Effect.forEach(Array.from({ length: 300 }), (_, i) => begin("/stranger", `127.0.1.${i % 250 + 1}`))
    yield* answersOf(yield* begin("/known", "127.0.0.1"), 1)
    assert.isBelow(order.indexOf("/known"), 300)
  }).pipe(Effect.provide(KnownAddresses.layer)))

it.live("requests of a stranger begin in their order while others wait", () =>
  Effect.gen(function*() {
    const order: Array<string> = []
    const port = yield* serveWork(1, order)
    const sockets = yield* Effect.forEach(Array.from({ length: 10 }), () => open(port), { concurrency: "unbounded" })
    const answers = yield* Effect.forkChild(
      Effect.forEach(sockets, (socket) => answersOf(socket, 20), { concurrency: "unbounded" }),
      { startImmediately: true }
    )
    for (let n = 0; n < 20; n++) {
      for (const [i, socket] of sockets.entries()) socket.write(`GET /${i}/${n} HTTP/1.1\r\nhost: h\r\n\r\n`)
      yield* Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))
    }
    yield* Fiber.join(answers)
    for (const i of sockets.keys()) {
      const ofSocket = order.filter((url) => url.startsWith(`/${i}/`))
      assert.deepStrictEqual(ofSocket, Array.from({ length: 20 }, (_, n) => `/${i}/${n}`))
    }
  }).pipe(Effect.provide(KnownAddresses.layer)))

it.live("a body is read once, and the same for a request and the one that is made of it, as text and as bytes", () =>
  Effect.gen(function*() {
    const port = yield* serve(Effect.fnUntraced(function*(request) {
      const text = yield* ofOther(request).text
      const bytes = yield* ofOther(ofOther(request)).arrayBuffer
      return `<${text} ${yield* request.text} ${bytes.byteLength}>`
    }))
    const marked = "\uFEFFä"
    const post = (headers = "") => `POST / HTTP/1.1\r\nhost: h\r\n${headers}content-length: 5\r\n\r\n`
    // At once, in parts, and after the server has said that it reads on.
    for (const parts of [[post() + marked], [post(), marked], [post("expect: 100-continue\r\n"), marked]]) {
      const socket = yield* open(port)
      const answer = yield* Effect.forkChild(answersOf(socket, 1), { startImmediately: true })
      for (const part of parts) {
        socket.write(part)
        yield* Effect.sleep("20 millis")
      }
      assert.include(yield* Fiber.join(answer), "<ä ä 5>")
    }
  }))

it.live("a request does not begin whose client has gone before its turn", () =>
  Effect.gen(function*() {
    const server = createServer()
    const arrived: Array<string> = []
    const begun: Array<string> = []
    server.on("request", ({ url }) => arrived.push(url!))
    const leaves = yield* Deferred.make<Socket>()
    const port = yield* serve(
      ({ url }) =>
        Effect.gen(function*() {
          begun.push(url)
          if (url === "/1") (yield* Deferred.await(leaves)).resetAndDestroy()
          // Longer than a turn: the others wait.
          const end = performance.now() + 5
          while (performance.now() < end);
          return "<answer>"
        }),
      {},
      () => server
    )
    const [stays, gone] = [yield* open(port), yield* open(port)]
    yield* Deferred.succeed(leaves, gone)
    const answers = yield* Effect.forkChild(answersOf(stays, 10), { startImmediately: true })
    stays.write(Array.from({ length: 10 }, (_, i) => `GET /${i} HTTP/1.1\r\nhost: h\r\n\r\n`).join(""))
    gone.write("GET /gone HTTP/1.1\r\nhost: h\r\n\r\n")
    yield* Fiber.join(answers)
    yield* Effect.sleep("50 millis")
    assert.include(arrived, "/gone")
    assert.notInclude(begun, "/gone")
  }))
