/**
 * All streams of events of this server. Streams of a project with the same filter
 * share its decision, and all share the bytes of an event: what it costs does not
 * grow with the number of streams, but for the writing itself
 * (docs/decisions/0054-shared-event-streams.md).
 */
import {
  type DeviceId,
  type DomainEvent,
  eventTypes,
  Feed,
  type FeedEntry,
  type FeedPlace,
  type FeedSelection,
  isFeedPlace,
  type ProductKey,
  type ProjectId,
  untilStored
} from "@device-cloud/core"
import { Deferred, Effect, Exit, Latch, Schedule, Scope } from "effect"
import { TooManyRequests } from "../Failure.ts"
import { EventChunk } from "./EventChunk.ts"
import { EventListener } from "./EventListener.ts"
import { tellsOfOthers, withoutGateway } from "./OwnEvents.ts"
import { beginningAfter, gap, textOf } from "./ServerSentEvent.ts"

/** How many streams there may be. */
export interface EventStreamLimits {
  /** For each project. Default 100. */
  readonly project?: number | undefined
  /** For all projects together. Default 1,000. */
  readonly total?: number | undefined
}

/** What a stream shows. */
export interface EventFilter {
  readonly productKey: string | undefined
  readonly deviceId: string | undefined
  /** Types on the wire. */
  readonly types: ReadonlyArray<string> | undefined
  /** Whether nothing is shown of devices that an event is not about. */
  readonly isOwnOnly: boolean
}

export interface EventStreams {
  /**
   * Opens a stream, which is open until the scope closes. Begins after the event
   * `lastEventId`, on whichever server the client got it.
   */
  readonly open: (options: {
    readonly projectId: ProjectId
    readonly filter: EventFilter
    readonly lastEventId: string | undefined
  }) => Effect.Effect<EventListener, typeof TooManyRequests.Type, Scope.Scope>
}

/** How often a stream that has nothing to say is kept alive. */
const heartbeatEvery = "15 seconds"

/** Seconds after which there may be room for another stream. */
const retryAfter = 30

/** Events that a stream reads at once which is behind: what waits for many slow clients stays little. */
const pageSize = 25

/** Characters of events that a group keeps until they are written, unless one event has more. */
const maxKept = 64 * 1024

/** Streams that one millisecond of pause between two rounds of writing stands for. */
const streamsPerMilli = 10

interface Group {
  readonly concerns: (event: DomainEvent) => boolean
  readonly isOwnOnly: boolean
  readonly listeners: Set<EventListener>
  /** What the listeners have not been offered yet. */
  kept: EventChunk | undefined
}

interface ProjectStreams {
  /** By the text of their filter. */
  readonly groups: Map<string, Group>
  count: number
  /** Where the groups are. */
  readonly followed: Deferred.Deferred<() => FeedPlace>
  readonly scope: Scope.Closeable
}

