/**
 * Fires scenes at the times of their cron triggers, and when a status has lasted,
 * each time once for all nodes.
 */
import { Clock, Effect, Layer } from "effect"
import * as Periodic from "../../kernel/Periodic.ts"
import { untilStored } from "../../kernel/StoreError.ts"
import { nextTime } from "../definition/CronExpression.ts"
import { type SceneTimer, SceneTimeZone } from "../definition/Scene.ts"
import { SceneBacklog } from "../matching/SceneBacklog.ts"
import { SceneTriggers } from "../matching/SceneTriggers.ts"
import { ExecutionStore } from "./ExecutionStore.ts"

/** How many timers one look takes at most. */
const timerLimit = 500
/** How late a timer may be before its time counts as missed, milliseconds. */
const missedAfterMillis = 10_000
/**
 * How far a timer may lag behind and still go on from its own time, milliseconds.
 * It makes up for at most one of its times.
 */
const catchUpMillis = 2000
/** How far a timer may be ahead of its next time, milliseconds: by so much clocks of servers do not differ. */
const aheadMillis = 60_000
/** Timers that are held against their next time at once. */
const hastenLimit = 100

/** Works for as long as the scope lives. */
export const layer: Layer.Layer<never, never, ExecutionStore | SceneTriggers | SceneBacklog> = Layer.effectDiscard(
  Effect.suspend(() => make)
)

const make = Effect.gen(function*() {
  const store = yield* ExecutionStore
  const triggers = yield* SceneTriggers
  const backlog = yield* SceneBacklog
  const zoneOfCloud = yield* SceneTimeZone

  /** Clocks go back when servers start anew: gives their next time to timers that a clock which was ahead has set. */
  const hasten = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    // A next time costs a tenth of a millisecond, and many timers have the same.
    const known = new Map<string, number | null>()
    const step = ({ cron, timeZone }: SceneTimer): number | null => {
      const zone = timeZone ?? zoneOfCloud
      const key = `${zone} ${cron}`
      const next = known.has(key) ? known.get(key)! : nextTime(cron, zone, now + aheadMillis)
      known.set(key, next)
      return next
    }
    let after: string | undefined = ""
    while (after !== undefined) after = yield* untilStored(store.hasten({ after, limit: hastenLimit, step }))
  })

  const tick = Effect.gen(function*() {
    while (true) {
      const now = yield* Clock.currentTimeMillis
      const count = yield* store.tick({
        now,
        limit: timerLimit,
        step: (timer) => {
          const { cron, cronId, dueAt } = timer
          const timeZone = timer.timeZone ?? zoneOfCloud
          const following = nextTime(cron, timeZone, dueAt)
          const next = following !== null && following < now - catchUpMillis
            ? nextTime(cron, timeZone, now)
            : following
          if (now - dueAt > missedAfterMillis) return { dueAt: next }
          const execution = triggers.execution(timer, { _tag: "CronTicked", cronId, at: dueAt }, now)
          return backlog.admit(execution) ? { dueAt: next, execution } : { dueAt: next }
        }
      })
      if (count > 0) triggers.wake()
      if (count < timerLimit) return
    }
  })

  const tickLasting = Effect.gen(function*() {
    while (true) {
      const now = yield* Clock.currentTimeMillis
      const count = yield* store.tickLasting({ now, limit: timerLimit, admit: backlog.admit })
      if (count > 0) triggers.wake()
      if (count < timerLimit) return
    }
  })

  const warned = Effect.catchCause((cause) => Effect.logWarning("Timers of scenes could not be looked at", cause))

  yield* Effect.forkScoped(warned(hasten))
  yield* Effect.andThen(tick, tickLasting).pipe(
    warned,
    Periodic.looking
  )
})
