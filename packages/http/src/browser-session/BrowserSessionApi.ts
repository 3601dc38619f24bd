/**
 * The routes of browser sessions (docs/api/browser-sessions.md).
 */
import { KeyScopes, Role } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { DateText, Envelope, EnvelopeOnly } from "../Envelope.ts"
import { TooManyRequests } from "../Failure.ts"
import { Authorization, RequiredRole } from "../middleware/Authorization.ts"
import { AccessKeyExpired, RoleTooLow, Unauthorized } from "../project/ProjectFailures.ts"
import { ForgedRequest } from "./BrowserSessionFailures.ts"

/** Who is signed in. */
export const BrowserSessionRecord = Schema.Struct({
  project_id: Schema.String,
  project_name: Schema.String,
  key_id: Schema.String,
  key_name: Schema.String,
  role: Role,
  scopes: KeyScopes.annotate({ description: "An absent list narrows nothing" }),
  expires_at: DateText.annotate({ description: "When the session ends" })
}).annotate({ identifier: "BrowserSession" })

const guarded = "Needs the header `X-CSRF-Protection: 1`, and a page of this server as `Origin`, if there is one."

/** The group `browserSessions` of the typed client. */
export class BrowserSessionApi extends HttpApiGroup.make("browserSessions").add(
  HttpApiEndpoint.post("signIn", "/browser-sessions", {
    payload: Schema.Struct({ access_key: Schema.String }),
    success: Envelope(BrowserSessionRecord),
    error: [Unauthorized, AccessKeyExpired, RoleTooLow, ForgedRequest, TooManyRequests]
  }).annotate(OpenApi.Summary, "Sign a browser in")
    .annotate(
      OpenApi.Description,
      `Sets a cookie that stands for the access key, for twelve hours or until the key ends. ${guarded}`
    ),
  HttpApiEndpoint.get("getCurrentSession", "/browser-sessions/current", {
    success: Envelope(BrowserSessionRecord),
    error: Unauthorized
  }).middleware(Authorization)
    .annotate(OpenApi.Summary, "Read who is signed in"),
  HttpApiEndpoint.delete("signOut", "/browser-sessions/current", {
    success: EnvelopeOnly,
    error: Unauthorized
  }).middleware(Authorization)
    .annotate(OpenApi.Summary, "Sign the browser out")
    .annotate(OpenApi.Description, `Ends the session and clears the cookie. ${guarded}`)
    .annotate(RequiredRole, "viewer")
).annotate(OpenApi.Title, "Browser sessions") {}
