/**
 * Says what is wrong with a request that does not fit the definition of its
 * endpoint. It also declares what any route can fail with because of the
 * middlewares around all routes.
 */
import { inputIssues } from "@device-cloud/core"
import { Effect, type Layer } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiMiddleware } from "effect/http-api"
import { BodyUnreadable, InvalidParameter, invalidParameter } from "../Failure.ts"
import * as ErrorEnvelope from "./ErrorEnvelope.ts"

/** Whether the body has no text. A byte order mark is none; to make text of a large body takes milliseconds. */
const isEmpty = (request: HttpServerRequest.HttpServerRequest) =>
  Effect.match(request.arrayBuffer, {
    onSuccess: (bytes) => new TextDecoder().decode(bytes.slice(0, 4)) === "",
    onFailure: () => false
  })

/** Goes on an API, outside of all other middlewares. */
export class RequestCheck extends HttpApiMiddleware.Service<RequestCheck>()("@device-cloud/http/RequestCheck", {
  error: [BodyUnreadable, InvalidParameter, ...ErrorEnvelope.failures]
}) {
  static readonly layer: Layer.Layer<RequestCheck> = HttpApiMiddleware.layerSchemaErrorTransform(
    RequestCheck,
    Effect.fnUntraced(function*(error) {
      // A response of ours that does not fit its own definition is a bug.
      if (error.kind === "Body" || error.kind === "ResponseHeaders") return yield* Effect.die(error)
      const issues = inputIssues(error.cause)
      if (error.kind === "Payload") {
        // The endpoint has read the body, and a request keeps its bytes. A request that was made in this process has
        // no header that says how many there are.
        const request = yield* HttpServerRequest.HttpServerRequest
        if (yield* isEmpty(request)) {
          return yield* Effect.fail(BodyUnreadable.make({ message: "The body is empty; send a JSON object" }))
        }
        if (issues.some(({ message }) => message === "Expected a valid JSON body")) {
          return yield* Effect.fail(BodyUnreadable.make({
            message: request.headers["content-encoding"] === undefined
              ? "The body is not valid JSON"
              : "The body is not valid JSON; send it without Content-Encoding"
          }))
        }
      }
      return yield* Effect.fail(invalidParameter(issues))
    })
  )
}
