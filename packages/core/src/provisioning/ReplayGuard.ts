/**
 * Refuses messages over HTTP that come a second time
 * (docs/protocol/http-uplink.md#fresh-signatures).
 */
import { Clock, Context, Effect, Layer, Schema } from "effect"
import type { DeviceIdentity } from "../device/Device.ts"
import { DomainError } from "../kernel/DomainError.ts"
import * as Periodic from "../kernel/Periodic.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { ReplayStore } from "./ReplayStore.ts"
import { countsUntil, UplinkTolerance } from "./UplinkFreshness.ts"

/** How often ended marks are forgotten, and how many in one statement. */
const pruneEvery = "10 seconds"
const pruneLimit = 10_000

/** How long a device with too many marks has to wait, seconds. */
const fullSeconds = 60

/** The device has used this random before, and its signature may still count. */
export class RandomUsed extends DomainError<RandomUsed>()(
  "RandomUsed",
  { random: Schema.String },
  ({ random }) => `The random ${random} was used a short time ago; send another one`
) {}

/** The device has used more randoms in a few minutes than are kept. */
export class TooManyRandoms extends DomainError<TooManyRandoms>()(
  "TooManyRandoms",
  {
    /** Seconds until the device may try again. */
    retryAfter: Schema.Int
  },
  ({ retryAfter }) => `The device has used too many randoms within a few minutes; try again in ${retryAfter} s`
) {}

export class ReplayGuard extends Context.Service<ReplayGuard, {
  /**
   * Marks the random as used by the device for as long as its signature counts: a
   * signature with `timestamp` until that is too old, any other for five minutes.
   * Fails with `RandomUsed` if it is marked already, on whatever node and also
   * after a restart.
   */
  readonly use: (
    device: DeviceIdentity,
    random: string,
    timestamp: string | undefined
  ) => Effect.Effect<void, RandomUsed | TooManyRandoms | StoreError>
}>()("@device-cloud/core/provisioning/ReplayGuard") {
  static readonly layer: Layer.Layer<ReplayGuard, never, ReplayStore> = Layer.effect(
    ReplayGuard,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function*() {
  const store = yield* ReplayStore
  const tolerance = yield* UplinkTolerance

  yield* Clock.currentTimeMillis.pipe(
    Effect.flatMap((now) => store.prune({ endedBefore: now, limit: pruneLimit })),
    Effect.repeat({ while: (pruned) => pruned === pruneLimit }),
    Effect.catch((error) => Effect.logWarning("Used randoms could not be forgotten", error)),
    Periodic.every(pruneEvery)
  )

  return ReplayGuard.of({
    use: Effect.fnUntraced(function*({ deviceId }, random, timestamp) {
      const at = yield* Clock.currentTimeMillis
      switch (yield* store.use({ deviceId, random, at, until: countsUntil(timestamp, at, tolerance) })) {
        case "used":
          return yield* new RandomUsed({ random })
        case "full":
          return yield* new TooManyRandoms({ retryAfter: fullSeconds })
      }
    })
  })
})
