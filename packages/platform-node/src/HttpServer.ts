/**
 * The HTTP server of Node.js with a faster reading of request bodies. Effect's own
 * reading forks a fiber and waits until the stream has closed, which took a
 * seventh of the time of a message over HTTP
 * (docs/decisions/0037-request-bodies.md).
 */
import { NodeHttpServer } from "@effect/platform-node"
import { ByteSize, Deferred, Effect, Exit, Layer } from "effect"
import { HttpIncomingMessage, HttpServer, HttpServerError, HttpServerRequest } from "effect/http"
import type { IncomingMessage } from "node:http"

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

/** Reads the body to its end, even beyond the limit, so that the connection can take another request. */
const read = (
  request: HttpServerRequest.HttpServerRequest,
  limit: number,
  done: (exit: Exit.Exit<ArrayBuffer, HttpServerError.HttpServerError>) => void
): void => {
  const source = request.source as IncomingMessage
  const chunks: Array<Buffer> = []
  let size = 0
  let isDone = false
  const succeed = () => {
    if (isDone) return
    isDone = true
    done(Exit.succeed(bytesOf(chunks)))
  }
  const fail = (reason: "Parse" | "BodyTooLarge", cause?: unknown) => {
    if (isDone) return
    isDone = true
    done(Exit.fail(
      new HttpServerError.HttpServerError({
        reason: new HttpServerError.RequestParseError({ request, reason, cause })
      })
    ))
  }
  if (source.readableEnded) return succeed()
  if (source.destroyed) return fail("Parse")
  source.on("data", (chunk: Buffer) => {
    size += chunk.length
    if (size <= limit) chunks.push(chunk)
    else fail("BodyTooLarge")
  })
  source.on("end", succeed)
  source.on("error", (cause) => fail("Parse", cause))
  // Without effect after `end`.
  source.on("close", () => fail("Parse"))
}

/** Reads the body of a request when it is needed for the first time. */
const bodyOf = (request: HttpServerRequest.HttpServerRequest): Bytes =>
  Effect.withFiber((fiber) => {
    const limit = fiber.getRef(HttpIncomingMessage.MaxBodySize)
    const bytes = Deferred.makeUnsafe<ArrayBuffer, HttpServerError.HttpServerError>()
    internals(request).arrayBufferEffect = Deferred.await(bytes)
    read(
      request,
      limit === undefined ? Infinity : ByteSize.toNumberUnsafe(limit),
      (exit) => Deferred.doneUnsafe(bytes, exit)
    )
    return Deferred.await(bytes)
  })

/** The same as `NodeHttpServer.layer`, with the faster reading of bodies. */
export const layer: typeof NodeHttpServer.layer = (evaluate, options) =>
  Layer.merge(
    NodeHttpServer.layerHttpServices,
    Layer.effect(
      HttpServer.HttpServer,
      Effect.map(NodeHttpServer.make(evaluate, options), ({ address, serve }) =>
        HttpServer.make({
          address,
          serve: (app, middleware) => {
            const reading = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
              internals(request).arrayBufferEffect = bodyOf(request)
              return app
            })
            return middleware === undefined ? serve(reading) : serve(reading, middleware)
          }
        }))
    )
  )
