/**
 * A transport of an application: devices speak JSON lines over TCP. It does what
 * every transport does: it asks who a device is, attaches its connection, hands over
 * its messages one after the other, and detaches the connection at its end.
 */
import {
  DeviceAuthenticator,
  type DeviceConnection,
  DeviceReply,
  DeviceSessions,
  Uplink,
  UplinkRates
} from "@device-cloud/core"
import { Clock, Context, Effect, FiberSet, Layer, Schema, Stream } from "effect"
import { type AddressInfo, createServer, type Server, type Socket } from "node:net"
import { type FromCloud, FromDevice, Hello, linesOf } from "./Lines.ts"

export class LineTransport extends Context.Service<LineTransport, {
  /** The port of this machine on which it listens. */
  readonly port: number
}>()("acme/LineTransport") {
  /** Listens on a port of this machine; 0: a free one. All connections end with the layer. */
  static readonly layer = (options: { readonly port: number }) => Layer.effect(LineTransport, make(options.port))
}

const make = Effect.fnUntraced(function*(port: number) {
  const authenticator = yield* DeviceAuthenticator
  const sessions = yield* DeviceSessions
  const uplink = yield* Uplink
  const rates = yield* UplinkRates

  /** Serves a connection to its end. Any failure ends it, and the device connects again. */
  const serve = Effect.fnUntraced(function*(socket: Socket) {
    const ip = socket.remoteAddress ?? ""
    const lines = linesOf(socket)
    const write = (line: FromCloud) => Effect.sync(() => void socket.write(`${JSON.stringify(line)}\n`))

    const first = yield* Effect.timeout(Effect.tryPromise(() => lines.next()), "10 seconds")
    const { deviceName, productKey, sign } = yield* Schema.decodeUnknownEffect(Hello)(first.value)
    const device = yield* authenticator.authenticate({
      productKey,
      deviceName,
      clientId: "line",
      address: ip,
      signMethod: "hmacsha256",
      signature: sign
    }).pipe(Effect.tapError(({ _tag }) => write({ refused: _tag === "StoreError" ? "try again" : "wrong signature" })))

    // What calls back when the device confirms the message of that number. Ids are no such numbers: two messages may share one.
    const waiting = new Map<number, () => void>()
    let last = 0
    const connection: DeviceConnection = {
      device,
      ip,
      deliver: ({ id, method, params }, acknowledged) => {
        const number = ++last
        if (acknowledged !== undefined) waiting.set(number, acknowledged)
        return write({ number, id, method, params })
      },
      backlog: () => socket.writableNeedDrain ? drained(socket) : undefined,
      close: () => Effect.sync(() => end(socket))
    }
    yield* Effect.acquireRelease(sessions.attach(connection), sessions.detach)
    yield* write({ welcome: true })

    const take = Effect.fnUntraced(function*(line: string) {
      const said = yield* Schema.decodeUnknownEffect(FromDevice)(line)
      if ("confirms" in said) {
        waiting.get(said.confirms)?.()
        waiting.delete(said.confirms)
        return
      }
      const { id, method, params } = said
      const bytes = Buffer.byteLength(line)
      const receivedAt = yield* Clock.currentTimeMillis
      const { code, data, message } = rates.admits(device, bytes)
        ? yield* uplink.submit({ device, method, params, bytes, receivedAt })
        : DeviceReply.tooManyRequests
      yield* write({ reply: id, code, message, data })
      // A device that reads no replies is read no further.
      if (socket.writableNeedDrain) yield* drained(socket)
      // The next line is read after this: a device that sends too fast is read slower.
      const pause = rates.pause(device)
      if (pause > 0) yield* Effect.sleep(pause)
    })
    yield* Stream.runForEach(Stream.fromAsyncIterable(lines, (failure) => failure), take)
  }, Effect.scoped)

  const fork = yield* FiberSet.makeRuntime()
  // A device whose network is gone does not say so: TCP asks for it after 30 seconds of silence.
  const server = createServer({ keepAlive: true, keepAliveInitialDelay: 30_000 }, (socket) => {
    // A connection that breaks ends its lines; nobody else has to hear of it.
    socket.on("error", () => {})
    fork(Effect.ensuring(Effect.ignore(serve(socket)), Effect.sync(() => end(socket))))
  })
  yield* listening(server, port)
  return LineTransport.of({ port: (server.address() as AddressInfo).port })
})

/** Ends the connection. A device that reads may read for a second what was sent before. */
const end = (socket: Socket) => {
  socket.destroySoon()
  setTimeout(() => socket.destroy(), 1000).unref()
}

/** Waits until the socket takes more, or has closed. */
const drained = (socket: Socket) =>
  Effect.callback<void>((resume) => {
    const done = () => {
      socket.off("drain", done).off("close", done)
      resume(Effect.void)
    }
    socket.on("drain", done).on("close", done)
  })

/** Listens until the scope closes. */
const listening = (server: Server, port: number) =>
  Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(port, "127.0.0.1", () => resume(Effect.void))),
    () => Effect.sync(() => void server.close())
  )
