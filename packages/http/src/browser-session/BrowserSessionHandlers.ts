/**
 * Handlers of the routes of browser sessions.
 */
import { BrowserSessions, type Principal, Projects } from "@device-cloud/core"
import { Clock, Effect, Redacted } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { group } from "../ApiHandlers.ts"
import { Code } from "../Code.ts"
import { Api } from "../DeviceCloudApi.ts"
import { failWith } from "../DomainFailures.ts"
import { dateText, done, respond } from "../Envelope.ts"
import { CurrentPrincipal, makeAuthorize } from "../middleware/Authorization.ts"
import * as ForgeryGuard from "../middleware/ForgeryGuard.ts"
import * as SessionCookie from "../middleware/SessionCookie.ts"
import { type NoSuchProject, Unauthorized } from "../project/ProjectFailures.ts"
import type { BrowserSessionRecord } from "./BrowserSessionApi.ts"
import * as SignInLimit from "./SignInLimit.ts"

const signInRoute = {
  area: "browserSessions",
  action: "browserSessions.signIn",
  isRead: false,
  path: "/openapi/v1/browser-sessions"
}

const notSignedIn = Effect.fail(Unauthorized.make({ message: "The request came without a browser session; sign in" }))

/** Implements the group `browserSessions`. */
export const layer = group(
  Api,
  "browserSessions",
  Effect.fnUntraced(function*(handlers) {
    const projects = yield* Projects
    const sessions = yield* BrowserSessions
    const authorize = yield* makeAuthorize
    const checkForgery = yield* ForgeryGuard.make
    const limited = yield* SignInLimit.make

    const record = (principal: Principal, expiresAt: number) =>
      respond(projects.get(principal.projectId), ({ name }): typeof BrowserSessionRecord.Type => ({
        project_id: principal.projectId,
        project_name: name,
        key_id: principal.accessKeyId,
        key_name: principal.accessKeyName,
        role: principal.role,
        scopes: principal.scopes,
        expires_at: dateText(expiresAt)
      })).pipe(
        // The project was removed a moment ago, and its keys with it.
        Effect.catchIf(
          (failure): failure is typeof NoSuchProject.Type => failure.code === Code.noSuchAccessKeyOrProject,
          () => notSignedIn
        )
      )

    return handlers.handleAll({
      signIn: Effect.fnUntraced(function*({ payload }) {
        const request = yield* HttpServerRequest.HttpServerRequest
        yield* checkForgery(request)
        const credential = { kind: "access-key", secret: Redacted.make(payload.access_key) } as const
        const begin = authorize(request, credential, "viewer", signInRoute, (caller) =>
          Effect.gen(function*() {
            const { expiresAt, token } = yield* sessions.signIn(caller).pipe(Effect.catch(failWith))
            const seconds = Math.ceil((expiresAt - (yield* Clock.currentTimeMillis)) / 1000)
            const body = HttpServerResponse.jsonUnsafe(yield* record(caller, expiresAt))
            return SessionCookie.set(request, body, token, seconds)
          }))
        return yield* Effect.catchIf(
          limited(request, begin),
          ({ code }) => code === Code.unauthorized,
          () => Effect.fail(Unauthorized.make({ message: "access_key: there is no such access key" }))
        )
      }),
      getCurrentSession: Effect.fnUntraced(function*() {
        const caller = yield* CurrentPrincipal
        return yield* caller.session === null ? notSignedIn : record(caller, caller.session.expiresAt)
      }),
      signOut: Effect.fnUntraced(function*() {
        const { session } = yield* CurrentPrincipal
        if (session === null) return yield* notSignedIn
        const body = HttpServerResponse.jsonUnsafe(yield* done(sessions.signOut(session.token)))
        return SessionCookie.clear(yield* HttpServerRequest.HttpServerRequest, body)
      })
    })
  })
)
