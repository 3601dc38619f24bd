/**
 * The token that stands for the signature of a device in messages over HTTP: when
 * it ends, and a MAC of that under the secret of the device. No node keeps it, and
 * all nodes can check it (docs/decisions/0070-bytes-of-applications.md).
 */
import { Schema } from "effect"
import { DomainError } from "../kernel/DomainError.ts"
import type { Mac } from "../kernel/Mac.ts"
import type { ProvedDevice } from "./DeviceCredentials.ts"
import { accessTokenText, tokenLength } from "./Signature.ts"

/** How long a token counts, milliseconds: seven days. */
export const accessTokenMillis = 7 * 86_400_000

/** The time of the token is over; the device needs another one. */
export class AccessTokenExpired extends DomainError<AccessTokenExpired>()(
  "AccessTokenExpired",
  {
    productKey: Schema.String,
    deviceName: Schema.String
  },
  ({ deviceName, productKey }) => `The access token of device ${productKey}/${deviceName} has ended; ask for a new one`
) {}

/** Hex digits in which a token writes its end, in Unix seconds. */
const endLength = 8

/** Returns the token of a device that ends at `end`, Unix milliseconds, rounded down to a second. */
export const makeAccessToken = (mac: Mac["Service"], secret: string, device: ProvedDevice, end: number): string => {
  const expires = Math.floor(end / 1000).toString(16).padStart(endLength, "0")
  const text = accessTokenText({ ...device, expires })
  return expires + mac.sign("hmacsha256", secret, text).slice(0, tokenLength - endLength)
}

/** Returns when a token ends, Unix milliseconds; 0: it is none. */
export const endOfAccessToken = (token: string): number =>
  /^[0-9a-f]+$/.test(token) && token.length === tokenLength ? parseInt(token.slice(0, endLength), 16) * 1000 : 0
