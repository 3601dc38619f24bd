/**
 * A file that is the same for each client until the server restarts: made when
 * it is asked for the first time, compressed once for each coding, and not sent
 * again to a client that has it.
 */
import { Mac } from "@device-cloud/core"
import { Effect } from "effect"
import { Hex } from "effect/encoding"
import { HttpPlatform, HttpServerRequest, HttpServerResponse } from "effect/http"

/** What the file is made of. */
export interface Content {
  readonly bytes: Uint8Array
  readonly contentType: string
  /** How long it may be used without a question. Default: an hour. */
  readonly cacheControl?: string
  /** Headers besides those of caches and compression. */
  readonly headers: Readonly<Record<string, string>>
}

/** Codings, the best first. */
const codings = ["br", "gzip"] as const

/** How hard the file is compressed: it is done once. */
const level = 9

const anHour = "public, max-age=3600"

/** Makes the response to a request. Calls `content` once. */
export const make = Effect.fnUntraced(function*(content: Effect.Effect<Content>) {
  const { compression } = yield* HttpPlatform.HttpPlatform
  const mac = yield* Mac

  const plain = yield* Effect.cached(Effect.map(content, ({ bytes, cacheControl = anHour, contentType, headers }) => {
    const tag = Hex.encode(mac.sha256(bytes).subarray(0, 16))
    const common = { ...headers, "cache-control": cacheControl, vary: "Accept-Encoding" }
    return {
      tag,
      notModified: HttpServerResponse.empty({ status: 304, headers: { ...common, etag: `"${tag}"` } }),
      response: HttpServerResponse.uint8Array(bytes, { contentType, headers: { ...common, etag: `"${tag}"` } })
    }
  }))

  const encoded = yield* Effect.forEach(
    codings.filter((coding) => compression.algorithms.has(coding)),
    (coding) =>
      Effect.map(
        Effect.cached(Effect.gen(function*() {
          const { response, tag } = yield* plain
          const compressed = yield* compression.compressResponse(response, coding, { level })
          return HttpServerResponse.setHeader(yield* inMemory(compressed), "etag", `"${tag}-${coding}"`)
        })),
        (response) => ({ coding, response })
      )
  )

  const answer = Effect.gen(function*() {
    const { headers } = yield* HttpServerRequest.HttpServerRequest
    const { notModified, response, tag } = yield* plain
    if (headers["if-none-match"]?.includes(tag) === true) return notModified
    const best = encoded.find(({ coding }) => accepts(headers["accept-encoding"] ?? "", coding))
    return best === undefined ? response : yield* best.response
  })
  return answer
})

/** Platforms without compression of whole bodies return a stream. */
const inMemory = (response: HttpServerResponse.HttpServerResponse) =>
  response.body._tag === "Uint8Array" ? Effect.succeed(response) : Effect.map(
    Effect.promise(() => HttpServerResponse.toWeb(response).arrayBuffer()),
    (bytes) =>
      HttpServerResponse.uint8Array(new Uint8Array(bytes), {
        headers: response.headers,
        contentType: response.headers["content-type"] ?? "application/octet-stream"
      })
  )

/** Whether the client accepts the coding by its name; a weight of 0 refuses it. */
const accepts = (header: string, coding: string): boolean =>
  header.toLowerCase().split(",").some((part) => {
    const [name = "", ...parameters] = part.split(";").map((text) => text.trim())
    return name === coding && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
  })
