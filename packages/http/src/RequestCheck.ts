/**
 * Says what is wrong with a request that does not fit the definition of its
 * endpoint.
 */
import { inputIssues } from "@device-cloud/core"
import { Effect, type Layer } from "effect"
import { HttpApiMiddleware } from "effect/http-api"
import { Code, failure, failureSchemas, invalidParameter } from "./Failure.ts"

export class RequestCheck extends HttpApiMiddleware.Service<RequestCheck>()("@device-cloud/http/RequestCheck", {
  error: failureSchemas
}) {
  static readonly layer: Layer.Layer<RequestCheck> = HttpApiMiddleware.layerSchemaErrorTransform(
    RequestCheck,
    (error) => {
      // An answer of ours that does not fit its own definition is a bug.
      if (error.kind === "Body" || error.kind === "ResponseHeaders") return Effect.die(error)
      const issues = inputIssues(error.cause)
      const notJson = error.kind === "Payload" && issues.some(({ message }) => message === "Expected a valid JSON body")
      return Effect.fail(
        notJson ? failure(Code.bodyUnreadable, "The body is not valid JSON") : invalidParameter(issues)
      )
    }
  )
}
