/**
 * Says what is wrong with a request that does not fit the definition of its
 * endpoint.
 */
import { inputIssues } from "@device-cloud/core"
import { Effect, type Layer } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiMiddleware } from "effect/http-api"
import { Code, failure, failureSchemas, invalidParameter } from "../Failure.ts"

export class RequestCheck extends HttpApiMiddleware.Service<RequestCheck>()("@device-cloud/http/RequestCheck", {
  error: failureSchemas
}) {
  static readonly layer: Layer.Layer<RequestCheck> = HttpApiMiddleware.layerSchemaErrorTransform(
    RequestCheck,
    Effect.fnUntraced(function*(error) {
      // An answer of ours that does not fit its own definition is a bug.
      if (error.kind === "Body" || error.kind === "ResponseHeaders") return yield* Effect.die(error)
      const issues = inputIssues(error.cause)
      if (error.kind === "Payload") {
        const { headers } = yield* HttpServerRequest.HttpServerRequest
        const empty = headers["transfer-encoding"] === undefined && Number(headers["content-length"] ?? 0) === 0
        if (empty) return yield* Effect.fail(failure(Code.bodyUnreadable, "The body is empty; send a JSON object"))
        if (issues.some(({ message }) => message === "Expected a valid JSON body")) {
          return yield* Effect.fail(failure(Code.bodyUnreadable, "The body is not valid JSON"))
        }
      }
      return yield* Effect.fail(invalidParameter(issues))
    })
  )
}
