/**
 * Keeps what devices say and are told over HTTP off ways where others can read
 * along (docs/decisions/0068-devices-over-plain-http.md).
 */
import type { HttpServerRequest } from "effect/http"
import { Code } from "../Code.ts"
import { failure } from "../Failure.ts"
import { clientAddress, isSecureWay } from "./ClientAddress.ts"

/** The device speaks over plain HTTP from afar. */
export const SecureWayNeeded = failure("SecureWayNeeded", Code.secureWayNeeded, "Devices must use HTTPS")

/** Routes of registrations, tokens and messages of devices. */
const deviceRoutes = /^(?:\/openapi\/v1)?\/(?:auth\/(?:register|generator)\/device|thing-uplink|auth|topic\/\*)$/

/**
 * Returns the refusal of a request of a device that others can read on its way;
 * undefined: it may pass. `route`: the path as it is declared; undefined: there is none.
 */
export const refusalOf = (
  request: HttpServerRequest.HttpServerRequest,
  route: string | undefined
): typeof SecureWayNeeded.Type | undefined => {
  if (route === undefined || !deviceRoutes.test(route)) return undefined
  if (isSecureWay(request) || isLoopback(clientAddress(request))) return undefined
  return SecureWayNeeded.make({
    message: "Devices must use HTTPS: others can read plain HTTP on its way. Behind a proxy with TLS, the server " +
      "must trust its X-Forwarded-Proto"
  })
}

const isLoopback = (address: string): boolean => /^127\.|^::1$/.test(address)
