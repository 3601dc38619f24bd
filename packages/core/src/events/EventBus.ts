/**
 * Carries domain events to listeners in this process.
 */
import { Clock, Context, Effect, Layer, PubSub, type Scope, Stream } from "effect"
import { Identifiers } from "../kernel/Identifiers.ts"
import type { DomainEvent } from "./DomainEvent.ts"

export class EventBus extends Context.Service<EventBus, {
  /** Publishes events. Never waits for a listener. */
  readonly publish: (events: ReadonlyArray<DomainEvent>) => Effect.Effect<void>
  /**
   * Emits the events from the subscription on, in order. A listener that is more
   * than 16,384 events behind loses the oldest of them.
   */
  readonly events: Stream.Stream<DomainEvent>
  /**
   * Returns a stream of the events after the one with this id (all from now on if
   * absent), in order, until the scope closes. The stream emits `gap` where events
   * are missing: the listener was too slow or away for too long. From the first
   * listener on, the process keeps the events of the last 24 hours, at least the
   * latest 50,000 of them (docs/decisions/0039-events-kept-for-listeners.md).
   */
  readonly since: (id?: string) => Effect.Effect<Stream.Stream<PublishedEvent | "gap">, never, Scope.Scope>
}>()("@device-cloud/core/events/EventBus") {
  static readonly layer: Layer.Layer<EventBus, never, Identifiers> = Layer.effect(EventBus, Effect.suspend(() => make))
}

/** How many events a listener may be behind before it loses the oldest ones. */
const capacity = 16_384
/** Events that are kept for listeners that come back, at least. */
const kept = 50_000
/** How long events are kept, milliseconds. */
const keptMillis = 24 * 3_600_000

/** An event with the id from which a listener goes on that has seen the event. */
export interface PublishedEvent {
  /** Unique; known to this process only. */
  readonly id: string
  readonly event: DomainEvent
}

interface Numbered {
  readonly number: number
  readonly event: DomainEvent
}

const make = Effect.gen(function*() {
  const pubsub = yield* Effect.acquireRelease(PubSub.sliding<Numbered>(capacity), PubSub.shutdown)
  const process = yield* (yield* Identifiers).nodeId
  let lastNumber = 0
  /** Listeners of `since` that are connected. */
  let listeners = 0
  /** Until when a listener that has left may come back, Unix milliseconds. */
  let awaitedUntil = 0
  /** The latest events, the oldest first; empty unless a listener is connected or may come back. */
  let log: Array<Numbered> = []

  const publish = (events: ReadonlyArray<DomainEvent>) =>
    Effect.clockWith((clock) => {
      const numbered = events.map((event): Numbered => ({ number: ++lastNumber, event }))
      if (listeners > 0 || clock.currentTimeMillisUnsafe() < awaitedUntil) {
        for (const one of numbered) log.push(one)
        if (log.length > 2 * kept) log = log.slice(-kept)
      } else log = []
      return PubSub.publishAll(pubsub, numbered)
    })

  const listen = Effect.acquireRelease(
    Effect.sync(() => {
      listeners++
    }),
    () =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        listeners--
        awaitedUntil = now + keptMillis
      })
  )

  /** Returns the number of an event of this process; undefined for any other id. */
  const numberOf = (id: string): number | undefined => {
    const [of, number = ""] = id.split("-")
    return of === process && /^\d{1,16}$/.test(number) ? Number(number) : undefined
  }

  const since = Effect.fnUntraced(function*(id?: string) {
    yield* listen
    const subscription = yield* PubSub.subscribe(pubsub)
    // No event is published between the subscription and the next lines: they run in one turn of the event loop.
    const first = id === undefined ? lastNumber : numberOf(id) ?? -1
    const oldestKept = (log.at(-1)?.event.at ?? 0) - keptMillis
    const missed = log.filter(({ event: { at }, number }) => number > first && at > oldestKept)
    const isGap = first < 0 || (first < lastNumber && missed[0]?.number !== first + 1)
    let last = first
    const inOrder = ({ event, number }: Numbered): ReadonlyArray<PublishedEvent | "gap"> => {
      if (number <= last) return []
      const lost = number > last + 1 && last !== first
      last = number
      const published: PublishedEvent = { id: `${process}-${number}`, event }
      return lost ? ["gap", published] : [published]
    }
    return Stream.concat(
      isGap ? Stream.succeed<"gap">("gap") : Stream.empty,
      Stream.concat(Stream.fromIterable(missed), Stream.fromSubscription(subscription)).pipe(
        Stream.flatMap((numbered) => Stream.fromIterable(inOrder(numbered)))
      )
    )
  })

  return EventBus.of({
    publish,
    events: Stream.map(Stream.fromPubSub(pubsub), ({ event }) => event),
    since
  })
})
