/**
 * Scenes on PostgreSQL.
 */
import { type Scene, SceneStore, type SceneTimer, watchedProducts } from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { clients } from "./LongReads.ts"
import { paginate } from "./Pagination.ts"
import { isForeignKeyViolation, isUniqueViolation, storeError } from "./PgErrors.ts"
import { instant, instants, texts } from "./PgParameters.ts"
import { sceneFromRow, type SceneRow } from "./SceneRow.ts"

const json = (value: unknown): string => JSON.stringify(value)

const make = Effect.gen(function*() {
  const { reads, sql } = yield* clients

  /** Which products fire the scene, and when its timers do. */
  const setRest = Effect.fnUntraced(function*(scene: Scene, timers: ReadonlyArray<SceneTimer>) {
    const { sceneId } = scene
    yield* sql`DELETE FROM scene_product WHERE scene_id = ${sceneId}`
    const cronIds = texts(timers.map(({ cronId }) => cronId))
    yield* sql`DELETE FROM scene_timer WHERE scene_id = ${sceneId} AND cron_id <> ALL(${cronIds})`
    const products = watchedProducts(scene)
    if (products.length > 0) {
      yield* sql`INSERT INTO scene_product (product_key, scene_id)
        SELECT product_key, ${sceneId} FROM unnest(${texts(products)}) AS product_key`
    }
    if (timers.length > 0) {
      yield* sql`INSERT INTO scene_timer (cron_id, scene_id, project_id, cron, time_zone, due_at)
        SELECT cron_id, ${sceneId}, ${scene.projectId}, cron, nullif(time_zone, ''), due_at FROM unnest(
          ${cronIds}, ${texts(timers.map(({ cron }) => cron))}, ${texts(timers.map(({ timeZone }) => timeZone ?? ""))},
          ${instants(timers.map(({ dueAt }) => dueAt))}
        ) AS timer (cron_id, cron, time_zone, due_at)
        ON CONFLICT (cron_id) DO UPDATE SET
          due_at = CASE WHEN excluded.due_at IS NOT NULL THEN coalesce(scene_timer.due_at, excluded.due_at) END`
    }
  })

  const insert = Effect.fnUntraced(
    function*(scene: Scene, timers: ReadonlyArray<SceneTimer>) {
      yield* sql`INSERT INTO scene (scene_id, project_id, name, description, status, triggers, conditions, actions,
          paused_until, revision, created_at, updated_at)
        VALUES (${scene.sceneId}, ${scene.projectId}, ${scene.name}, ${scene.desc}, ${scene.status},
          ${json(scene.triggers)}::json, ${json(scene.conditions)}::json, ${json(scene.actions)}::json,
          ${scene.pausedUntil === null ? null : instant(scene.pausedUntil)}, ${scene.revision},
          ${instant(scene.createdAt)}, ${instant(scene.updatedAt)})`
      yield* setRest(scene, timers)
      return "inserted" as const
    },
    sql.withTransaction
  )

  const update = Effect.fnUntraced(
    function*(scene: Scene, timers: ReadonlyArray<SceneTimer>) {
      const [row] = yield* sql`UPDATE scene SET name = ${scene.name}, description = ${scene.desc},
          status = ${scene.status}, triggers = ${json(scene.triggers)}::json,
          conditions = ${json(scene.conditions)}::json, actions = ${json(scene.actions)}::json,
          paused_until = ${scene.pausedUntil === null ? null : instant(scene.pausedUntil)},
          revision = ${scene.revision}, updated_at = ${instant(scene.updatedAt)}
        WHERE scene_id = ${scene.sceneId} AND project_id = ${scene.projectId} AND revision = ${scene.revision - 1}
        RETURNING scene_id`
      if (row === undefined) return "changed" as const
      yield* setRest(scene, timers)
      return "updated" as const
    },
    sql.withTransaction
  )

  return SceneStore.of({
    insert: (scene, timers) =>
      insert(scene, timers).pipe(
        Effect.catchIf(isUniqueViolation, () => Effect.succeed("taken" as const)),
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeed("no-project" as const)),
        Effect.mapError(storeError("SceneStore.insert"))
      ),
    update: (scene, timers) =>
      update(scene, timers).pipe(
        Effect.catchIf(isUniqueViolation, () => Effect.succeed("taken" as const)),
        Effect.mapError(storeError("SceneStore.update"))
      ),
    remove: (projectId, sceneId) =>
      sql<SceneRow>`
        WITH executions AS (
          DELETE FROM scene_execution WHERE scene_id = ${sceneId} AND project_id = ${projectId}
        )
        DELETE FROM scene WHERE scene_id = ${sceneId} AND project_id = ${projectId} RETURNING *`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), sceneFromRow)),
        Effect.mapError(storeError("SceneStore.remove"))
      ),
    get: (projectId, sceneId) =>
      sql<SceneRow>`SELECT * FROM scene WHERE scene_id = ${sceneId} AND project_id = ${projectId}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), sceneFromRow)),
        Effect.mapError(storeError("SceneStore.get"))
      ),
    find: (sceneIds) =>
      sql<SceneRow>`SELECT * FROM scene WHERE scene_id = ANY(${texts(sceneIds)})`.pipe(
        Effect.map((rows) => rows.map(sceneFromRow)),
        Effect.mapError(storeError("SceneStore.find"))
      ),
    list: (projectId, { name, status }, page) =>
      paginate<SceneRow>(reads, {
        table: "scene",
        where: sql.and([
          sql`project_id = ${projectId}`,
          ...name === undefined ? [] : [sql`strpos(name, ${name}) > 0`],
          ...status === undefined ? [] : [sql`status = ${status}`]
        ]),
        tieBreaker: "seq",
        select: sql`SELECT * FROM page`,
        page
      }).pipe(
        Effect.map(({ items, total }) => ({ items: items.map(sceneFromRow), total })),
        Effect.mapError(storeError("SceneStore.list"))
      ),
    watching: (productKeys) =>
      sql<SceneRow>`SELECT * FROM scene WHERE status = 'enable' AND scene_id IN (
          SELECT scene_id FROM scene_product WHERE product_key = ANY(${texts(productKeys)})
        )`.pipe(
        Effect.map((rows) => rows.map(sceneFromRow)),
        Effect.mapError(storeError("SceneStore.watching"))
      ),
    pause: (sceneId, until) =>
      sql`UPDATE scene SET paused_until = ${instant(until)} WHERE scene_id = ${sceneId}`.pipe(
        Effect.asVoid,
        Effect.mapError(storeError("SceneStore.pause"))
      )
  })
})

export const layer: Layer.Layer<SceneStore, never, PgClient.PgClient> = Layer.effect(SceneStore, make)
