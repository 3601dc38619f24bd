/**
 * Texts of responses are let go when they have been written. The fiber of a request
 * ends with its response, and so does its scope: of a request that has waited, both
 * are old objects, and keep the text until the next full collection
 * (docs/decisions/0137-what-waiting-requests-keep.md).
 */
import { HttpBody, HttpServerResponse } from "effect/http"
import type { ServerResponse } from "node:http"

/** Bytes of a text that is worth it. */
const largeBytes = 16 * 1024

/** Returns a response without its text once that has been written to `nodeResponse`, if the text is large. */
export const letGo = (
  nodeResponse: ServerResponse,
  response: HttpServerResponse.HttpServerResponse
): HttpServerResponse.HttpServerResponse => {
  const { body } = response
  if (body._tag !== "Uint8Array" || body.text === undefined || body.contentLength < largeBytes) return response
  // Others may have the same body.
  const written = new HttpBody.Uint8Array(undefined, body.contentType, body.contentLength, body.text)
  nodeResponse.once("close", () => Object.assign(written, { text: "" }))
  return HttpServerResponse.setBody(response, written)
}
