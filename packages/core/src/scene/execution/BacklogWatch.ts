/**
 * Counts the executions of projects that wait, and writes into the log of a
 * scene what was not stored of it.
 */
import { Clock, Effect, Layer, Metric, Queue } from "effect"
import { SceneLimits } from "../definition/SceneLimits.ts"
import * as Periodic from "../../kernel/Periodic.ts"
import { type Dropped, SceneBacklog } from "../matching/SceneBacklog.ts"
import type { Execution } from "./Execution.ts"
import { ExecutionStore } from "./ExecutionStore.ts"

const droppedExecutions = Metric.counter("device_cloud_scene_executions_dropped_total", {
  description: "Executions of scenes that were not stored because too many of their project wait",
  incremental: true
})

/** Works for as long as the scope lives. */
export const layer: Layer.Layer<never, never, ExecutionStore | SceneBacklog> = Layer.effectDiscard(
  Effect.suspend(() => make)
)

/** Says why executions of a project are not stored. */
export const backlogReason = ({ pending }: SceneLimits): string =>
  `${pending} executions of the project wait to be carried out, and no more may`

const make = Effect.gen(function*() {
  const store = yield* ExecutionStore
  const backlog = yield* SceneBacklog
  const limits = yield* SceneLimits

  /** One entry of the log for each scene, however many executions were dropped. */
  const entryOf = ({ count, latest, since }: Dropped, now: number): Execution => ({
    ...latest,
    executionId: `${latest.sceneId}.limited`,
    rootId: null,
    status: "limited",
    reason: `${count} executions since ${new Date(since).toISOString()} were not stored: ${backlogReason(limits)}`,
    verdict: null,
    outcomes: [],
    dueAt: null,
    revision: 0,
    updatedAt: now
  })

  const watch = Effect.gen(function*() {
    const projectIds = backlog.uncounted()
    if (projectIds.length > 0) {
      const counts = yield* store.countPending(projectIds, limits.pending)
      for (const projectId of projectIds) backlog.counted(projectId, counts.get(projectId) ?? 0)
    }
    const dropped = backlog.takeDropped()
    if (dropped > 0) yield* Metric.update(droppedExecutions, dropped)
    const now = yield* Clock.currentTimeMillis
    const unnoted = backlog.unnoted(now)
    if (unnoted.length === 0) return
    yield* store.note(unnoted.map((dropped) => entryOf(dropped, now)))
    backlog.noted(unnoted, now)
  })

  yield* watch.pipe(
    Effect.catchCause((cause) => Effect.logWarning("Executions that wait could not be counted", cause)),
    Effect.andThen(Queue.take(backlog.calls)),
    Effect.forever({ disableYield: true }),
    Effect.forkScoped
  )
  yield* Queue.offer(backlog.calls, undefined).pipe(Periodic.looking)
})
