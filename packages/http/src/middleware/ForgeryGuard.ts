/**
 * Refuses requests that a page of somebody else makes a browser send with its
 * cookie. No page can send the header to another origin unless that origin allows
 * it, and this API does not (CrossOrigin.ts).
 */
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { PublicUrl } from "../object/ObjectAddress.ts"
import { ForgedRequest } from "../browser-session/BrowserSessionFailures.ts"
import { isSecureWay } from "./ClientAddress.ts"

const header = "x-csrf-protection"

const reads = new Set(["GET", "HEAD"])

/** Makes a check of requests that a cookie authenticates, or that ask for one. */
export const make = Effect.map(PublicUrl, (publicUrl) => {
  const publicHost = publicUrl !== undefined && URL.canParse(publicUrl) ? new URL(publicUrl).host : undefined

  /** Whether the origin is that of a page of this server. */
  const isOwn = (origin: string, request: HttpServerRequest.HttpServerRequest): boolean => {
    if (!URL.canParse(origin)) return false
    const { host, protocol } = new URL(origin)
    if (isSecureWay(request) && protocol !== "https:") return false
    return host === hostOf(request) || host === publicHost
  }

  return (request: HttpServerRequest.HttpServerRequest): Effect.Effect<void, typeof ForgedRequest.Type> => {
    if (reads.has(request.method)) return Effect.void
    const { origin } = request.headers
    if (request.headers[header] !== "1") {
      return Effect.fail(
        ForgedRequest.make({ message: "X-CSRF-Protection: expected 1, as pages of this server send it" })
      )
    }
    return origin === undefined || isOwn(origin, request)
      ? Effect.void
      : Effect.fail(ForgedRequest.make({ message: "Origin: expected a page of this server, or none" }))
  }
})

/** Where the request went, as the client wrote it. */
const hostOf = ({ headers, originalUrl }: HttpServerRequest.HttpServerRequest): string | undefined =>
  headers["host"]?.toLowerCase() ?? (URL.canParse(originalUrl) ? new URL(originalUrl).host : undefined)
