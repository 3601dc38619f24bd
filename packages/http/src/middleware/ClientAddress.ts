/**
 * Where a request comes from.
 */
import { Option } from "effect"
import type { HttpServerRequest } from "effect/http"

/** The address of the client; IPv4 without the prefix that it has on a socket for both versions. Empty: not known. */
export const clientAddress = ({ remoteAddress }: HttpServerRequest.HttpServerRequest): string =>
  Option.getOrElse(remoteAddress, () => "").replace(/^::ffff:/, "")
