/**
 * How large the body of a request may be, and how long it may take to arrive, by
 * the route that the router finds for it: a path can be written in many ways.
 */
import { ByteSize } from "effect"

/** Bodies that are not streamed. */
const usual = ByteSize.mebibytes(2)

/** Requests by which devices register, and devices and browsers sign in: anyone can send one. */
const signIn = ByteSize.kibibytes(16)

/** A message of a device, as on MQTT. */
export const uplinkSize = ByteSize.kibibytes(256)

/** Bytes that a body may have, unless it is streamed. `route`: the path as it is declared; undefined: there is none. */
export const maxSizeOf = (route: string | undefined): ByteSize.ByteSize => {
  if (route === undefined) return usual
  if (/\/auth(?:\/|$)|\/browser-sessions$/.test(route)) return signIn
  return /\/thing-uplink$|^\/topic\//.test(route) ? uplinkSize : usual
}

/** Whether a route takes uploads, which take as long as the network of the client needs. */
export const isUpload = (route: string | undefined): boolean => route !== undefined && /\/oss(?:\/|$)/.test(route)
