/**
 * Scenes in memory.
 */
import {
  keptExecutions,
  type NewExecution,
  type ProjectId,
  type Scene,
  type SceneId,
  SceneStore,
  type SceneTimer,
  watchedProducts
} from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { paginate, Tables } from "./Tables.ts"

/** Stores the executions of scenes that exist. */
export const addExecutions = (
  { executions, scenes }: Pick<Tables["Service"], "executions" | "scenes">,
  fired: ReadonlyArray<NewExecution>
): void => {
  for (const execution of fired) if (scenes.has(execution.sceneId)) executions.add(execution)
}

const make = Effect.gen(function*() {
  const tables = yield* Tables
  const { executions, projects, scenes, timers, webhookKeys } = tables

  const find = (projectId: ProjectId, sceneId: SceneId) => {
    const scene = scenes.get(sceneId)
    return scene?.projectId === projectId ? scene : undefined
  }

  /** By project and name. */
  const names = new Map<string, SceneId>()
  const keyOf = ({ name, projectId }: Scene) => `${projectId}/${name}`

  const isTaken = (scene: Scene) => {
    const holder = scenes.get(names.get(keyOf(scene)) ?? scene.sceneId)
    return holder !== undefined && holder.sceneId !== scene.sceneId && keyOf(holder) === keyOf(scene)
  }

  const put = (scene: Scene) => {
    scenes.set(scene.sceneId, scene)
    names.set(keyOf(scene), scene.sceneId)
  }

  const timersOf = new Map<SceneId, ReadonlyArray<SceneTimer>>()

  const setTimers = (sceneId: SceneId, next: ReadonlyArray<SceneTimer>) => {
    const waiting = new Map<string, number | null>()
    for (const { cronId } of timersOf.get(sceneId) ?? []) {
      waiting.set(cronId, timers.get(cronId)!.dueAt)
      timers.delete(cronId)
    }
    if (next.length === 0) timersOf.delete(sceneId)
    else timersOf.set(sceneId, next)
    for (const timer of next) {
      const { cronId, dueAt } = timer
      timers.set(cronId, { ...timer, dueAt: dueAt === null ? null : waiting.get(cronId) ?? dueAt })
    }
  }

  return SceneStore.of({
    insert: (scene, next) =>
      Effect.sync(() => {
        if (!projects.has(scene.projectId)) return "no-project"
        if (isTaken(scene)) return "taken"
        put(scene)
        setTimers(scene.sceneId, next)
        return "inserted"
      }),
    update: (scene, next) =>
      Effect.sync(() => {
        const before = find(scene.projectId, scene.sceneId)
        if (before?.revision !== scene.revision - 1) return "changed"
        if (isTaken(scene)) return "taken"
        names.delete(keyOf(before))
        put(scene)
        setTimers(scene.sceneId, next)
        return "updated"
      }),
    remove: (projectId, sceneId) =>
      Effect.sync(() => {
        const scene = find(projectId, sceneId)
        if (scene === undefined) return Option.none()
        scenes.delete(sceneId)
        names.delete(keyOf(scene))
        setTimers(sceneId, [])
        executions.removeScene(sceneId)
        return Option.some(scene)
      }),
    get: (projectId, sceneId) => Effect.sync(() => Option.fromUndefinedOr(find(projectId, sceneId))),
    find: (sceneIds) => Effect.sync(() => sceneIds.flatMap((sceneId) => scenes.get(sceneId) ?? [])),
    list: (projectId, { name, status }, page) =>
      Effect.sync(() =>
        paginate(
          [...scenes.values()].filter((scene) =>
            scene.projectId === projectId && (name === undefined || scene.name.includes(name)) &&
            (status === undefined || scene.status === status)
          ),
          page
        )
      ),
    watching: (productKeys) =>
      Effect.sync(() => {
        const wanted = new Set(productKeys)
        return [...scenes.values()].filter((scene) =>
          scene.status === "enable" && watchedProducts(scene).some((productKey) => wanted.has(productKey))
        )
      }),
    pause: (sceneId, until) =>
      Effect.sync(() => {
        const scene = scenes.get(sceneId)
        if (scene !== undefined) scenes.set(sceneId, { ...scene, pausedUntil: until })
      }),
    enqueue: (fired) => Effect.sync(() => addExecutions(tables, fired)),
    claim: (options) => Effect.sync(() => executions.claim(options)),
    save: (all, keepSince) => Effect.sync(() => all.map((execution) => executions.save(execution, keepSince))),
    countFired: (sceneIds, since) =>
      Effect.sync(() => new Map(sceneIds.map((sceneId) => [sceneId, executions.countFired(sceneId, since)]))),
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
    webhookKeys: (projectId) => Effect.sync(() => Option.fromUndefinedOr(webhookKeys.get(projectId))),
    putWebhookKeys: (projectId, before, keys) =>
      Effect.sync(() => {
        if ((webhookKeys.get(projectId)?.createdAt ?? null) !== before) return false
        webhookKeys.set(projectId, keys)
        return true
      })
  })
})

export const layer: Layer.Layer<SceneStore, never, Tables> = Layer.effect(SceneStore, make)
