/**
 * Refuses messages over HTTP that come a second time
 * (docs/protocol/http-uplink.md).
 */
import { Clock, Context, Effect, Layer, Schema } from "effect"
import type { DeviceIdentity } from "../device/Device.ts"
import { IdempotencyStore } from "../idempotency/IdempotencyStore.ts"
import type { StoreError } from "../kernel/StoreError.ts"

/** How long a random counts as used, milliseconds. */
const ttl = 300_000

/** The device has used this random within the last five minutes. */
export class RandomUsed extends Schema.TaggedError<RandomUsed>()("RandomUsed", { random: Schema.String }) {}

export class ReplayGuard extends Context.Service<ReplayGuard, {
  /** Marks the random as used by the device for five minutes. Fails with `RandomUsed` if it is marked already. */
  readonly use: (device: DeviceIdentity, random: string) => Effect.Effect<void, RandomUsed | StoreError>
}>()("@device-cloud/core/provisioning/ReplayGuard") {
  static readonly layer: Layer.Layer<ReplayGuard, never, IdempotencyStore> = Layer.effect(
    ReplayGuard,
    Effect.map(IdempotencyStore, (store) =>
      ReplayGuard.of({
        use: Effect.fnUntraced(function*({ deviceId, projectId }, random) {
          const at = yield* Clock.currentTimeMillis
          const expiredBefore = at - ttl
          const claim = yield* store.claim({
            projectId,
            // The space keeps this key apart from those of API clients, which have none.
            key: `uplink ${deviceId} ${random}`,
            fingerprint: "",
            at,
            claimExpiredBefore: expiredBefore,
            answerExpiredBefore: expiredBefore
          })
          if (claim._tag !== "Claimed") return yield* new RandomUsed({ random })
        })
      }))
  )
}
