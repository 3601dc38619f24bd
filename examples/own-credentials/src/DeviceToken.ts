/**
 * Tokens that a service of the application gives to devices. A token names one
 * device and expires; the application's key signs it.
 */
import {
  DeviceName,
  type DeviceProver,
  equalInConstantTime,
  Mac,
  type PresentedCredentials,
  ProductKey,
  ProofRefused,
  type ProvedDevice
} from "@device-cloud/core"
import { Clock, Effect, Option, Redacted, Result, Schema } from "effect"
import { Base64Url } from "effect/encoding"

/** Starts every token, so that the prover knows which texts are tokens. */
const prefix = "device-token"

const Claims = Schema.Struct({
  productKey: ProductKey,
  deviceName: DeviceName,
  /** Unix milliseconds. */
  expiresAt: Schema.Finite
})

const encodeClaims = Schema.encodeSync(Schema.fromJsonString(Claims))
const decodeClaims = Schema.decodeUnknownOption(Schema.fromJsonString(Claims))

const refuse = (reason: string) => Effect.fail(new ProofRefused({ reason }))

/** Returns a token for a device. `expiresAt`: Unix milliseconds. */
export const issue = Effect.fnUntraced(function*(
  key: Redacted.Redacted,
  { deviceName, productKey }: ProvedDevice,
  expiresAt: number
) {
  const signed = `${prefix}.${Base64Url.encode(encodeClaims({ productKey, deviceName, expiresAt }))}`
  return `${signed}.${(yield* Mac).sign("hmacsha256", Redacted.value(key), signed)}`
})

/** A device sends its token as the password of CONNECT, or as `Authorization: Bearer …`. */
const tokenIn = ({ authorization, password }: PresentedCredentials): string | undefined =>
  [password, authorization?.replace(/^Bearer /, "")].find((text) => text?.startsWith(`${prefix}.`))

/** Makes the prover of the tokens that were signed with `key`. */
export const prover = (key: Redacted.Redacted): Effect.Effect<DeviceProver, never, Mac> =>
  Effect.map(Mac, (mac): DeviceProver =>
    Effect.fnUntraced(function*(presented) {
      const token = tokenIn(presented)
      if (token === undefined) return Option.none()
      const end = token.lastIndexOf(".")
      const signed = token.slice(0, end)
      if (!equalInConstantTime(mac.sign("hmacsha256", Redacted.value(key), signed), token.slice(end + 1))) {
        return yield* refuse("the token was not signed with our key")
      }
      const claims = Option.flatMap(
        Result.getSuccess(Base64Url.decodeString(signed.slice(prefix.length + 1))),
        decodeClaims
      )
      if (Option.isNone(claims)) return yield* refuse("the token names no device")
      if (claims.value.expiresAt <= (yield* Clock.currentTimeMillis)) return yield* refuse("the token has expired")
      return claims
    }))
