/**
 * Executions of scenes and their timers on PostgreSQL.
 */
import {
  type Execution,
  ExecutionStore,
  hasFired,
  keptExecutions,
  type NewExecution,
  type SceneId
} from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { addExecutions, executionFromRow, type ExecutionRow, timerFromRow, type TimerRow } from "./SceneRow.ts"
import { storeError } from "./PgErrors.ts"
import { booleans, instant, instants, texts, wholeNumbers } from "./PgParameters.ts"

const json = (value: unknown): string => JSON.stringify(value)

const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient

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

  /** Deletes the executions that have ended and are beyond those that are kept. */
  const forgetOldest = (sceneIds: ReadonlyArray<SceneId>, keepSince: number) =>
    sql`
      DELETE FROM scene_execution USING unnest(${texts(sceneIds)}) AS ended (scene_id)
      WHERE scene_execution.scene_id = ended.scene_id AND scene_execution.due_at IS NULL
        AND scene_execution.seq <= (
          SELECT seq FROM scene_execution AS other WHERE other.scene_id = ended.scene_id AND other.due_at IS NULL
          ORDER BY seq DESC LIMIT 1 OFFSET ${keptExecutions}
        )
        AND NOT (scene_execution.has_fired AND scene_execution.fired_at >= ${instant(keepSince)})`

  return ExecutionStore.of({
    enqueue: (fired) =>
      Effect.asVoid(addExecutions(sql, fired)).pipe(Effect.mapError(storeError("ExecutionStore.enqueue"))),
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
        Effect.mapError(storeError("ExecutionStore.claim"))
      ),
    save: (executions, keepSince) =>
      Effect.gen(function*() {
        const rows = yield* store(executions)
        const stored = new Set(rows.map(({ execution_id }) => execution_id))
        const ended = executions.filter(({ dueAt, executionId }) => dueAt === null && stored.has(executionId))
        if (ended.length > 0) yield* forgetOldest([...new Set(ended.map(({ sceneId }) => sceneId))], keepSince)
        return executions.map(({ executionId }) => stored.has(executionId))
      }).pipe(Effect.mapError(storeError("ExecutionStore.save"))),
    countFired: (sceneIds, since) =>
      sql<{ readonly scene_id: string; readonly count: bigint }>`
        SELECT scene_id, count(*) AS count FROM scene_execution
        WHERE scene_id = ANY(${texts(sceneIds)}) AND has_fired AND fired_at >= ${instant(since)}
        GROUP BY scene_id`.pipe(
        Effect.map((rows) => new Map(rows.map(({ count, scene_id }) => [scene_id as SceneId, Number(count)]))),
        Effect.mapError(storeError("ExecutionStore.countFired"))
      ),
    executions: (sceneId, { page, pageSize }) =>
      sql<ExecutionRow>`SELECT * FROM scene_execution WHERE scene_id = ${sceneId}
        ORDER BY seq DESC LIMIT ${keptExecutions}`.pipe(
        Effect.map((rows) => ({
          items: rows.slice((page - 1) * pageSize, page * pageSize).map(executionFromRow),
          total: rows.length
        })),
        Effect.mapError(storeError("ExecutionStore.executions"))
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
      }).pipe(sql.withTransaction, Effect.mapError(storeError("ExecutionStore.tick")))
  })
})

export const layer: Layer.Layer<ExecutionStore, never, PgClient.PgClient> = Layer.effect(ExecutionStore, make)
