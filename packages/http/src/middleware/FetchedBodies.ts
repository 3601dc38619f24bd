/**
 * The bodies of requests of `fetch`, which Effect would read to their end, however
 * large they are.
 */
import { ByteSize, Effect, type Fiber, Predicate } from "effect"
import { HttpIncomingMessage, HttpServerError, type HttpServerRequest } from "effect/http"

type Request = HttpServerRequest.HttpServerRequest

/** Makes a request, and those that are made of it, read no more of the body than `MaxBodySize`, once. */
export const limit = (request: Request): Request => {
  const { source } = request
  if (!isOfFetch(source)) return request
  const bytes = Effect.runSync(Effect.cached(Effect.withFiber((fiber) => read(request, source, limitOf(fiber)))))
  const text = Effect.map(bytes, (bytes) => new TextDecoder().decode(bytes))
  const takeOver = (request: Request): Request => {
    const modify = request.modify.bind(request)
    return Object.defineProperties(request, {
      arrayBuffer: { value: Effect.map(bytes, ({ buffer }) => buffer) },
      text: { value: text },
      modify: { value: (options: Parameters<Request["modify"]>[0]) => takeOver(modify(options)) }
    })
  }
  return takeOver(request)
}

const isOfFetch = (source: object): source is globalThis.Request => Predicate.hasProperty(source, "arrayBuffer")

const limitOf = (fiber: Fiber.Fiber<unknown, unknown>): number => {
  const limit = fiber.getRef(HttpIncomingMessage.MaxBodySize)
  return limit === undefined ? Infinity : ByteSize.toNumberUnsafe(limit)
}

const read = (
  request: Request,
  { body }: globalThis.Request,
  limit: number
): Effect.Effect<Uint8Array<ArrayBuffer>, HttpServerError.HttpServerError> => {
  const unreadable = (reason: "Parse" | "BodyTooLarge", cause?: unknown) =>
    new HttpServerError.HttpServerError({ reason: new HttpServerError.RequestParseError({ request, reason, cause }) })
  if (body === null) return Effect.succeed(new Uint8Array(0))
  return Effect.flatMap(
    Effect.tryPromise({
      try: (signal) => take(body, limit, signal),
      catch: (cause) => unreadable("Parse", cause)
    }),
    (bytes) => bytes === undefined ? Effect.fail(unreadable("BodyTooLarge")) : Effect.succeed(bytes)
  )
}

/**
 * Returns the whole body; undefined if it has more bytes. What is left of it then is for the server that
 * has made the request: to cancel it would end the connection before the response.
 */
const take = async (
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  limit: number,
  signal: AbortSignal
): Promise<Uint8Array<ArrayBuffer> | undefined> => {
  const reader = body.getReader()
  const chunks: Array<Uint8Array<ArrayBuffer>> = []
  let size = 0
  while (!signal.aborted) {
    const { done, value } = await reader.read()
    if (done) break
    size += value.length
    if (size > limit) return void reader.releaseLock()
    chunks.push(value)
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer())
}
