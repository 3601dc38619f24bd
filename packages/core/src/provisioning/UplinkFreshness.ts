/**
 * How long the signature of a message over HTTP counts
 * (docs/protocol/http-uplink.md#fresh-signatures).
 */
import { Context, Schema } from "effect"
import { DomainError } from "../kernel/DomainError.ts"
import type { UplinkSignature } from "../product/Product.ts"

/**
 * How far the `timestamp` of a message over HTTP may be from the clock of the
 * cloud, milliseconds. Default: five minutes.
 */
export const UplinkTolerance: Context.Reference<number> = Context.Reference(
  "@device-cloud/core/provisioning/UplinkTolerance",
  { defaultValue: () => 300_000 }
)

/** How long a random counts as used if its signature has no timestamp and thus no end, milliseconds. */
const randomMillis = 300_000

/** The signature is right, but does not show that the message is new and whole. */
export class UnfreshSignature extends DomainError<UnfreshSignature>()(
  "UnfreshSignature",
  {
    field: Schema.Literals(["timestamp", "contentSha256"]),
    /** What was expected of the field. */
    expected: Schema.String
  },
  ({ expected, field }) => `${field}: ${expected}`
) {}

/** What a signature covers beside the names and the random. */
export interface SignedWith {
  /** Unix milliseconds in decimal digits. */
  readonly timestamp?: string | undefined
  /** SHA-256 of the bytes of the body in hex, of either case. */
  readonly contentSha256?: string | undefined
}

/** Why a right signature does not count; undefined: it does. `now`: Unix milliseconds. */
export const refuseUnfresh = (
  required: UplinkSignature,
  { contentSha256, timestamp }: SignedWith,
  now: number,
  tolerance: number
): UnfreshSignature | undefined => {
  if (required === "timestamped" && timestamp === undefined) {
    return new UnfreshSignature({ field: "timestamp", expected: "the product requires it" })
  }
  if (required === "timestamped" && contentSha256 === undefined) {
    return new UnfreshSignature({ field: "contentSha256", expected: "the product requires it" })
  }
  if (timestamp === undefined || Math.abs(Number(timestamp) - now) <= tolerance) return undefined
  return new UnfreshSignature({
    field: "timestamp",
    expected: `at most ${Math.floor(tolerance / 1000)} seconds from ${now}, the clock of the cloud`
  })
}

/** Until when a signature that counts at `now` may be shown again; with a timestamp it does not count after it. */
export const countsUntil = (timestamp: string | undefined, now: number, tolerance: number): number =>
  timestamp === undefined ? now + randomMillis : Number(timestamp) + tolerance
