/**
 * The loop over the events of a subscription: it reads, waits, acknowledges and
 * keeps its part while an event is dealt with.
 */
import { cursorAt, type EventDocument, type eventTypes, feedStart } from "@device-cloud/core"
import { Effect, Schedule, Stream } from "effect"

/** What has happened (docs/api/events.md). `type` says what `data` has. */
export type CloudEvent = {
  readonly [Kind in keyof typeof eventTypes]: {
    /** The same if the event comes again. */
    readonly id: string
    readonly type: (typeof eventTypes)[Kind]
    readonly data: EventDocument<Kind>
  }
}[keyof typeof eventTypes]

/** How a subscription is read. */
export interface SubscribeOptions {
  /** The name of this worker, 1 to 64 characters, unique among those that share the subscription. Default `default`. */
  readonly worker?: string
  /** Events that are read at once, 1 to 1,000. Default 100. */
  readonly limit?: number
  /** Called when events before the next one were dropped before they were read. */
  readonly missed?: () => void
}

/** What one read has returned. */
export interface ReadEvents {
  readonly events: ReadonlyArray<CloudEvent>
  /** Acknowledges these events. */
  readonly cursor: string
  /** Events before these were dropped before they were read. */
  readonly isGap: boolean
}

/** A worker of a subscription. */
export interface EventSource<E> {
  /** The next events after what is acknowledged; waits some seconds for the first. */
  readonly read: Effect.Effect<ReadEvents, E>
  readonly acknowledge: (cursor: string) => Effect.Effect<void, E>
  /** Whether the worker has lost its part: the events come again, to whom has it. */
  readonly isLost: (error: E) => boolean
}

/** How long a read waits for an event, milliseconds. */
export const wait = 20_000

/** How often a worker that deals with an event says that it is there: its lease lasts three times as long. */
const renewal = "3 seconds"

const patience = Schedule.min([Schedule.exponential("200 millis"), Schedule.spaced("10 seconds")])

/**
 * The events of a subscription, one by one. Each is acknowledged when the next one
 * is asked for. A call whose failure is passing is made again until it succeeds.
 */
export const eventsOf = <E extends object, E2>(
  open: Effect.Effect<EventSource<E>, E2>,
  isPassing: (failure: E | E2) => boolean,
  missed: () => void = () => undefined
): Stream.Stream<CloudEvent, E | E2> => {
  const untilPassed = { schedule: patience, while: isPassing }
  const opened = Effect.retry(open, untilPassed)
  return Stream.scoped(
    Stream.unwrap(Effect.map(opened, (source) => Stream.fromPull(pullOf(source, untilPassed, missed))))
  )
}

const pullOf = Effect.fnUntraced(function*<E>(
  { acknowledge, isLost, read }: EventSource<E>,
  untilPassed: { readonly schedule: typeof patience; readonly while: (failure: E) => boolean },
  missed: () => void
) {
  let events: ReadonlyArray<CloudEvent> = []
  let cursor = ""
  /** How many events of these have been handed out. The last of them is being dealt with. */
  let given = 0

  /** Acknowledges the events that are dealt with, and keeps the part of the worker. */
  const settle = (dealtWith: number) =>
    Effect.suspend(() =>
      acknowledge(dealtWith === events.length ? cursor : cursorAt(cursor, events[dealtWith - 1]?.id ?? feedStart))
    )

  yield* Effect.suspend(() => given === 0 ? Effect.void : Effect.ignore(settle(given - 1))).pipe(
    Effect.delay(renewal),
    Effect.forever,
    Effect.forkScoped
  )
  yield* Effect.addFinalizer(() => given > 1 ? Effect.ignore(settle(given - 1)) : Effect.void)

  const settleAll = Effect.suspend(() => settle(events.length)).pipe(
    Effect.retry(untilPassed),
    Effect.catchIf(isLost, () => Effect.void)
  )
  const refill = Effect.gen(function*() {
    if (events.length > 0) yield* settleAll
    ;[events, given] = [[], 0]
    while (events.length === 0) {
      const next = yield* Effect.retry(read, untilPassed)
      ;({ cursor, events } = next)
      if (next.isGap) missed()
      if (next.isGap && events.length === 0) yield* settleAll
    }
  })

  return Effect.gen(function*() {
    if (given === events.length) yield* refill
    return [events[given++]!] as const
  })
})
