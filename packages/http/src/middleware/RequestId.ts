/**
 * Request ids: each response carries one, and so does each line of the log about
 * its request.
 */
import { Effect, Random } from "effect"
import type { HttpServerRequest } from "effect/http"

const header = "x-request-id"

/** An id of the client, if it can stand in a header and in a line of the log. */
const usable = /^[A-Za-z0-9._-]{1,128}$/

/** Each byte in hex. */
const byteText = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"))

/** Returns the id of a request: the client's own, or a new one of 64 random bits. */
export type RequestId = (request: HttpServerRequest.HttpServerRequest) => string

/** Makes ids with the randomness that is provided. */
export const make: Effect.Effect<RequestId> = Effect.map(Random.Random, (random) => {
  const word = () => {
    const bits = random.nextIntUnsafe()
    return `${byteText[bits >>> 24]}${byteText[bits >>> 16 & 255]}${byteText[bits >>> 8 & 255]}${byteText[bits & 255]}`
  }
  return ({ headers }) => {
    const sent = headers[header]
    return sent !== undefined && usable.test(sent) ? sent : word() + word()
  }
})
