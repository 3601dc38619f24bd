/**
 * What a request of the management API comes with to say who calls.
 */
import { Redacted } from "effect"
import type { HttpServerRequest } from "effect/http"
import * as SessionCookie from "./SessionCookie.ts"

/** An access key, or the token of a browser session. */
export interface Credential {
  readonly kind: "access-key" | "browser-session"
  /** Empty: the request came with none. */
  readonly secret: Redacted.Redacted
}

const bearer = /^bearer (.*)$/i

/** The credential of a request. An access key counts before a cookie. */
export const credentialOf = (request: HttpServerRequest.HttpServerRequest): Credential => {
  const [, key = ""] = bearer.exec(request.headers["authorization"] ?? "") ?? []
  const token = key === "" ? SessionCookie.read(request) : undefined
  return token === undefined
    ? { kind: "access-key", secret: Redacted.make(key) }
    : { kind: "browser-session", secret: token }
}
