/**
 * Forgets records of what has ended: commands, bulk commands, executions of
 * scenes, jobs and upgrade tasks. What has not ended stays, however old it is.
 */
import { Clock, Context, Effect, Layer, Schedule } from "effect"
import { BulkCommandStore } from "./bulk/BulkCommandStore.ts"
import { CommandStore } from "./command/CommandStore.ts"
import { JobStore } from "./job/JobStore.ts"
import * as Periodic from "./kernel/Periodic.ts"
import type { StoreError } from "./kernel/StoreError.ts"
import { OtaStore } from "./ota/task/OtaStore.ts"
import { ExecutionStore } from "./scene/execution/ExecutionStore.ts"

/** How long records are kept after they have ended, days. Default 90. */
export const RecordDays = Context.Reference<number>("@device-cloud/core/RecordDays", { defaultValue: () => 90 })

type Stores = BulkCommandStore | CommandStore | ExecutionStore | JobStore | OtaStore

/** Forgets old records while it lives. Of several nodes, each one looks. */
export const layer: Layer.Layer<never, never, Stores> = Layer.effectDiscard(Effect.suspend(() => make))

const pruneEvery = "10 minutes"
/** Records that are removed at once: some milliseconds. */
const limit = 1000
/** Between two calls of the store, so that vacuum and everybody else keep up. */
const pause = "50 millis"

type Prune = (options: { readonly before: number; readonly limit: number }) => Effect.Effect<number, StoreError>

const make = Effect.gen(function*() {
  const days = yield* RecordDays
  // Bulk commands before commands: they show the commands of their devices.
  const prunes: ReadonlyArray<readonly [name: string, prune: Prune]> = [
    ["bulk commands", (yield* BulkCommandStore).prune],
    ["commands", (yield* CommandStore).prune],
    ["executions of scenes", (yield* ExecutionStore).prune],
    ["jobs", (yield* JobStore).prune],
    ["upgrade tasks", (yield* OtaStore).pruneTasks]
  ]
  const pruneAll = Effect.gen(function*() {
    const before = (yield* Clock.currentTimeMillis) - days * 86_400_000
    for (const [name, prune] of prunes) {
      yield* prune({ before, limit }).pipe(
        Effect.repeat({ while: (removed) => removed > 0, schedule: Schedule.spaced(pause) }),
        Effect.catchCause((cause) => Effect.logWarning(`Old ${name} could not be forgotten`, cause))
      )
    }
  })
  yield* pruneAll.pipe(Periodic.every(pruneEvery))
})
