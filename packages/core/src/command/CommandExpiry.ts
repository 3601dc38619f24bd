/**
 * Ends commands whose time is over.
 */
import { Clock, Effect, Layer } from "effect"
import { ProjectActivity } from "../activity/ProjectActivity.ts"
import * as Periodic from "../kernel/Periodic.ts"
import { CommandStore } from "./CommandStore.ts"

/** How long after its expiry a delivered command still waits for a reply, milliseconds. */
const replyGrace = 60_000
/** Commands that end in one transaction. */
const expireLimit = 1000

/** Ends expired commands once a second while the layer lives. */
export const layer: Layer.Layer<never, never, CommandStore | ProjectActivity> = Layer.effectDiscard(
  Effect.gen(function*() {
    const store = yield* CommandStore
    const activity = yield* ProjectActivity
    const expire = Effect.fnUntraced(function*(isBack: boolean) {
      const now = yield* Clock.currentTimeMillis
      // A device that comes back says again what has not been confirmed: no delivered command expires before.
      const grace = isBack ? now : replyGrace
      while (true) {
        const expired = yield* store.expire({ now, grace, limit: expireLimit })
        for (const projectId of expired) activity.count(projectId, "expired")
        if (expired.length < expireLimit) return
        yield* Effect.yieldNow
      }
    })
    yield* Periodic.lookingForEnds("Commands could not be expired", expire)
  })
)
