/**
 * The HTTP server of Node.js with conventional header names (`HeaderNames.ts`) and
 * a faster reading of request bodies. Effect's own
 * reading forks a fiber and waits until the stream has closed, which took a
 * seventh of the time of a message over HTTP
 * (docs/decisions/0037-request-bodies.md).
 */
import {
  addressGroup,
  type AddressRange,
  clientOrigin,
  isTrustedProxy,
  KnownAddresses,
  TrustedProxies
} from "@device-cloud/core"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { ByteSize, Clock, Context, Deferred, Duration, Effect, Exit, Layer, Option, Schedule } from "effect"
import { HttpIncomingMessage, HttpServer, HttpServerError, HttpServerRequest } from "effect/http"
import type { EventEmitter } from "node:events"
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from "node:http"
import { ArrivingBodies } from "./ArrivingBodies.ts"
import { makeCapitalize } from "./HeaderNames.ts"
import { Http1Request } from "./Http1Request.ts"
import { HttpConnections } from "./HttpConnections.ts"
import { makeLeaveTogether } from "./LeavingResponses.ts"
import { type Reader, ReadingPlaces } from "./ReadingPlaces.ts"
import { RequestTurns } from "./RequestTurns.ts"

type Bytes = Effect.Effect<ArrayBuffer, HttpServerError.HttpServerError>

/** The private part of a request. */
interface RequestInternals {
  /** Reads the body, or returns the body that was read. Effect makes text and JSON of it. */
  arrayBufferEffect: Bytes | undefined
}

const internals = (request: HttpServerRequest.HttpServerRequest): RequestInternals =>
  request as unknown as RequestInternals

const bytesOf = (chunks: ReadonlyArray<Buffer>): ArrayBuffer => {
  const { buffer, byteOffset, length } = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
  return (buffer as ArrayBuffer).slice(byteOffset, byteOffset + length)
}

/** What the requests of a server share. */
interface Shared {
  readonly bodies: ArrivingBodies
  readonly places: ReadingPlaces
  readonly turns: RequestTurns
}

/** A body of more bytes is read when it has a place, and is handed over in a turn of its own. */
const largeBytes = 16 * 1024

/** Large bodies that are read at once. */
const largeBodies = 16

/** Returns the address of a client, or its network; that of a client behind a trusted proxy is its own. */
const makeAddressOf = (proxies: ReadonlyArray<AddressRange>) => ({ headers, socket }: IncomingMessage): string => {
  const { remoteAddress = "" } = socket
  if (proxies.length === 0) return addressGroup(remoteAddress)
  const forwarded = { for: headers["x-forwarded-for"]?.toString(), proto: undefined }
  return addressGroup(clientOrigin({ address: remoteAddress, isSecure: false }, forwarded, proxies).address)
}

/** Reads the body to its end, even beyond the limit, so that the connection can take another request. */
const read = (
  request: HttpServerRequest.HttpServerRequest,
  limit: number,
  { bodies, places, turns }: Shared,
  done: (exit: Exit.Exit<ArrayBuffer, HttpServerError.HttpServerError>) => void
): void => {
  const source = request.source as IncomingMessage
  let chunks: Array<Buffer> = []
  let size = 0
  let isDone = false
  const succeed = () => {
    if (isDone) return
    isDone = true
    const hand = () => {
      bodies.end(body)
      done(Exit.succeed(bytesOf(chunks)))
    }
    // What is made of a large body takes long.
    if (size > largeBytes) turns.wait(source, hand)
    else hand()
  }
  const fail = (reason: "Parse" | "BodyTooLarge", cause?: unknown) => {
    if (isDone) return
    isDone = true
    bodies.end(body)
    chunks = []
    done(Exit.fail(
      new HttpServerError.HttpServerError({
        reason: new HttpServerError.RequestParseError({ request, reason, cause })
      })
    ))
  }
  const address = turns.addressOf(source)
  const body = bodies.begin(address, (reason) => fail("Parse", reason))
  if (source.readableEnded) return succeed()
  if (source.destroyed) return fail("Parse")
  const reader: Reader = { address, resume: () => source.resume() }
  const keep = (chunk: Buffer) => {
    if (size > limit) return fail("BodyTooLarge")
    chunks.push(chunk)
    bodies.grows(body, chunk.length)
  }
  source.on("data", (chunk: Buffer) => {
    size += chunk.length
    if (!isDone) keep(chunk)
    if (size <= largeBytes) return
    if (!places.take(reader)) source.pause()
    else if (!turns.mayRun()) {
      source.pause()
      turns.wait(source, reader.resume)
    }
  })
  source.on("end", succeed)
  source.on("error", (cause) => fail("Parse", cause))
  source.on("close", () => {
    places.leave(reader)
    // Without effect after `end`.
    fail("Parse")
  })
  // Nobody waits for the body any more, for example because the request took too long.
  responseTo(request).once("close", () => fail("Parse"))
}

/** Reads the body of a request when it is needed for the first time. */
const bodyOf = (request: HttpServerRequest.HttpServerRequest, shared: Shared): Bytes =>
  Effect.withFiber((fiber) => {
    const limit = fiber.getRef(HttpIncomingMessage.MaxBodySize)
    const bytes = Deferred.makeUnsafe<ArrayBuffer, HttpServerError.HttpServerError>()
    internals(request).arrayBufferEffect = Deferred.await(bytes)
    read(
      request,
      limit === undefined ? Infinity : ByteSize.toNumberUnsafe(limit),
      shared,
      (exit) => Deferred.doneUnsafe(bytes, exit)
    )
    return Deferred.await(bytes)
  })