/** Makes the streams, which end with the scope. */
export const make = Effect.fnUntraced(function*(limits: EventStreamLimits) {
  const feed = yield* Feed
  const { project: maxOfProject = 100, total: maxTotal = 1000 } = limits
  const projects = new Map<ProjectId, ProjectStreams>()
  const waiting = { total: 0 }
  const hasNews = yield* Latch.make(false)
  /** Those that have events for their listeners. */
  let fresh = new Set<Group>()
  let total = 0

  const offer = (group: Group): void => {
    const { kept, listeners } = group
    if (kept === undefined) return
    group.kept = undefined
    for (const listener of listeners) listener.offer(kept)
  }

  const hear = ({ groups }: ProjectStreams, entry: FeedEntry): void => {
    let text: string | undefined
    let ownText: string | undefined
    for (const group of groups.values()) {
      if (!group.concerns(entry.event)) continue
      const shown = group.isOwnOnly ? ownText ??= textOf(ownOf(entry)) : text ??= textOf(entry)
      group.kept ??= new EventChunk()
      group.kept.add(entry.id, shown)
      if (group.kept.length >= maxKept) offer(group)
      fresh.add(group)
      hasNews.openUnsafe()
    }
  }

  const missed = ({ groups }: ProjectStreams): void => {
    for (const group of groups.values()) {
      offer(group)
      for (const listener of group.listeners) listener.missed()
      fresh.add(group)
    }
    hasNews.openUnsafe()
  }

  const tooMany = (message: string) => Effect.fail(TooManyRequests.make({ message, data: { retry_after: retryAfter } }))

  const enter = Effect.fnUntraced(function*(projectId: ProjectId) {
    const known = projects.get(projectId)
    if ((known?.count ?? 0) >= maxOfProject) {
      return yield* tooMany(`The project has ${maxOfProject} streams of events already; close one`)
    }
    if (total >= maxTotal) return yield* tooMany("The server has as many streams of events as it may have")
    const streams: ProjectStreams = known ??
      { groups: new Map(), count: 0, followed: Deferred.makeUnsafe(), scope: Scope.makeUnsafe() }
    total++
    streams.count++
    if (known === undefined) {
      projects.set(projectId, streams)
      yield* feed.follow(projectId, {
        hear: (entry) => hear(streams, entry),
        missed: () => missed(streams)
      }).pipe(Deferred.into(streams.followed), Scope.provide(streams.scope), Effect.forkIn(streams.scope))
    }
    return streams
  })

  const leave = Effect.fnUntraced(function*(projectId: ProjectId, streams: ProjectStreams) {
    total--
    if (--streams.count > 0) return
    projects.delete(projectId)
    yield* Scope.close(streams.scope, Exit.void)
  })

  const open: EventStreams["open"] = Effect.fnUntraced(function*({ filter, lastEventId, projectId }) {
    const streams = yield* Effect.acquireRelease(enter(projectId), (streams) => leave(projectId, streams))
    const offeredFrom = yield* Deferred.await(streams.followed)
    const concerns = concernsOf(filter)
    const select = selectionOf(filter)
    const read = (after: FeedPlace) =>
      Effect.orDie(untilStored(feed.read({ projectId, after, limit: pageSize, select })))
    const readOwn = (after: FeedPlace) =>
      Effect.map(read(after), (found) => ({ ...found, entries: found.entries.map(ownOf) }))
    const source = { read: filter.isOwnOnly ? readOwn : read, offeredFrom }
    const isKnown = lastEventId === undefined || isFeedPlace(lastEventId)
    const after = lastEventId !== undefined && isKnown ? lastEventId : yield* Effect.orDie(untilStored(feed.end))
    const { isOwnOnly } = filter
    const name = JSON.stringify([filter.productKey, filter.deviceId, filter.types?.toSorted(), isOwnOnly])
    return yield* Effect.acquireRelease(
      Effect.sync(() => {
        const listener = new EventListener(waiting, source, {
          after,
          beginning: isKnown ? [beginningAfter(after)] : [beginningAfter(after), gap]
        })
        const group: Group = streams.groups.get(name) ?? { concerns, isOwnOnly, listeners: new Set(), kept: undefined }
        group.listeners.add(listener)
        streams.groups.set(name, group)
        return listener
      }),
      (listener) =>
        Effect.sync(() => {
          listener.end()
          const group = streams.groups.get(name)
          group?.listeners.delete(listener)
          if (group?.listeners.size === 0) streams.groups.delete(name)
        })
    )
  })

  /** Many events in a short time are written together; the first after a quiet time is written at once. */
  const flush = Effect.gen(function*() {
    yield* hasNews.await
    hasNews.closeUnsafe()
    const round = fresh
    fresh = new Set()
    for (const group of round) {
      offer(group)
      for (const listener of group.listeners) listener.flush()
    }
    yield* Effect.sleep(total / streamsPerMilli)
  })
  yield* Effect.forkScoped(Effect.forever(flush))

  const forEach = (act: (listener: EventListener, group: Group) => void) =>
    Effect.sync(() => {
      for (const { groups } of projects.values()) {
        for (const group of groups.values()) {
          for (const listener of group.listeners) act(listener, group)
        }
      }
    })
  yield* Effect.addFinalizer(() => forEach((listener) => listener.end()))
  const beat = forEach((listener, { kept }) => listener.beat(kept === undefined))
  yield* Effect.forkScoped(Effect.schedule(beat, Schedule.spaced(heartbeatEvery)))

  return { open } satisfies EventStreams
})

const ownOf = ({ event, id }: FeedEntry): FeedEntry => ({ id, event: withoutGateway(event) })

const concernsOf = ({ deviceId, isOwnOnly, productKey, types }: EventFilter) => {
  const wanted = types === undefined ? undefined : new Set(types)
  return (event: DomainEvent): boolean =>
    !(isOwnOnly && tellsOfOthers(event._tag)) &&
    (productKey === undefined || event.device?.productKey === productKey) &&
    (deviceId === undefined || event.device?.deviceId === deviceId) &&
    (wanted === undefined || wanted.has(eventTypes[event._tag]))
}

/** The same for reads of the feed. */
const selectionOf = ({ deviceId, isOwnOnly, productKey, types }: EventFilter): FeedSelection => ({
  productKeys: productKey === undefined ? undefined : [productKey as ProductKey],
  deviceIds: deviceId === undefined ? undefined : [deviceId as DeviceId],
  kinds: types === undefined && !isOwnOnly
    ? undefined
    : kinds.filter((kind) =>
      (types === undefined || types.includes(eventTypes[kind])) && !(isOwnOnly && tellsOfOthers(kind))
    )
})

const kinds = Object.keys(eventTypes) as ReadonlyArray<DomainEvent["_tag"]>
