/**
 * Carries domain events to listeners in this process.
 */
import { Clock, Context, Effect, Layer, PubSub, type Scope, Stream } from "effect"
import { Identifiers } from "../kernel/Identifiers.ts"
import type { ProjectId } from "../project/Project.ts"
import { type DomainEvent, projectOf } from "./DomainEvent.ts"

export class EventBus extends Context.Service<EventBus, {
  /** Publishes events. Never waits for a listener. */
  readonly publish: (events: ReadonlyArray<DomainEvent>) => Effect.Effect<void>
  /**
   * Emits the events of all projects from the subscription on, in order. A listener
   * that is more than 16,384 events behind loses the oldest of them.
   */
  readonly events: Stream.Stream<DomainEvent>
  /**
   * Calls `hear` with each event of the project from now on, in order, until the
   * scope closes. `hear` runs while the event is published: it returns at once and
   * does not throw. Events of other projects cost the listener nothing.
   */
  readonly follow: (
    projectId: ProjectId,
    hear: (published: PublishedEvent) => void
  ) => Effect.Effect<void, never, Scope.Scope>
  /**
   * Returns what the project's listener has missed that has seen the event of this
   * id last. From the first listener of `follow` on, the process keeps the events
   * of the last 24 hours, at least the latest 50,000 of them
   * (docs/decisions/0039-events-kept-for-listeners.md).
   */
  readonly since: (projectId: ProjectId, id: string) => MissedEvents
}>()("@device-cloud/core/events/EventBus") {
  static readonly layer: Layer.Layer<EventBus, never, Identifiers> = Layer.effect(EventBus, Effect.suspend(() => make))
}

/** How many events a listener of `events` may be behind before it loses the oldest ones. */
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

/** What a listener has missed. */
export interface MissedEvents {
  /** In order. */
  readonly events: ReadonlyArray<PublishedEvent>
  /** Whether events before these are missing: they are no longer kept, or the id is not of this process. */
  readonly isGap: boolean
}

type Hear = (published: PublishedEvent) => void

const make = Effect.gen(function*() {
  const pubsub = yield* Effect.acquireRelease(PubSub.sliding<DomainEvent>(capacity), PubSub.shutdown)
  const process = yield* (yield* Identifiers).nodeId
  const listeners = new Map<ProjectId, Set<Hear>>()
  let lastNumber = 0
  /** Until when a listener that has left may come back, Unix milliseconds. */
  let awaitedUntil = 0
  /** The latest events, the oldest first, without gaps; empty unless somebody listens or may come back. */
  let log: Array<PublishedEvent> = []

  const publish = (events: ReadonlyArray<DomainEvent>) =>
    Effect.clockWith((clock) => {
      if (listeners.size === 0 && clock.currentTimeMillisUnsafe() >= awaitedUntil) {
        log = []
        lastNumber += events.length
        return PubSub.publishAll(pubsub, events)
      }
      for (const event of events) {
        const published: PublishedEvent = { id: `${process}-${++lastNumber}`, event }
        log.push(published)
        const ofProject = listeners.get(projectOf(event))
        if (ofProject !== undefined) { for (const hear of ofProject) hear(published) }
      }
      if (log.length > 2 * kept) log = log.slice(-kept)
      return PubSub.publishAll(pubsub, events)
    })

  const follow = (projectId: ProjectId, hear: Hear) =>
    Effect.asVoid(Effect.acquireRelease(
      Effect.sync(() => {
        const ofProject = listeners.get(projectId) ?? new Set()
        listeners.set(projectId, ofProject.add(hear))
      }),
      () =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          const ofProject = listeners.get(projectId)
          ofProject?.delete(hear)
          if (ofProject?.size === 0) listeners.delete(projectId)
          awaitedUntil = now + keptMillis
        })
    ))

  /** Returns the number of an event of this process; undefined for any other id. */
  const numberOf = (id: string): number | undefined => {
    const [of, number = ""] = id.split("-")
    return of === process && /^\d{1,16}$/.test(number) ? Number(number) : undefined
  }

  const since = (projectId: ProjectId, id: string): MissedEvents => {
    const seen = numberOf(id)
    /** The number of the first event of the log. */
    const first = lastNumber - log.length + 1
    const oldestKept = (log.at(-1)?.event.at ?? 0) - keptMillis
    let start = Math.max((seen ?? 0) + 1 - first, 0)
    while (start < log.length && log[start]!.event.at <= oldestKept) start++
    return {
      events: log.slice(start).filter(({ event }) => projectOf(event) === projectId),
      isGap: seen === undefined || (seen < lastNumber && first + start > seen + 1)
    }
  }

  return EventBus.of({ publish, events: Stream.fromPubSub(pubsub), follow, since })
})
