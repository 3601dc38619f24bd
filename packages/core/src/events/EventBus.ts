/**
 * Carries domain events to whoever listens.
 */
import { Clock, Context, Effect, Layer, PubSub, type Scope, Stream } from "effect"
import { Identifiers } from "../kernel/Identifiers.ts"
import type { DomainEvent } from "./DomainEvent.ts"

export class EventBus extends Context.Service<EventBus, {
  /** Never waits for a listener. */
  readonly publish: (events: ReadonlyArray<DomainEvent>) => Effect.Effect<void>
  /** From the moment of subscription on, in order; a listener that is too slow loses the oldest events. */
  readonly events: Stream.Stream<DomainEvent>
  /**
   * The events after the one with this id, then all from now on, in order, until
   * the scope closes.
   * `gap`: events are missing there: the listener was too slow, or away for
   * longer than they are kept (a day, the latest 50,000 at least, until the
   * process ends). They are kept from the first listener on.
   */
  readonly since: (id?: string) => Effect.Effect<Stream.Stream<PublishedEvent | "gap">, never, Scope.Scope>
}>()("@device-cloud/core/events/EventBus") {
  static readonly layer: Layer.Layer<EventBus, never, Identifiers> = Layer.effect(EventBus, Effect.suspend(() => make))
}

/** Events that a listener may be behind before it loses the oldest ones. */
const capacity = 16_384
/** Events that are kept for listeners that come back. */
const kept = 50_000
/** How long they are kept, milliseconds. */
const keptMillis = 24 * 3_600_000

/** An event, and where a listener that has seen it goes on. */
export interface PublishedEvent {
  /** Names it, in this process. */
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
  /** Listeners that are there. */
  let listeners = 0
  /** Until when one that has left may come back, Unix milliseconds. */
  let awaitedUntil = 0
  /** The latest events, the oldest first, while somebody listens or may come back: nobody else can ask for them. */
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

  /** The number of an event of this process. */
  const numberOf = (id: string): number | undefined => {
    const [of, number = ""] = id.split("-")
    return of === process && /^\d{1,16}$/.test(number) ? Number(number) : undefined
  }

  const since = Effect.fnUntraced(function*(id?: string) {
    yield* listen
    const subscription = yield* PubSub.subscribe(pubsub)
    // In the turn in which the subscription was made.
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
