/**
 * Changes the progress of subscriptions for all workers of this node: what many
 * workers do at the same time is one call of the store.
 */
import { Context, Effect, Layer, type Option } from "effect"
import * as Batcher from "../kernel/Batcher.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { type SubscriptionModification, SubscriptionStore } from "./SubscriptionStore.ts"

export class SubscriptionSteps extends Context.Service<SubscriptionSteps, {
  /**
   * Takes a step of a subscription and returns its result; none: there is no such
   * subscription. Steps of one project are taken in the order of the calls.
   */
  readonly take: <A>(modification: SubscriptionModification<A>) => Effect.Effect<Option.Option<A>, StoreError>
}>()("@device-cloud/core/subscription/SubscriptionSteps") {
  static readonly layer: Layer.Layer<SubscriptionSteps, never, SubscriptionStore> = Layer.effect(
    SubscriptionSteps,
    Effect.suspend(() => make)
  )
}

/** Steps that may wait. */
const capacity = 8192
/** Steps that are taken together, at most: each has a row of 2 KB. */
const maxBatch = 100

const make = Effect.gen(function*() {
  const store = yield* SubscriptionStore
  const batcher = yield* Batcher.make<SubscriptionModification<unknown>, Option.Option<unknown>, StoreError>({
    capacity,
    maxBatch,
    keyOf: ({ projectId }) => projectId,
    commit: store.modify,
    isolates: ({ retryable }) => !retryable
  })

  return SubscriptionSteps.of({
    take: <A>(modification: SubscriptionModification<A>) =>
      batcher.submit(modification) as Effect.Effect<Option.Option<A>, StoreError>
  })
})
