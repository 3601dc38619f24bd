/**
 * Refuses devices and addresses that keep sending wrong signatures
 * (docs/protocol/signatures.md).
 */
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { RateWindow } from "../kernel/RateWindow.ts"

export class SignatureGuard extends Context.Service<SignatureGuard, {
  /**
   * Runs a check of a signature and counts its failures for which `isWrong` is
   * true. Fails with `TooManyWrongSignatures` without running the check if the
   * device or the address has failed ten times within a minute. Each node counts
   * for itself.
   */
  readonly guard: <A, E, R>(
    suspect: Suspect,
    isWrong: (error: E) => boolean,
    check: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | TooManyWrongSignatures, R>
}>()("@device-cloud/core/provisioning/SignatureGuard") {
  static readonly layer: Layer.Layer<SignatureGuard> = Layer.effect(SignatureGuard, Effect.suspend(() => make))
}

/** Wrong signatures in {@link windowMillis}. */
const limit = 10
const windowMillis = 60_000
/** Devices and addresses that are counted; above this, those that failed longest ago are forgotten. */
const capacity = 100_000

/** Too many wrong signatures for this device or from this address. */
export class TooManyWrongSignatures extends Schema.TaggedError<TooManyWrongSignatures>()("TooManyWrongSignatures", {
  /** Seconds until the caller may try again. */
  retryAfter: Schema.Int
}) {}

/** Who presents a signature: the name of a device, for example product key and device name, and an address. */
export interface Suspect {
  readonly name: string
  readonly address: string
}

const make = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const wrong = new RateWindow({ limit, window: windowMillis, capacity })

  const guard = <A, E, R>(
    { address, name }: Suspect,
    isWrong: (error: E) => boolean,
    check: Effect.Effect<A, E, R>
  ): Effect.Effect<A, E | TooManyWrongSignatures, R> =>
    Effect.suspend((): Effect.Effect<A, E | TooManyWrongSignatures, R> => {
      const now = clock.currentTimeMillisUnsafe()
      const device = `device ${name}`
      const origin = `address ${address}`
      const until = Math.max(wrong.fullUntil(device), wrong.fullUntil(origin))
      if (until > now) return Effect.fail(new TooManyWrongSignatures({ retryAfter: Math.ceil((until - now) / 1000) }))
      return Effect.tapError(check, (error) =>
        Effect.sync(() => {
          if (!isWrong(error)) return
          const failedAt = clock.currentTimeMillisUnsafe()
          wrong.hit(device, failedAt)
          wrong.hit(origin, failedAt)
        }))
    })

  return SignatureGuard.of({ guard })
})
