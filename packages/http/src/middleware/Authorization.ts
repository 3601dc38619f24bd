/**
 * Who may call what (docs/api/README.md): one place for every route.
 */
import {
  AccessKeys,
  admitsAddress,
  type AuditLog,
  BrowserSessions,
  type Devices,
  expiresSoon,
  KnownAddresses,
  type Role,
  roleIncludes
} from "@device-cloud/core"
import { Clock, Context, Effect, Exit, Layer, type Redacted } from "effect"
import { HttpClientRequest, HttpServerRequest, HttpServerResponse } from "effect/http"
import { type HttpApiEndpoint, HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import { Code, statusOf } from "../Code.ts"
import { failWith } from "../DomainFailures.ts"
import { StorageUnreachable, TooManyRequests } from "../Failure.ts"
import { ForgedRequest } from "../browser-session/BrowserSessionFailures.ts"
import { AccessKeyExpired, RoleTooLow, Unauthorized } from "../project/ProjectFailures.ts"
import type { Authenticated, Caller } from "./Caller.ts"
import { clientAddress, countedAddress } from "./ClientAddress.ts"
import { type Credential, credentialOf } from "./Credential.ts"
import * as ForgeryGuard from "./ForgeryGuard.ts"
import * as KeyScope from "./KeyScope.ts"
import { RateLimits } from "./RateLimits.ts"
import * as RequestAudit from "./RequestAudit.ts"

/** The project and role of the access key or the browser session that came with the request, and which secrets its response may show. */
export class CurrentPrincipal extends Context.Service<CurrentPrincipal, Caller>()(
  "@device-cloud/http/CurrentPrincipal"
) {}

/**
 * Annotates an endpoint that needs another role than its method says: `viewer`
 * for reads, `operator` for all others.
 */
export class RequiredRole extends Context.Service<RequiredRole, Role>()("@device-cloud/http/RequiredRole") {}

/** Annotates an endpoint that changes nothing that the audit log is about, whatever its method. */
export const Unaudited = Context.Reference<boolean>("@device-cloud/http/Unaudited", { defaultValue: () => false })

/**
 * Annotates an endpoint that changes nothing, though its method is not GET: any
 * role may call it, and it is a read for scopes of access keys and the audit log.
 */
export const ReadOnly = Context.Reference<boolean>("@device-cloud/http/ReadOnly", { defaultValue: () => false })

/** Requires an access key or a browser session, counts its project's requests, and checks role, address and scopes. */
export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: CurrentPrincipal }>()(
  "@device-cloud/http/Authorization",
  {
    requiredForClient: true,
    security: {
      accessKey: HttpApiSecurity.bearer
    },
    error: [Unauthorized, AccessKeyExpired, RoleTooLow, ForgedRequest, TooManyRequests, StorageUnreachable]
  }
) {
  static readonly layer: Layer.Layer<
    Authorization,
    never,
    AccessKeys | AuditLog | BrowserSessions | Devices | KnownAddresses | RateLimits
  > = Layer.effect(
    Authorization,
    Effect.suspend(() =>
      Effect.map(makeAuthorize, (authorize) =>
        Authorization.of({
          accessKey: (handler, { endpoint, group }) => {
            const required = requiredRole(endpoint)
            const route = {
              area: group.identifier,
              action: `${group.identifier}.${endpoint.identifier}`,
              isRead: isRead(endpoint),
              isAudited: !Context.get(endpoint.annotations, Unaudited),
              path: endpoint.path
            }
            const handle = (caller: Caller) => warned(Effect.provideService(handler, CurrentPrincipal, caller), caller)
            return Effect.withFiber(({ context }) => {
              const request = Context.getUnsafe(context, HttpServerRequest.HttpServerRequest)
              return authorize(request, credentialOf(request), required, route, handle)
            })
          }
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

/** The time at which the key ends, in a header of the response, when that is soon. */
const warned = <E, R>(
  handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  { expiresAt }: Caller
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R> =>
  expiresAt === null ?
    handler :
    Effect.flatMap(handler, (response) =>
      Effect.map(Clock.currentTimeMillis, (now) =>
        expiresSoon(expiresAt, now)
          ? HttpServerResponse.setHeader(response, "access-key-expires", new Date(expiresAt).toISOString())
          : response))

/** A route with the name of its operation in the audit log. */
export interface AuditedRoute extends KeyScope.ScopedRoute {
  readonly action: string
  /** False: the route changes nothing that the log is about. */
  readonly isAudited?: boolean
}

/**
 * The same for routes that stand outside of an `HttpApi`: a function that handles
 * a request if its credential admits it, and tells the audit log.
 */
export const makeAuthorize = Effect.gen(function*() {
  const accessKeys = yield* AccessKeys
  const sessions = yield* BrowserSessions
  const checkForgery = yield* ForgeryGuard.make
  const limits = yield* RateLimits
  const known = yield* KnownAddresses
  const checkScopes = yield* KeyScope.make
  const audit = yield* RequestAudit.make

  const byAccessKey = (accessKey: Redacted.Redacted, action: string) =>
    Effect.matchEffect(accessKeys.authenticate(accessKey), {
      onSuccess: (principal) =>
        Effect.succeed<Authenticated>({
          session: null,
          ended: Effect.suspend(() => accessKeys.ended(principal.accessKeyId)),
          // V8 copies a spread fast only when it stands last.
          ...principal
        }),
      onFailure: (error) => {
        if (error._tag === "StoreError" || error.named === undefined) return failWith(error)
        const code = error._tag === "AccessKeyExpired" ? Code.accessKeyExpired : Code.unauthorized
        return Effect.andThen(audit.refused(error.named, action, code), failWith(error))
      }
    })

  const bySession = (token: Redacted.Redacted) =>
    sessions.authenticate(token).pipe(
      Effect.map(({ expiresAt, principal }): Authenticated => ({
        session: { token, expiresAt },
        ended: Effect.suspend(() => sessions.ended(token)),
        ...principal
      })),
      Effect.catch(failWith)
    )

  const refuse = (message: string) => Effect.fail(RoleTooLow.make({ message }))

  const admit = (
    request: HttpServerRequest.HttpServerRequest,
    principal: Authenticated,
    required: Role,
    route: KeyScope.ScopedRoute
  ) => {
    const { addresses, role, session } = principal
    return Effect.flatMapEager(session === null ? Effect.void : checkForgery(request), () => {
      if (!roleIncludes(role, required)) {
        return refuse(`This needs the role ${required}; the access key has the role ${role}`)
      }
      if (addresses !== null) {
        const address = clientAddress(request)
        if (!admitsAddress(principal, address)) {
          return refuse(`The access key may not be used from the address ${address || "of this caller"}`)
        }
      }
      return checkScopes(principal, route)
    })
  }

  return <E, R>(
    request: HttpServerRequest.HttpServerRequest,
    { kind, secret }: Credential,
    required: Role,
    route: AuditedRoute,
    handle: (caller: Caller) => Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
  ) =>
    Effect.flatMap(kind === "access-key" ? byAccessKey(secret, route.action) : bySession(secret), (principal) => {
      known.add(countedAddress(request))
      const counted = limits.isOn("project") ? limits.check("project", principal.projectId) : Effect.void
      return Effect.flatMapEager(counted, () => {
        const admitted = admit(request, principal, required, route)
        // Most requests pass all checks without a step of their fiber.
        if (Exit.isExit(admitted) && Exit.isSuccess(admitted)) return audit.handle(principal, route, handle)
        const told = Effect.tapError(
          admitted,
          ({ code }) => statusOf(code) === 403 ? audit.refused(principal, route.action, code) : Effect.void
        )
        return Effect.andThen(told, audit.handle(principal, route, handle))
      })
    })
})

const requiredRole = (endpoint: HttpApiEndpoint.Top): Role =>
  Context.getOrUndefined(endpoint.annotations, RequiredRole) ?? (isRead(endpoint) ? "viewer" : "operator")

const isRead = ({ annotations, method }: HttpApiEndpoint.Top): boolean =>
  method === "GET" || Context.get(annotations, ReadOnly)
