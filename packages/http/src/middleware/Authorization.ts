/**
 * Who may call what (docs/api/README.md): one place for every route.
 */
import { AccessKeys, type Principal, type Role, roleIncludes } from "@device-cloud/core"
import { Context, Effect, Layer, type Redacted } from "effect"
import { HttpClientRequest } from "effect/http"
import { type HttpApiEndpoint, HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import { failWith } from "../DomainFailures.ts"
import { StorageUnreachable, TooManyRequests } from "../Failure.ts"
import { AccessKeyExpired, RoleTooLow, Unauthorized } from "../project/ProjectFailures.ts"
import { RateLimits } from "./RateLimits.ts"

/** The project and role of the access key that came with the request. */
export class CurrentPrincipal extends Context.Service<CurrentPrincipal, Principal>()(
  "@device-cloud/http/CurrentPrincipal"
) {}

/**
 * Annotates an endpoint that needs another role than its method says: `viewer`
 * for GET, `operator` for all others.
 */
export class RequiredRole extends Context.Service<RequiredRole, Role>()("@device-cloud/http/RequiredRole") {}

/** Requires an access key, counts its project's requests, and checks the role. */
export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: CurrentPrincipal }>()(
  "@device-cloud/http/Authorization",
  {
    requiredForClient: true,
    security: {
      accessKey: HttpApiSecurity.bearer
    },
    error: [Unauthorized, AccessKeyExpired, RoleTooLow, TooManyRequests, StorageUnreachable]
  }
) {
  static readonly layer: Layer.Layer<Authorization, never, AccessKeys | RateLimits> = Layer.effect(
    Authorization,
    Effect.suspend(() =>
      Effect.map(makeAuthorize, (authorize) =>
        Authorization.of({
          accessKey: (handler, { credential, endpoint }) =>
            Effect.flatMap(
              authorize(credential, requiredRole(endpoint)),
              (principal) => Effect.provideService(handler, CurrentPrincipal, principal)
            )
        }))
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

/** The same for routes that stand outside of an `HttpApi`: a function from access key and needed role to principal. */
export const makeAuthorize = Effect.gen(function*() {
  const accessKeys = yield* AccessKeys
  const limits = yield* RateLimits
  return Effect.fnUntraced(function*(accessKey: Redacted.Redacted, required: Role) {
    const principal = yield* accessKeys.authenticate(accessKey).pipe(Effect.catch(failWith))
    if (limits.isOn("project")) yield* limits.check("project", principal.projectId)
    if (roleIncludes(principal.role, required)) return principal
    return yield* Effect.fail(
      RoleTooLow.make({
        message: `This needs the role ${required}; the access key has the role ${principal.role}`
      })
    )
  })
})

const requiredRole = (endpoint: HttpApiEndpoint.Top): Role =>
  Context.getOrUndefined(endpoint.annotations, RequiredRole) ?? (endpoint.method === "GET" ? "viewer" : "operator")
