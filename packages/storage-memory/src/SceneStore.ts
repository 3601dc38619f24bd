/**
 * Scenes in memory.
 */
import {
  type ProjectId,
  type Scene,
  type SceneId,
  SceneStore,
  type SceneTimer,
  watchedProducts
} from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { paginate, Tables } from "./Tables.ts"

const make = Effect.gen(function*() {
  const { executions, projects, scenes, timers } = yield* Tables

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
      })
  })
})

export const layer: Layer.Layer<SceneStore, never, Tables> = Layer.effect(SceneStore, make)
