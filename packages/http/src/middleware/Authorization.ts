/**
 * Who may call what (decisions, section 2): one place for every route.
 */
import { AccessKeys, Idempotency, type Principal, type Role, roleIncludes } from "@device-cloud/core"
import { Context, Effect, Layer, type Redacted } from "effect"
import { HttpClientRequest } from "effect/http"
import { type HttpApiEndpoint, HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import { answerOnce } from "./IdempotencyMiddleware.ts"
import { RateLimits } from "./RateLimits.ts"
import { Code, failure, failureSchemas, failWith } from "../Failure.ts"

/** The project and role of the access key that came with the request. */
export class CurrentPrincipal extends Context.Service<CurrentPrincipal, Principal>()(
  "@device-cloud/http/CurrentPrincipal"
) {}

/** Annotates an endpoint, or a group, that needs more than its method says. */
export class RequiredRole extends Context.Service<RequiredRole, Role>()("@device-cloud/http/RequiredRole") {}

const requiredRole = (endpoint: HttpApiEndpoint.Top): Role =>
  Context.getOrUndefined(endpoint.annotations, RequiredRole) ?? (endpoint.method === "GET" ? "viewer" : "operator")

export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: CurrentPrincipal }>()(
  "@device-cloud/http/Authorization",
  {
    requiredForClient: true,
    security: {
      accessKey: HttpApiSecurity.bearer
    },
    error: failureSchemas
  }
) {
  static readonly layer: Layer.Layer<Authorization, never, AccessKeys | Idempotency | RateLimits> = Layer.effect(
    Authorization,
    Effect.map(
      Effect.all([AccessKeys, Idempotency, RateLimits]),
      ([accessKeys, idempotency, limits]) =>
        Authorization.of({
          accessKey: Effect.fnUntraced(function*(handler, { credential, endpoint }) {
            const principal = yield* accessKeys.authenticate(credential).pipe(Effect.catch(failWith))
            if (limits.isOn("project")) yield* limits.check("project", principal.projectId)
            const required = requiredRole(endpoint)
            if (!roleIncludes(principal.role, required)) {
              return yield* Effect.fail(
                failure(
                  Code.roleTooLow,
                  `This needs the role ${required}; the access key has the role ${principal.role}`
                )
              )
            }
            const answer = Effect.provideService(handler, CurrentPrincipal, principal)
            if (endpoint.method !== "POST") return yield* answer
            return yield* answerOnce(idempotency, principal, answer)
          })
        })
    )
  )

  /** For typed clients: sends the access key with every request. */
  static readonly layerClient = (
    accessKey: Redacted.Redacted
  ): Layer.Layer<HttpApiMiddleware.ForClient<Authorization>> =>
    HttpApiMiddleware.layerClient(
      Authorization,
      ({ next, request }) => next(HttpClientRequest.bearerToken(request, accessKey))
    )
}
