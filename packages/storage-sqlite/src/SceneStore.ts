/**
 * Scenes on SQLite.
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
import { pageOf } from "./Paging.ts"
import { sceneFromRow, type SceneRow } from "./SceneRow.ts"
import { Sqlite } from "./Sqlite.ts"

/** Part of the group that is replaced together: executions go with their scene. */
export const layer: Layer.Layer<SceneStore, never, Sqlite> = Layer.effect(
  SceneStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

const make = (sql: Sqlite["Service"]) => {
  const find = (sceneId: SceneId): Scene | undefined => {
    const row = sql.get<SceneRow>("SELECT * FROM scene WHERE scene_id = ?", [sceneId])
    return row === undefined ? undefined : sceneFromRow(row)
  }

  const findIn = (projectId: ProjectId, sceneId: SceneId): Scene | undefined => {
    const scene = find(sceneId)
    return scene?.projectId === projectId ? scene : undefined
  }

  const isTaken = ({ name, projectId, sceneId }: Scene): boolean =>
    sql.get("SELECT 1 FROM scene WHERE project_id = ? AND name = ? AND scene_id <> ?", [projectId, name, sceneId]) !==
      undefined

  /** Sets which products fire the scene, and when its timers do. */
  const setRest = (scene: Scene, timers: ReadonlyArray<SceneTimer>) => {
    const { sceneId } = scene
    sql.run("DELETE FROM scene_product WHERE scene_id = ?", [sceneId])
    for (const productKey of watchedProducts(scene)) {
      sql.run("INSERT INTO scene_product (product_key, scene_id) VALUES (?, ?)", [productKey, sceneId])
    }
    sql.run("DELETE FROM scene_timer WHERE scene_id = ? AND cron_id NOT IN (SELECT value FROM json_each(?))", [
      sceneId,
      JSON.stringify(timers.map(({ cronId }) => cronId))
    ])
    for (const { cron, cronId, dueAt, timeZone } of timers) {
      sql.run(
        `INSERT INTO scene_timer AS known (cron_id, scene_id, project_id, cron, time_zone, due_at)
          VALUES (?, ?, ?, ?, ?, ?)
          ON CONFLICT (cron_id) DO UPDATE SET
            due_at = CASE WHEN excluded.due_at IS NOT NULL THEN coalesce(known.due_at, excluded.due_at) END`,
        [cronId, sceneId, scene.projectId, cron, timeZone, dueAt]
      )
    }
  }

  const insert = (scene: Scene, timers: ReadonlyArray<SceneTimer>) => {
    if (isTaken(scene)) return "taken"
    const inserted = sql.run(
      `INSERT INTO scene (scene_id, project_id, name, description, status, triggers, conditions, actions, paused_until,
          revision, created_at, updated_at)
        SELECT ?, id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM project WHERE id = ?`,
      [
        scene.sceneId,
        scene.name,
        scene.desc,
        scene.status,
        JSON.stringify(scene.triggers),
        JSON.stringify(scene.conditions),
        JSON.stringify(scene.actions),
        scene.pausedUntil,
        scene.revision,
        scene.createdAt,
        scene.updatedAt,
        scene.projectId
      ]
    )
    if (inserted === 0) return "no-project"
    setRest(scene, timers)
    return "inserted"
  }

  const update = (scene: Scene, timers: ReadonlyArray<SceneTimer>) => {
    if (findIn(scene.projectId, scene.sceneId)?.revision !== scene.revision - 1) return "changed"
    if (isTaken(scene)) return "taken"
    sql.run(
      `UPDATE scene SET name = ?, description = ?, status = ?, triggers = ?, conditions = ?, actions = ?,
          paused_until = ?, revision = ?, updated_at = ?
        WHERE scene_id = ?`,
      [
        scene.name,
        scene.desc,
        scene.status,
        JSON.stringify(scene.triggers),
        JSON.stringify(scene.conditions),
        JSON.stringify(scene.actions),
        scene.pausedUntil,
        scene.revision,
        scene.updatedAt,
        scene.sceneId
      ]
    )
    setRest(scene, timers)
    return "updated"
  }

  return SceneStore.of({
    insert: (scene, timers) => sql.write("SceneStore.insert", () => insert(scene, timers)),
    update: (scene, timers) => sql.write("SceneStore.update", () => update(scene, timers)),
    remove: (projectId, sceneId) =>
      sql.write("SceneStore.remove", () => {
        const row = sql.get<SceneRow>("DELETE FROM scene WHERE scene_id = ? AND project_id = ? RETURNING *", [
          sceneId,
          projectId
        ])
        return Option.map(Option.fromUndefinedOr(row), sceneFromRow)
      }),
    get: (projectId, sceneId) => sql.read("SceneStore.get", () => Option.fromUndefinedOr(findIn(projectId, sceneId))),
    find: (sceneIds) => sql.read("SceneStore.find", () => sceneIds.flatMap((sceneId) => find(sceneId) ?? [])),
    list: (projectId, { name, status }, page) =>
      sql.read("SceneStore.list", () => {
        const { items, total } = pageOf<SceneRow>(sql, {
          table: "scene",
          where: `project_id = ? ${name === undefined ? "" : "AND instr(name, ?) > 0"} ${
            status === undefined ? "" : "AND status = ?"
          }`,
          values: [projectId, ...name === undefined ? [] : [name], ...status === undefined ? [] : [status]],
          order: "created_at DESC, seq DESC",
          page
        })
        return { items: items.map(sceneFromRow), total }
      }),
    watching: (productKeys) =>
      sql.read("SceneStore.watching", () =>
        sql.all<SceneRow>(
          `SELECT * FROM scene WHERE status = 'enable' AND scene_id IN (
            SELECT scene_id FROM scene_product WHERE product_key IN (SELECT value FROM json_each(?))
          )`,
          [JSON.stringify(productKeys)]
        ).map(sceneFromRow)),
    pause: (sceneId, until) =>
      sql.write("SceneStore.pause", () => {
        sql.run("UPDATE scene SET paused_until = ? WHERE scene_id = ?", [until, sceneId])
      })
  })
}
