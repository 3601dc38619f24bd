/**
 * The one reader of the feed's end in this process: it reads while somebody
 * follows, and hands events to all followers of their project.
 */
import { Deferred, Effect, Queue, type Scope } from "effect"
import type { DeviceId } from "../device/Device.ts"
import { projectOf } from "../events/DomainEvent.ts"
import type { ProjectId } from "../project/Project.ts"
import type { FeedFollower } from "./FeedFollower.ts"
import type { FeedEntry, FeedPage, FeedPlace, FeedStore } from "./FeedStore.ts"

/** How long the tail waits for news that other nodes may have stored. */
const lookEvery = "100 millis"
/** How long the tail waits after a failure of the store. */
const retryAfter = "1 second"
/** Entries of one read. */
const pageSize = 1000
/** After a read with this many entries the tail pauses: a few large reads cost less than many small ones. */
const many = 50
const pause = "25 millis"

export interface FeedTail {
  readonly wake: () => void
  readonly follow: (
    projectId: ProjectId | undefined,
    follower: FeedFollower
  ) => Effect.Effect<() => FeedPlace, never, Scope.Scope>
}

interface Joining {
  readonly projectId: ProjectId | undefined
  readonly follower: FeedFollower
  readonly joined: Deferred.Deferred<void>
}

/** The followers of a project. An event costs as much as there are followers that hear it. */
class Followers {
  readonly all = new Set<FeedFollower>()
  readonly #ofEverything = new Set<FeedFollower>()
  readonly #byDevice = new Map<DeviceId, Set<FeedFollower>>()

  add(follower: FeedFollower): void {
    this.all.add(follower)
    if (follower.deviceIds === undefined) this.#ofEverything.add(follower)
    for (const deviceId of follower.deviceIds ?? []) {
      this.#byDevice.set(deviceId, (this.#byDevice.get(deviceId) ?? new Set()).add(follower))
    }
  }

  delete(follower: FeedFollower): void {
    this.all.delete(follower)
    this.#ofEverything.delete(follower)
    for (const deviceId of follower.deviceIds ?? []) {
      const ofDevice = this.#byDevice.get(deviceId)
      ofDevice?.delete(follower)
      if (ofDevice?.size === 0) this.#byDevice.delete(deviceId)
    }
  }

  hear(entry: FeedEntry): void {
    for (const { hear } of this.#ofEverything) hear(entry)
    const { device } = entry.event
    const ofDevice = device === null ? undefined : this.#byDevice.get(device.deviceId)
    if (ofDevice !== undefined) { for (const { hear } of ofDevice) hear(entry) }
  }
}

export const make = Effect.fnUntraced(function*(store: FeedStore["Service"]) {
  const wakeUps = yield* Queue.sliding<void>(1)
  const followers = new Map<ProjectId | undefined, Followers>()
  /** They join between two reads: a read knows the projects that are followed when it begins. */
  let joining: Array<Joining> = []
  /** Up to where followers have heard everything; undefined: nobody follows. */
  let place: FeedPlace | undefined

  const wake = () => {
    if (followers.size + joining.length > 0) Queue.offerUnsafe(wakeUps, undefined)
  }

  const handOut = ({ entries, isGap, next }: FeedPage): void => {
    if (isGap) { for (const { all } of followers.values()) for (const { missed } of all) missed() }
    const ofAll = followers.get(undefined)
    for (const entry of entries) {
      followers.get(projectOf(entry.event))?.hear(entry)
      ofAll?.hear(entry)
    }
    place = next
  }

  const admit = Effect.gen(function*() {
    place ??= yield* store.end
    const entering = joining
    // A follower that has joined goes on at once, and may leave or join again meanwhile.
    joining = []
    for (const { follower, projectId } of entering) {
      const ofProject = followers.get(projectId) ?? new Followers()
      followers.set(projectId, ofProject)
      ofProject.add(follower)
    }
    for (const { joined } of entering) Deferred.doneUnsafe(joined, Effect.void)
  })

  /** One turn: returns whether there may be more to read at once. */
  const look = Effect.gen(function*() {
    if (joining.length > 0) yield* admit
    if (followers.size === 0) {
      place = undefined
      yield* Queue.take(wakeUps)
      return joining.length > 0
    }
    const projectIds = [...followers.keys()].filter((projectId) => projectId !== undefined)
    const page = yield* store.read({
      projectId: undefined,
      after: place!,
      limit: pageSize,
      select: followers.has(undefined) ? undefined : { projectIds }
    })
    handOut(page)
    if (page.entries.length >= many && !page.hasMore) yield* Effect.sleep(pause)
    return page.hasMore || joining.length > 0
  })

  yield* look.pipe(
    Effect.catchCause((cause) =>
      Effect.andThen(
        Effect.logWarning("The feed could not be read; followers wait", cause),
        Effect.as(Effect.sleep(retryAfter), true)
      )
    ),
    Effect.flatMap((hasMore) =>
      hasMore || followers.size === 0
        ? Effect.yieldNow
        : Effect.asVoid(Effect.timeoutOption(Queue.take(wakeUps), lookEvery))
    ),
    Effect.forever,
    Effect.forkScoped
  )

  const follow: FeedTail["follow"] = Effect.fnUntraced(function*(projectId, follower) {
    const entering = { projectId, follower, joined: yield* Deferred.make<void>() }
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        joining.push(entering)
        wake()
      }),
      () =>
        Effect.sync(() => {
          joining = joining.filter((each) => each !== entering)
          const ofProject = followers.get(projectId)
          ofProject?.delete(follower)
          if (ofProject?.all.size === 0) followers.delete(projectId)
        })
    )
    yield* Deferred.await(entering.joined)
    return () => place!
  })

  return { wake, follow } satisfies FeedTail
})
