/**
 * The feed of domain events: what happens is recorded with its cause, and whoever
 * follows reads it from the store, on whichever node it was recorded
 * (docs/decisions/0079-following-the-feed.md).
 */
import { Context, Effect, Layer, Option, Queue, type Scope, Stream } from "effect"
import type { StoreError } from "../kernel/StoreError.ts"
import { Transactions } from "../kernel/Transactions.ts"
import type { ProjectId } from "../project/Project.ts"
import { type FeedEntry, type FeedPlace, type FeedSelection, FeedStore } from "./FeedStore.ts"
import type { FeedFollower } from "./FeedFollower.ts"
import * as FeedTail from "./FeedTail.ts"

export class Feed extends Context.Service<
  Feed,
  & Pick<FeedStore["Service"], "append" | "commit" | "read" | "placeAt" | "end">
  & {
    /** Says that another store of this process has recorded events, so that followers need not wait for the next look. */
    readonly wake: () => void
    /**
     * Hands each event of the project (undefined: of all projects) to the follower
     * from now on, in order, until the scope closes; the first ones may be some
     * milliseconds old. Events of other nodes come up to 100 milliseconds later. Followers of this process share one reader of the
     * store. Returns a function that says where the followers are: the follower has
     * heard everything up to this place since it began, and hears everything after it.
     */
    readonly follow: (
      projectId: ProjectId | undefined,
      follower: FeedFollower
    ) => Effect.Effect<() => FeedPlace, never, Scope.Scope>
    /**
     * Emits the events of the project (undefined: of all projects) after a place,
     * default: from now on. It reads by itself, so that it may take its time.
     */
    readonly stream: (options: {
      readonly projectId: ProjectId | undefined
      readonly after?: FeedPlace | undefined
      readonly select?: FeedSelection | undefined
    }) => Stream.Stream<FeedEntry, StoreError>
  }
>()("@device-cloud/core/feed/Feed") {
  static readonly layer: Layer.Layer<Feed | Transactions, never, FeedStore> = Layer.effectContext(
    Effect.suspend(() => make)
  )
}

/** Entries that a stream reads at once. */
const pageSize = 500

const make = Effect.gen(function*() {
  const store = yield* FeedStore
  const tail = yield* FeedTail.make(store)
  const woken = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.tap(effect, () => Effect.sync(tail.wake))

  const commit: FeedStore["Service"]["commit"] = (write, eventsOf) => woken(store.commit(write, eventsOf))

  const stream: Feed["Service"]["stream"] = ({ after, projectId, select }) =>
    Stream.unwrap(Effect.gen(function*() {
      const news = yield* Queue.sliding<void>(1)
      const tell = () => void Queue.offerUnsafe(news, undefined)
      yield* tail.follow(projectId, { hear: tell, missed: tell })
      return Stream.paginate(after ?? (yield* store.end), (from: FeedPlace) =>
        Effect.gen(function*() {
          let page = yield* store.read({ projectId, after: from, limit: pageSize, select })
          while (page.entries.length === 0) {
            if (!page.hasMore) yield* Queue.take(news)
            page = yield* store.read({ projectId, after: page.next, limit: pageSize, select })
          }
          return [page.entries, Option.some(page.next)] as const
        }))
    }))

  return Context.make(Feed, {
    append: (events) => woken(store.append(events)),
    commit,
    read: store.read,
    placeAt: store.placeAt,
    end: store.end,
    wake: tail.wake,
    follow: tail.follow,
    stream
  }).pipe(Context.add(Transactions, { within: (work) => commit(work, () => []) }))
})
