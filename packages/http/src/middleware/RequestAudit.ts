/**
 * The audit log of requests (docs/api/audit.md): changes, secrets that a response
 * shows, and refusals.
 */
import { AuditLog, type AuditResource, type AuditSubject, type Principal, StoreError } from "@device-cloud/core"
import { Cause, Context, Effect, Exit, Predicate, References } from "effect"
import { HttpRouter, HttpServerError, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { Code, statusOf } from "../Code.ts"
import { failWith } from "../DomainFailures.ts"
import type { StorageUnreachable } from "../Failure.ts"
import { type Authenticated, type Caller, makeCaller } from "./Caller.ts"
import { clientAddress } from "./ClientAddress.ts"

/** The key that a request came with, as the log names it. */
type Key = Pick<Principal, "accessKeyId" | "accessKeyName" | "projectId">

/** What the log is told of a route. */
interface AuditedRoute {
  readonly action: string
  /** Whether it changes nothing. */
  readonly isRead: boolean
  /** False: what it changes is not what the log is about. */
  readonly isAudited?: boolean
}

/** Makes the two functions that tell the audit log of requests. */
export const make = Effect.gen(function*() {
  const log = yield* AuditLog

  /** Notes that a request with a known key was refused before its handler ran. */
  const refused = (key: Key, action: string, code: Code): Effect.Effect<void> =>
    Effect.withFiber((fiber) => log.refused(subjectOf(fiber.context, key, action), code))

  /**
   * Handles a request of a principal. A change stores its entry with its first
   * write. A response that shows a secret waits until its entry is stored.
   */
  const handle = <E, R>(
    principal: Authenticated,
    { action, isAudited, isRead }: AuditedRoute,
    run: (caller: Caller) => Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
  ): Effect.Effect<HttpServerResponse.HttpServerResponse, E | typeof StorageUnreachable.Type, R> =>
    Effect.withFiber((fiber) => {
      if (!isRead && isAudited !== false) {
        const caller = makeCaller(principal, () => undefined)
        return orUnreachable<HttpServerResponse.HttpServerResponse, E, R>(
          log.carryOut(subjectOf(fiber.context, principal, action), run(caller), resultOf)
        )
      }
      let isShown = false
      const caller = makeCaller(principal, () => {
        isShown = true
      })
      return Effect.matchCauseEffect(run(caller), {
        onSuccess: (response) =>
          isShown
            ? Effect.as(
              orUnreachable<void, never, never>(log.secretsRead(subjectOf(fiber.context, principal, action))),
              response
            )
            : Effect.succeed(response),
        onFailure: (cause) => {
          const code = resultOf(Exit.failCause(cause))
          return statusOf(code) === 403
            ? Effect.andThen(log.refused(subjectOf(fiber.context, principal, action), code), Effect.failCause(cause))
            : Effect.failCause(cause)
        }
      })
    })

  return { refused, handle }
})

const orUnreachable = <A, E, R>(
  effect: Effect.Effect<A, E | StoreError, R>
): Effect.Effect<A, E | typeof StorageUnreachable.Type, R> =>
  effect.pipe(
    Effect.catch((error): Effect.Effect<never, E | typeof StorageUnreachable.Type> =>
      error instanceof StoreError ? failWith(error) : Effect.fail(error as E)
    )
  )

const subjectOf = (
  context: Context.Context<never>,
  { accessKeyId, accessKeyName, projectId }: Key,
  action: string
): AuditSubject => ({
  projectId,
  keyId: accessKeyId,
  keyName: accessKeyName,
  action,
  resource: resourceOf(Context.getUnsafe(context, HttpRouter.RouteContext)),
  address: clientAddress(Context.getUnsafe(context, HttpServerRequest.HttpServerRequest)),
  requestId: String(Context.get(context, References.CurrentLogAnnotations)["request_id"] ?? "")
})

/** From parameters of paths to the kinds that they name. The first that a path has is what a request is about. */
const kinds = Object.entries({
  device_id: "device",
  device_name: "device",
  batch_id: "batch",
  firmware_id: "firmware",
  task_id: "task",
  job_id: "job",
  subscription_id: "subscription",
  network_key: "mesh-network",
  object_id: "object",
  project_id: "project",
  id: "scene",
  product_key: "product"
})

/** Parameters whose value is a secret. */
const secretParameters = new Set(["network_key", "object_id"])

const maxLength = 128

const resourceOf = ({ params, route }: HttpRouter.RouteContext["Service"]): AuditResource => {
  for (const [parameter, kind] of kinds) {
    const value = params[parameter]
    if (value === undefined) continue
    return {
      kind: route.path.includes("/access-keys/") ? "access-key" : kind,
      id: storable(secretParameters.has(parameter) ? `${value.slice(0, 8)}…` : value.slice(0, maxLength))
    }
  }
  return { kind: "", id: "" }
}

/** A path that was refused may hold characters that cannot be stored or would break a line of the export. */
const storable = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cs}]/gu, "�")

/** The code of a response or a failure; 0: success. */
const resultOf = <E>(exit: Exit.Exit<HttpServerResponse.HttpServerResponse, E>): number => {
  if (Exit.isSuccess(exit)) return exit.value.status < 400 ? 0 : exit.value.status * 100
  if (Cause.hasInterruptsOnly(exit.cause)) return Code.storageUnreachable
  const squashed = Cause.squash(exit.cause)
  // The builder of the API wraps what handlers fail with.
  const error = Predicate.hasProperty(squashed, "error") ? squashed.error : squashed
  if (Predicate.hasProperty(error, "code") && typeof error.code === "number") return error.code
  if (HttpApiError.HttpApiSchemaError.is(error)) return Code.invalidParameter
  if (HttpServerError.isHttpServerError(error) && error.reason._tag === "RequestParseError") {
    return error.reason.reason === "BodyTooLarge" ? Code.tooLarge : Code.bodyUnreadable
  }
  return Code.internal
}
