/**
 * Scenes on PostgreSQL.
 */
import {
  type Execution,
  hasFired,
  keptExecutions,
  type NewExecution,
  type Scene,
  type SceneId,
  SceneStore,
  type SceneTimer,
  watchedProducts,
  type WebhookKeys
} from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import {
  addExecutions,
  executionFromRow,
  type ExecutionRow,
  sceneFromRow,
  type SceneRow,
  timerFromRow,
  type TimerRow
} from "./SceneRow.ts"
import { paginate } from "./Pagination.ts"
import { isForeignKeyViolation, isUniqueViolation, storeError } from "./PgErrors.ts"
import { booleans, instant, instants, texts, wholeNumbers } from "./PgParameters.ts"

interface KeysRow {
  readonly current: string
  readonly created_at: Date
  readonly previous: string | null
  readonly previous_until: Date | null
}

const keysFromRow = (row: KeysRow): WebhookKeys => ({
  current: row.current,
  createdAt: row.created_at.getTime(),
  previous: row.previous === null || row.previous_until === null
    ? null
    : { key: row.previous, until: row.previous_until.getTime() }
})

const json = (value: unknown): string => JSON.stringify(value)

const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient

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
      yield* sql`INSERT INTO scene_timer (cron_id, scene_id, project_id, cron, due_at)
        SELECT cron_id, ${sceneId}, ${scene.projectId}, cron, due_at FROM unnest(
          ${cronIds}, ${texts(timers.map(({ cron }) => cron))}, ${instants(timers.map(({ dueAt }) => dueAt))}
        ) AS timer (cron_id, cron, due_at)
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

  const store = (executions: ReadonlyArray<Execution>) =>
    sql<{ readonly execution_id: string }>`
      UPDATE scene_execution SET status = saved.status, reason = saved.reason, verdict = saved.verdict,
        outcomes = saved.outcomes, due_at = saved.due_at, updated_at = saved.updated_at, has_fired = saved.has_fired
      FROM unnest(
        ${texts(executions.map(({ executionId }) => executionId))},
        ${wholeNumbers(executions.map(({ revision }) => revision))}::bigint[],
        ${texts(executions.map(({ status }) => status))},
        ${texts(executions.map(({ reason }) => reason))},
        ${texts(executions.map(({ verdict }) => json(verdict)))}::json[],
        ${texts(executions.map(({ outcomes }) => json(outcomes)))}::json[],
        ${instants(executions.map(({ dueAt }) => dueAt))},
        ${instants(executions.map(({ updatedAt }) => updatedAt))},
        ${booleans(executions.map(hasFired))}
      ) AS saved (execution_id, revision, status, reason, verdict, outcomes, due_at, updated_at, has_fired)
      WHERE scene_execution.execution_id = saved.execution_id AND scene_execution.revision = saved.revision
      RETURNING scene_execution.execution_id`

  /** Deletes what is left of the executions that have ended. */
  const forgetOldest = (sceneIds: ReadonlyArray<SceneId>, keepSince: number) =>
    sql`
      DELETE FROM scene_execution USING unnest(${texts(sceneIds)}) AS ended (scene_id)
      WHERE scene_execution.scene_id = ended.scene_id AND scene_execution.due_at IS NULL
        AND scene_execution.seq <= (
          SELECT seq FROM scene_execution AS other WHERE other.scene_id = ended.scene_id AND other.due_at IS NULL
          ORDER BY seq DESC LIMIT 1 OFFSET ${keptExecutions}
        )
        AND NOT (scene_execution.has_fired AND scene_execution.fired_at >= ${instant(keepSince)})`

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
      paginate<SceneRow>(sql, {
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
      ),
    enqueue: (fired) =>
      Effect.asVoid(addExecutions(sql, fired)).pipe(Effect.mapError(storeError("SceneStore.enqueue"))),
    claim: ({ again, except, limit, now }) =>
      sql<ExecutionRow>`
        WITH due AS (
          SELECT execution_id FROM scene_execution
          WHERE due_at <= ${instant(now)} AND project_id <> ALL(${texts(except)})
          ORDER BY due_at, seq LIMIT ${limit} FOR UPDATE SKIP LOCKED
        ), claimed AS (
          UPDATE scene_execution SET due_at = ${instant(again)}, revision = revision + 1
          FROM due WHERE scene_execution.execution_id = due.execution_id
          RETURNING scene_execution.*
        )
        SELECT * FROM claimed ORDER BY seq`.pipe(
        Effect.map((rows) => rows.map(executionFromRow)),
        Effect.mapError(storeError("SceneStore.claim"))
      ),
    save: (executions, keepSince) =>
      Effect.gen(function*() {
        const rows = yield* store(executions)
        const stored = new Set(rows.map(({ execution_id }) => execution_id))
        const ended = executions.filter(({ dueAt, executionId }) => dueAt === null && stored.has(executionId))
        if (ended.length > 0) yield* forgetOldest([...new Set(ended.map(({ sceneId }) => sceneId))], keepSince)
        return executions.map(({ executionId }) => stored.has(executionId))
      }).pipe(Effect.mapError(storeError("SceneStore.save"))),
    countFired: (sceneIds, since) =>
      sql<{ readonly scene_id: string; readonly count: bigint }>`
        SELECT scene_id, count(*) AS count FROM scene_execution
        WHERE scene_id = ANY(${texts(sceneIds)}) AND has_fired AND fired_at >= ${instant(since)}
        GROUP BY scene_id`.pipe(
        Effect.map((rows) => new Map(rows.map(({ count, scene_id }) => [scene_id as SceneId, Number(count)]))),
        Effect.mapError(storeError("SceneStore.countFired"))
      ),
    executions: (sceneId, { page, pageSize }) =>
      sql<ExecutionRow>`SELECT * FROM scene_execution WHERE scene_id = ${sceneId}
        ORDER BY seq DESC LIMIT ${keptExecutions}`.pipe(
        Effect.map((rows) => ({
          items: rows.slice((page - 1) * pageSize, page * pageSize).map(executionFromRow),
          total: rows.length
        })),
        Effect.mapError(storeError("SceneStore.executions"))
      ),
    tick: ({ limit, now, step }) =>
      Effect.gen(function*() {
        const rows = yield* sql<TimerRow>`SELECT * FROM scene_timer WHERE due_at <= ${instant(now)}
          ORDER BY due_at LIMIT ${limit} FOR UPDATE SKIP LOCKED`
        if (rows.length === 0) return 0
        const steps = rows.map((row) => step(timerFromRow(row)))
        yield* sql`UPDATE scene_timer SET due_at = next.due_at
          FROM unnest(
            ${texts(rows.map(({ cron_id }) => cron_id))}, ${instants(steps.map(({ dueAt }) => dueAt))}
          ) AS next (cron_id, due_at) WHERE scene_timer.cron_id = next.cron_id`
        const executions = steps.flatMap(({ execution }): ReadonlyArray<NewExecution> =>
          execution === undefined ? [] : [execution]
        )
        if (executions.length > 0) yield* addExecutions(sql, executions)
        return rows.length
      }).pipe(sql.withTransaction, Effect.mapError(storeError("SceneStore.tick"))),
    webhookKeys: (projectId) =>
      sql<KeysRow>`SELECT * FROM webhook_key WHERE project_id = ${projectId}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), keysFromRow)),
        Effect.mapError(storeError("SceneStore.webhookKeys"))
      ),
    putWebhookKeys: (projectId, before, { createdAt, current, previous }) =>
      (before === null
        ? sql`INSERT INTO webhook_key (project_id, current, created_at)
            VALUES (${projectId}, ${current}, ${instant(createdAt)}) ON CONFLICT DO NOTHING RETURNING project_id`
        : sql`UPDATE webhook_key SET current = ${current}, created_at = ${instant(createdAt)},
            previous = ${previous?.key ?? null},
            previous_until = ${previous === null ? null : instant(previous.until)}
          WHERE project_id = ${projectId} AND created_at = ${instant(before)} RETURNING project_id`).pipe(
          Effect.map((rows) => rows.length > 0),
          Effect.mapError(storeError("SceneStore.putWebhookKeys"))
        )
  })
})

export const layer: Layer.Layer<SceneStore, never, PgClient.PgClient> = Layer.effect(SceneStore, make)