/** What clients may take before the server knows who they are. */
export interface Limits {
  /**
   * Connections at once. Above it, the one that has been idle longest ends; if
   * none is idle, the new one. A tenth of them is for addresses from which somebody
   * was authenticated lately, and for `TrustedProxies`, if the services of the cloud
   * are at hand where the layer is built. Default: no limit.
   */
  readonly connections: number
  /**
   * Of one address at once, `TrustedProxies` of the core excepted; the same
   * happens above it. Default: a quarter of `connections`, at least 200.
   */
  readonly addressConnections: number
  /**
   * Bytes of all bodies that are arriving; those that are streamed do not count. Above it, the oldest body of the address
   * that sends most is refused. Default: 64 MiB.
   */
  readonly bodyBytes: number
  /** How long one body may take to arrive, unless it is streamed. Default: 30 seconds. */
  readonly bodyTime: Duration.Input
}

/**
 * Limits the connections of a server, of `node:https` too. Call `began` of what it
 * returns for each request. `door`: who accepts the connections, if not the server.
 */
export const limitConnections = (
  server: EventEmitter,
  { addressConnections, connections = Infinity }: Partial<Limits>,
  door = server
): Effect.Effect<HttpConnections> =>
  Effect.gen(function*() {
    const proxies = yield* TrustedProxies
    const known = Option.getOrUndefined(yield* Effect.serviceOption(KnownAddresses))
    return new HttpConnections(
      server,
      {
        connections,
        reservedConnections: known === undefined || connections === Infinity ? 0 : Math.floor(connections / 10),
        addressConnections: addressConnections ?? shareOf(connections)
      },
      { isProxy: (address) => isTrustedProxy(address, proxies), known },
      door
    )
  })

/** How long a client may go on to send a body after the response, milliseconds. */
const lingerMillis = 2000

const responseTo = (request: HttpServerRequest.HttpServerRequest): ServerResponse =>
  NodeHttpServerRequest.toServerResponse(request) as ServerResponse

/** Ends the connection of a client that has its response and does not complete its request. */
const endUnfinished = (source: IncomingMessage, response: ServerResponse): void => {
  const { "content-length": length, "transfer-encoding": encoding } = source.headers
  if (encoding === undefined && (length === undefined || length === "0")) return
  response.once("finish", () => {
    if (source.complete) return
    // A timer of Node.js and not a fiber: nothing of the request runs any more.
    const timer = setTimeout(() => source.socket.destroy(), lingerMillis).unref()
    source.once("close", () => clearTimeout(timer))
  })
}

/**
 * The same as `NodeHttpServer.layer`, with conventional header names, the faster
 * reading of bodies, and limits to what arrives. `evaluate` is `createServer` of
 * `node:http`, or makes the server with the options that it gets: `IncomingMessage`
 * is {@link Http1Request}.
 */
export const layer = (
  evaluate: (options: ServerOptions) => Server,
  options: Parameters<typeof NodeHttpServer.layer>[1],
  limits: Partial<Limits> = {}
): ReturnType<typeof NodeHttpServer.layer> =>
  Layer.merge(
    NodeHttpServer.layerHttpServices,
    Layer.effect(
      HttpServer.HttpServer,
      Effect.gen(function*() {
        const { bodyBytes = 64 * 1024 * 1024, bodyTime = "30 seconds" } = limits
        const server = evaluate({ IncomingMessage: Http1Request })
        const connections = yield* limitConnections(server, limits)
        const turns = new RequestTurns(
          makeAddressOf(yield* TrustedProxies),
          Option.getOrUndefined(yield* Effect.serviceOption(KnownAddresses))
        )
        turns.takeConnections(server)
        const { address, serve } = yield* NodeHttpServer.make(() => server, options)
        const clock = yield* Clock.Clock
        const bodies = new ArrivingBodies(bodyBytes, Duration.toMillis(bodyTime), () => clock.currentTimeMillisUnsafe())
        const places = new ReadingPlaces(largeBodies)
        yield* Effect.sync(() => {
          bodies.refuseSlow()
          places.takeFromIdle()
        }).pipe(
          Effect.repeat(Schedule.spaced("1 second")),
          Effect.forkScoped
        )
        const shared = { bodies, places, turns }
        const capitalize = makeCapitalize()
        const leaveTogether = makeLeaveTogether()
        return HttpServer.make({
          address,
          serve: (app, middleware) => {
            const prepared = Effect.withFiber(({ context }) => {
              const request = Context.getUnsafe(context, HttpServerRequest.HttpServerRequest)
              internals(request).arrayBufferEffect = bodyOf(request, shared)
              const response = responseTo(request)
              // This server speaks HTTP/1.1 only.
              capitalize(response)
              leaveTogether(response)
              const source = request.source as IncomingMessage
              connections.began(source.socket, response)
              endUnfinished(source, response)
              return app
            })
            return turns.takenOn(server, middleware === undefined ? serve(prepared) : serve(prepared, middleware))
          }
        })
      })
    )
  )

/** Connections of one address: a quarter, at least 200, and never all of them. */
const shareOf = (connections: number): number =>
  Math.min(Math.max(200, Math.floor(connections / 4)), Math.ceil(connections * 0.75))
