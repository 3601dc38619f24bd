/**
 * Carries domain events to whoever listens.
 */
import { Context, Effect, Layer, PubSub, Stream } from "effect"
import type { DomainEvent } from "./DomainEvent.ts"

/** Events that a listener may be behind before it loses the oldest ones. */
const capacity = 16_384

const make = Effect.gen(function*() {
  const pubsub = yield* Effect.acquireRelease(PubSub.sliding<DomainEvent>(capacity), PubSub.shutdown)
  return EventBus.of({
    publish: (events) => PubSub.publishAll(pubsub, events),
    events: Stream.fromPubSub(pubsub)
  })
})

export class EventBus extends Context.Service<EventBus, {
  /** Never waits for a listener. */
  readonly publish: (events: ReadonlyArray<DomainEvent>) => Effect.Effect<void>
  /** From the moment of subscription on, in order; a listener that is too slow loses the oldest events. */
  readonly events: Stream.Stream<DomainEvent>
}>()("@device-cloud/core/event/EventBus") {
  static readonly layer: Layer.Layer<EventBus> = Layer.effect(EventBus, make)
}
