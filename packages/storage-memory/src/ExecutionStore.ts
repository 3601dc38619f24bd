/**
 * Executions of scenes and their timers in memory.
 */
import { ExecutionStore, isWaiting, keptExecutions, type NewExecution, type ProjectId } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { Tables } from "./Tables.ts"

/** Stores the executions of scenes that exist. */
export const addExecutions = (
  { executions, scenes }: Pick<Tables["Service"], "executions" | "scenes">,
  fired: ReadonlyArray<NewExecution>
): void => {
  for (const execution of fired) if (scenes.has(execution.sceneId)) executions.add(execution)
}

/** Stores the executions of scenes that exist, and those that wait for a status to last apart. */
export const addReactions = (
  tables: Pick<Tables["Service"], "executions" | "scenes" | "waiting">,
  reactions: ReadonlyArray<NewExecution>
): void => {
  for (const reaction of reactions) {
    if (!isWaiting(reaction)) addExecutions(tables, [reaction])
    else if (tables.scenes.has(reaction.sceneId)) {
      const { event: { device, minutes }, sceneId } = reaction
      tables.waiting.set(`${sceneId}/${device.deviceId}/${minutes}`, reaction)
    }
  }
}

const make = Effect.gen(function*() {
  const tables = yield* Tables
  const { executions, timers } = tables

  return ExecutionStore.of({
    enqueue: (fired) => Effect.sync(() => addExecutions(tables, fired)),
    enqueueChild: (child, rootId, growth) =>
      Effect.sync(() => executions.addChild(child, rootId, growth, tables.scenes.has(child.sceneId))),
    endedTrees: (rootIds) => Effect.sync(() => executions.endedTrees(rootIds)),
    countPending: (projectIds, limit) =>
      Effect.sync(() =>
        new Map(
          projectIds.map((projectId): [ProjectId, number] => [projectId, executions.countPending(projectId, limit)])
            .filter(([, count]) => count > 0)
        )
      ),
    note: (all) =>
      Effect.sync(() => {
        for (const execution of all) if (tables.scenes.has(execution.sceneId)) executions.note(execution)
      }),
    claim: (options) => Effect.sync(() => executions.claim(options)),
    save: (all, keepSince) => Effect.sync(() => all.map((execution) => executions.save(execution, keepSince))),
    countFired: (sceneIds, since, until) =>
      Effect.sync(() => new Map(sceneIds.map((sceneId) => [sceneId, executions.countFired(sceneId, since, until)]))),
    executions: (sceneId, { page, pageSize }) =>
      Effect.sync(() => {
        const latest = executions.of(sceneId).slice(-keptExecutions).toReversed()
        return { items: latest.slice((page - 1) * pageSize, page * pageSize), total: latest.length }
      }),
    tick: ({ limit, now, step }) =>
      Effect.sync(() => {
        const due = [...timers.values()].flatMap((timer) => {
          const { dueAt } = timer
          return dueAt !== null && dueAt <= now ? [{ ...timer, dueAt }] : []
        }).toSorted((a, b) => a.dueAt - b.dueAt).slice(0, limit)
        for (const timer of due) {
          const { dueAt, execution } = step(timer)
          timers.set(timer.cronId, { ...timer, dueAt })
          if (execution !== undefined) addExecutions(tables, [execution])
        }
        return due.length
      }),
    hasten: ({ after, limit, step }) =>
      Effect.sync(() => {
        const found = [...timers.values()].flatMap((timer) => {
          const { cronId, dueAt } = timer
          return dueAt !== null && cronId > after ? [{ ...timer, dueAt }] : []
        }).toSorted((a, b) => a.cronId < b.cronId ? -1 : 1).slice(0, limit)
        for (const timer of found) {
          const dueAt = step(timer)
          if (dueAt !== null && dueAt < timer.dueAt) timers.set(timer.cronId, { ...timer, dueAt })
        }
        return found.at(-1)?.cronId
      }),
    tickLasting: ({ admit, limit, now }) =>
      Effect.sync(() => {
        const due = [...tables.waiting].filter(([, { at }]) => at <= now).toSorted(([, a], [, b]) => a.at - b.at)
          .slice(0, limit)
        for (const [key, execution] of due) {
          tables.waiting.delete(key)
          const { device, since, status } = execution.event
          const known = tables.devices.get(device.deviceId)
          const lasts = known?.enabled === true && known.status === status && known.statusChangedAt === since
          if (lasts && tables.scenes.has(execution.sceneId) && admit(execution)) addExecutions(tables, [execution])
        }
        return due.length
      }),
    prune: ({ before, limit }) => Effect.sync(() => executions.prune(before, limit))
  })
})

export const layer: Layer.Layer<ExecutionStore, never, Tables> = Layer.effect(ExecutionStore, make)
