/**
 * The HTTP server of Node.js with conventional header names (`HeaderNames.ts`), its own
 * reading of request bodies (`RequestBodies.ts`), and limits to what clients may take.
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
import { Clock, Context, Duration, Effect, Layer, Option, Schedule } from "effect"
import { HttpServer, HttpServerRequest } from "effect/http"
import type { EventEmitter } from "node:events"
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { TLSSocket } from "node:tls"
import { ArrivingBodies } from "./ArrivingBodies.ts"
import { makeDate } from "./DateHeader.ts"
import { makeCapitalize } from "./HeaderNames.ts"
import { Http1Request } from "./Http1Request.ts"
import { HttpConnections } from "./HttpConnections.ts"
import { makeLeaveTogether } from "./LeavingResponses.ts"
import { ReadingPlaces } from "./ReadingPlaces.ts"
import { RequestBodies } from "./RequestBodies.ts"
import { RequestTurns } from "./RequestTurns.ts"
import { letGo } from "./WrittenTexts.ts"

/** Large bodies that are read at once; half of them from one address. */
const largeBodies = 16

/** Returns the address of a client, or its network; that of a client behind a trusted proxy is its own. */
const makeAddressOf = (proxies: ReadonlyArray<AddressRange>) => ({ headers, socket }: IncomingMessage): string => {
  const { remoteAddress = "" } = socket
  if (proxies.length === 0) return addressGroup(remoteAddress)
  const forwarded = { for: headers["x-forwarded-for"]?.toString(), proto: undefined }
  return addressGroup(clientOrigin({ address: remoteAddress, isSecure: false }, forwarded, proxies).address)
}

/**
 * Connections that wait until the server accepts them; the system may have a lower limit. Node.js accepts one in each
 * round of its event loop, and by itself lets 511 wait: the others would try again after a second or more.
 */
export const backlog = 4096

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
  /**
   * Bytes that are read in a second of the bodies of one address that are larger than 16 KiB and not streamed, and twice as
   * many at once after silence. Above it they are read later. Default: 32 MiB.
   */
  readonly bodyRate: number
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
  door: EventEmitter = server
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

/** Ends the connection of a client that has its response and does not complete its request, or has offered a WebSocket. */
const endUnfinished = (source: IncomingMessage & { readonly upgrade?: boolean }, response: ServerResponse): void => {
  // Nothing reads from such a connection any more, and so nothing would tell that the client has gone.
  if (source.upgrade) return void response.once("finish", () => source.socket.destroySoon())
  if (source.complete) return
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
 * Resets the connection of a client of HTTP/1.0 whose response breaks off. Such a response may end with its connection,
 * and a client would take the part for the whole. Over TLS an end without `close_notify` tells the difference.
 */
const resetUnfinished = ({ httpVersion, socket }: IncomingMessage, response: ServerResponse): void => {
  if (httpVersion !== "1.0" || socket instanceof TLSSocket) return
  const restore = () => {
    delete (socket as Partial<Socket>).destroy
  }
  socket.destroy = (error) => {
    restore()
    return response.writableFinished ? socket.destroy(error) : socket.resetAndDestroy()
  }
  response.once("close", restore)
}

/**
 * Options of a server of `node:http` or `node:https` that {@link layer} serves: {@link Http1Request}, and 75 seconds
 * until an idle connection ends. Most proxies keep theirs for a minute: one that ended first would fail their next
 * request.
 */
export const serverOptions = {
  IncomingMessage: Http1Request,
  keepAliveTimeout: 75_000
} as const satisfies ServerOptions

/**
 * The same as `NodeHttpServer.layer`, with conventional header names, the time of the `Clock` as `Date`, the faster
 * reading of bodies, limits to what arrives, and a longer {@link backlog}. `evaluate` is `createServer` of
 * `node:http`, or makes the server with the options that it gets: {@link serverOptions}.
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
        for (const name of ["addressConnections", "bodyBytes", "bodyRate", "connections"] as const) {
          const limit = limits[name]
          if (limit === undefined || (typeof limit === "number" && limit > 0)) continue
          return yield* Effect.die(new TypeError(`limits.${name}: expected a number above 0, not ${String(limit)}`))
        }
        const { bodyBytes = 64 * 1024 ** 2, bodyRate = 32 * 1024 ** 2, bodyTime = "30 seconds" } = limits
        const server = evaluate(serverOptions)
        const connections = yield* limitConnections(server, limits)
        const turns = new RequestTurns(
          makeAddressOf(yield* TrustedProxies),
          Option.getOrUndefined(yield* Effect.serviceOption(KnownAddresses))
        )
        turns.takeConnections(server)
        const { address, serve } = yield* NodeHttpServer.make(() => server, { backlog, ...options })
        const clock = yield* Clock.Clock
        const bodies = new ArrivingBodies(bodyBytes, Duration.toMillis(bodyTime), () => clock.currentTimeMillisUnsafe())
        const places = new ReadingPlaces(largeBodies, largeBodies / 2)
        yield* Effect.sync(() => {
          bodies.refuseSlow()
          places.takeFromIdle()
        }).pipe(
          Effect.repeat(Schedule.spaced("1 second")),
          Effect.forkScoped
        )
        const requestBodies = new RequestBodies(bodies, places, turns, bodyRate)
        const capitalize = makeCapitalize(makeDate(clock))
        const leaveTogether = makeLeaveTogether()
        return HttpServer.make({
          address,
          serve: (app, middleware) => {
            const prepared = Effect.withFiber(({ context }) => {
              const request = Context.getUnsafe(context, HttpServerRequest.HttpServerRequest)
              requestBodies.take(request)
              const response = responseTo(request)
              // This server speaks HTTP/1.1 only.
              capitalize(response)
              leaveTogether(response)
              const source = request.source as IncomingMessage
              connections.began(source.socket, response)
              endUnfinished(source, response)
              resetUnfinished(source, response)
              return Effect.map(app, (made) => letGo(response, made))
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
