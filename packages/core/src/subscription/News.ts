/**
 * Waits for events, without a read of the feed for each that waits.
 */
import { Effect, Latch } from "effect"
import type { DeviceId } from "../device/Device.ts"
import type { DomainEvent } from "../events/DomainEvent.ts"
import type { Feed } from "../feed/Feed.ts"
import type { FeedPlace } from "../feed/FeedStore.ts"
import type { ProjectId } from "../project/Project.ts"

export interface News {
  /**
   * Waits until an event has come that concerns whoever waits, or there may be a
   * gap, at most `millis`. Returns the place up to which there was none since the
   * last call, or since it has followed; undefined: there was one.
   */
  readonly wait: (millis: number) => Effect.Effect<FeedPlace | undefined>
}

/** Follows devices (undefined: all) of a project until the scope closes. */
export const follow = Effect.fnUntraced(function*(
  feed: Feed["Service"],
  projectId: ProjectId,
  deviceIds: ReadonlyArray<DeviceId> | undefined,
  concerns: (event: DomainEvent) => boolean
) {
  const latch = yield* Latch.make(false)
  let isQuiet = true
  const tell = () => {
    isQuiet = false
    latch.openUnsafe()
  }
  const place = yield* feed.follow(projectId, {
    deviceIds,
    hear: ({ event }) => {
      if (concerns(event)) tell()
    },
    missed: tell
  })
  return {
    wait: (millis) =>
      Effect.map(Effect.timeoutOption(latch.await, millis), () => {
        const quietUntil = isQuiet ? place() : undefined
        isQuiet = true
        latch.closeUnsafe()
        return quietUntil
      })
  } satisfies News
})
