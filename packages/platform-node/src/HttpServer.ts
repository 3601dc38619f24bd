/**
 * The HTTP server of Node.js, with requests whose bodies are read as they come
 * in: Effect's own reads each in a fiber, and waits until its stream has closed.
 */
import { NodeHttpServer } from "@effect/platform-node"
import { ByteSize, Deferred, Effect, Exit, Layer } from "effect"
import { HttpIncomingMessage, HttpServer, HttpServerError, HttpServerRequest } from "effect/http"
import type { IncomingMessage } from "node:http"

type Bytes = Effect.Effect<ArrayBuffer, HttpServerError.HttpServerError>

/** The part of a request that its type leaves out. */
interface RequestInternals {
  /** What its body is, once that was asked for; text and JSON are made of it. */
  arrayBufferEffect: Bytes | undefined
}

const internals = (request: HttpServerRequest.HttpServerRequest): RequestInternals =>
  request as unknown as RequestInternals

const bytesOf = (chunks: ReadonlyArray<Buffer>): ArrayBuffer => {
  const { buffer, byteOffset, length } = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
  return (buffer as ArrayBuffer).slice(byteOffset, byteOffset + length)
}

/** Reads to the end, also what is over the limit: the connection can go on with another request. */
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
  // Before its end.
  source.on("close", () => fail("Parse"))
}

/** What the body of a request is; read when it is asked for first. */
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

/** `NodeHttpServer.layer`, and what it may be given. */
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
