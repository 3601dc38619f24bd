/**
 * Executions of scenes and their timers on PostgreSQL.
 */
import {
  type Execution,
  ExecutionStore,
  growTree,
  hasFired,
  keptExecutions,
  type NewExecution,
  type ProjectId,
  type SceneId,
  type TreeEnd,
  type TreeGrowth,
  treeKeptMillis
} from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { clients } from "./LongReads.ts"
import {
  addExecutions,
  executionFromRow,
  type ExecutionRow,
  timerFromRow,
  type TimerRow,
  waitingFromRow,
  type WaitingRow
} from "./SceneRow.ts"
import { storeError } from "./PgErrors.ts"
import { booleans, instant, instants, texts, wholeNumbers } from "./PgParameters.ts"

/** How many executions of a scene are deleted at a time: more than are stored at a time. */
const maxForgotten = 1000

const json = (value: unknown): string => JSON.stringify(value)

const make = Effect.gen(function*() {
  const { reads, sql } = yield* clients

  const store = (unordered: ReadonlyArray<Execution>) => {
    // In one order everywhere, so that two nodes do not wait for each other.
    const executions = unordered.toSorted((a, b) => a.executionId < b.executionId ? -1 : 1)
    return sql<{ readonly execution_id: string }>`
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
  }

  /**
   * Deletes the executions that have ended and are beyond those that are kept.
   * Looks from scene to scene and then by id: a plan that joins reads what is kept
   * of each scene again for each of its executions.
   */
  const forgetOldest = (sceneIds: ReadonlyArray<SceneId>, keepSince: number) =>
    sql`
      WITH beyond AS MATERIALIZED (
        SELECT ended.scene_id, newest.seq FROM unnest(${texts(sceneIds)}) AS ended (scene_id) CROSS JOIN LATERAL (
          SELECT seq FROM scene_execution AS other WHERE other.scene_id = ended.scene_id AND other.due_at IS NULL
          ORDER BY seq DESC LIMIT 1 OFFSET ${keptExecutions}
        ) AS newest
      )
      DELETE FROM scene_execution WHERE execution_id = ANY(ARRAY(
        SELECT surplus.execution_id FROM beyond CROSS JOIN LATERAL (
          SELECT execution_id FROM scene_execution AS other
          WHERE other.scene_id = beyond.scene_id AND other.due_at IS NULL AND other.seq <= beyond.seq
            AND NOT (other.has_fired AND other.fired_at >= ${instant(keepSince)})
          ORDER BY seq DESC LIMIT ${maxForgotten}
        ) AS surplus
      ))`

  /** As `growTree`, in the statement that stores the execution. */
  const enqueueChild = (child: NewExecution, rootId: string, growth: TreeGrowth) => {
    const { adds, at, limits } = growth
    const first = growTree(undefined, growth)
    return sql<{ readonly ended: TreeEnd | null }>`
      WITH forgotten AS (
        DELETE FROM scene_tree WHERE root_id IN (
          SELECT root_id FROM scene_tree
          WHERE started_at < ${instant(at - treeKeptMillis)} AND root_id <> ${rootId}
          LIMIT 10 FOR UPDATE SKIP LOCKED
        )
      ), grown AS (
        INSERT INTO scene_tree AS tree (root_id, actions, started_at, ended)
        SELECT ${rootId}, ${first.actions}::bigint, ${instant(at)}, ${first.ended}
        WHERE NOT EXISTS (SELECT FROM scene_execution WHERE execution_id = ${child.executionId})
        ON CONFLICT (root_id) DO UPDATE SET
          actions = tree.actions + ${adds}::bigint,
          ended = CASE
            WHEN tree.ended IS NOT NULL THEN tree.ended
            WHEN tree.started_at <= ${instant(at - limits.duration)} THEN 'duration'
            WHEN tree.actions + ${adds}::bigint > ${limits.actions}::bigint THEN 'actions'
          END
        RETURNING ended
      ), stored AS (
        INSERT INTO scene_execution
          (execution_id, root_id, scene_id, project_id, fired_at, event, chain, due_at, updated_at)
        SELECT ${child.executionId}, ${rootId}, scene_id, ${child.projectId}, ${instant(child.at)},
          ${json(child.event)}::json, ${json(child.chain)}::json, ${instant(child.at)}, ${instant(child.at)}
        FROM grown, scene WHERE grown.ended IS NULL AND scene.scene_id = ${child.sceneId}
        ON CONFLICT DO NOTHING
      )
      SELECT ended FROM grown`
  }

  return ExecutionStore.of({
    enqueue: (fired) =>
      Effect.asVoid(addExecutions(sql, fired)).pipe(Effect.mapError(storeError("ExecutionStore.enqueue"))),
    enqueueChild: (child, rootId, growth) =>
      enqueueChild(child, rootId, growth).pipe(
        Effect.map(([row]) => row?.ended ?? null),
        Effect.mapError(storeError("ExecutionStore.enqueueChild"))
      ),
    endedTrees: (rootIds) =>
      sql<{ readonly root_id: string; readonly ended: TreeEnd }>`
        SELECT root_id, ended FROM scene_tree WHERE root_id = ANY(${texts(rootIds)}) AND ended IS NOT NULL`.pipe(
        Effect.map((rows) => new Map(rows.map(({ ended, root_id }) => [root_id, ended]))),
        Effect.mapError(storeError("ExecutionStore.endedTrees"))
      ),
    countPending: (projectIds, limit) =>
      sql<{ readonly project_id: string; readonly count: bigint }>`
        SELECT * FROM (
          SELECT project_id, (
            SELECT count(*) FROM (
              SELECT FROM scene_execution
              WHERE scene_execution.project_id = wanted.project_id AND due_at IS NOT NULL LIMIT ${limit}
            ) AS waiting
          ) AS count FROM unnest(${texts(projectIds)}) AS wanted (project_id)
        ) AS counted WHERE count > 0`.pipe(
        Effect.map((rows) => new Map(rows.map(({ count, project_id }) => [project_id as ProjectId, Number(count)]))),
        Effect.mapError(storeError("ExecutionStore.countPending"))
      ),
    note: (executions) =>
      sql`
        INSERT INTO scene_execution
          (execution_id, scene_id, project_id, fired_at, event, chain, status, reason, updated_at)
        SELECT execution_id, scene_id, noted.project_id, fired_at, event, chain, noted.status, reason, noted.updated_at
        FROM unnest(
          ${texts(executions.map(({ executionId }) => executionId))},
          ${texts(executions.map(({ sceneId }) => sceneId))},
          ${texts(executions.map(({ projectId }) => projectId))},
          ${instants(executions.map(({ at }) => at))},
          ${texts(executions.map(({ event }) => json(event)))}::json[],
          ${texts(executions.map(({ chain }) => json(chain)))}::json[],
          ${texts(executions.map(({ status }) => status))},
          ${texts(executions.map(({ reason }) => reason))},
          ${instants(executions.map(({ updatedAt }) => updatedAt))}
        ) AS noted (execution_id, scene_id, project_id, fired_at, event, chain, status, reason, updated_at)
        JOIN scene USING (scene_id)
        -- In one order everywhere, so that two nodes do not wait for each other.
        ORDER BY execution_id
        ON CONFLICT (execution_id) DO UPDATE SET seq = DEFAULT, fired_at = excluded.fired_at, event = excluded.event,
          chain = excluded.chain, status = excluded.status, reason = excluded.reason,
          updated_at = excluded.updated_at`.pipe(
        Effect.asVoid,
        Effect.mapError(storeError("ExecutionStore.note"))
      ),
    claim: ({ again, except, limit, now }) =>
      sql<ExecutionRow>`
        WITH RECURSIVE project (project_id) AS (
          -- From one project to the next in the index: a backlog is not read to find the others.
          (SELECT project_id FROM scene_execution WHERE due_at IS NOT NULL ORDER BY project_id LIMIT 1)
          UNION ALL
          SELECT (
            SELECT following.project_id FROM scene_execution AS following
            WHERE following.due_at IS NOT NULL AND following.project_id > project.project_id
            ORDER BY following.project_id LIMIT 1
          ) FROM project WHERE project_id IS NOT NULL
        ), served AS (
          SELECT project_id, ceil(${limit}::float8 / count(*) OVER ())::bigint AS share FROM project
          WHERE project_id <> ALL(${texts(except)}) AND EXISTS (
            SELECT FROM scene_execution AS one
            WHERE one.project_id = project.project_id AND one.due_at <= ${instant(now)}
          )
          -- If not all projects can be served, none of them is always left out.
          ORDER BY random() LIMIT ${limit}
        ), due AS (
          SELECT waiting.execution_id FROM served CROSS JOIN LATERAL (
            SELECT execution_id FROM scene_execution
            WHERE scene_execution.project_id = served.project_id AND due_at <= ${instant(now)}
            ORDER BY due_at, seq LIMIT served.share FOR UPDATE SKIP LOCKED
          ) AS waiting LIMIT ${limit}
        ), claimed AS (
          UPDATE scene_execution SET due_at = ${instant(again)}, revision = revision + 1
          FROM due WHERE scene_execution.execution_id = due.execution_id
          RETURNING scene_execution.*
        )
        SELECT * FROM claimed ORDER BY seq`.pipe(
        Effect.map((rows) => rows.map(executionFromRow)),
        Effect.mapError(storeError("ExecutionStore.claim"))
      ),
    save: Effect.fnUntraced(function*(executions: ReadonlyArray<Execution>, keepSince: number) {
      const rows = yield* store(executions)
      const stored = new Set(rows.map(({ execution_id }) => execution_id))
      const ended = executions.filter(({ dueAt, executionId }) => dueAt === null && stored.has(executionId))
      if (ended.length > 0) yield* forgetOldest([...new Set(ended.map(({ sceneId }) => sceneId))], keepSince)
      return executions.map(({ executionId }) => stored.has(executionId))
    }, Effect.mapError(storeError("ExecutionStore.save"))),
    countFired: (sceneIds, since, until) =>
      sql<{ readonly scene_id: string; readonly count: bigint }>`
        SELECT scene_id, count(*) AS count FROM scene_execution
        WHERE scene_id = ANY(${texts(sceneIds)}) AND has_fired
          AND fired_at BETWEEN ${instant(since)} AND ${instant(until)}
        GROUP BY scene_id`.pipe(
        Effect.map((rows) => new Map(rows.map(({ count, scene_id }) => [scene_id as SceneId, Number(count)]))),
        Effect.mapError(storeError("ExecutionStore.countFired"))
      ),
    executions: (sceneId, { page, pageSize }) =>
      reads<ExecutionRow>`SELECT * FROM scene_execution WHERE scene_id = ${sceneId}
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
      }).pipe(sql.withTransaction, Effect.mapError(storeError("ExecutionStore.tick"))),
    hasten: ({ after, limit, step }) =>
      Effect.gen(function*() {
        const rows = yield* sql<TimerRow>`SELECT * FROM scene_timer WHERE due_at IS NOT NULL AND cron_id > ${after}
          ORDER BY cron_id LIMIT ${limit}`
        const earlier = rows.flatMap((row) => {
          const dueAt = step(timerFromRow(row))
          return dueAt !== null && dueAt < row.due_at.getTime() ? [{ row, dueAt }] : []
        })
        if (earlier.length > 0) {
          yield* sql`UPDATE scene_timer SET due_at = next.due_at
            FROM unnest(
              ${texts(earlier.map(({ row }) => row.cron_id))}, ${
            instants(earlier.map(({ row }) => row.due_at.getTime()))
          },
              ${instants(earlier.map(({ dueAt }) => dueAt))}
            ) AS next (cron_id, before, due_at)
            WHERE scene_timer.cron_id = next.cron_id AND scene_timer.due_at = next.before`
        }
        return rows.at(-1)?.cron_id
      }).pipe(Effect.mapError(storeError("ExecutionStore.hasten"))),
    tickLasting: ({ admit, limit, now }) =>
      Effect.gen(function*() {
        const rows = yield* sql<WaitingRow & { readonly lasts: boolean }>`
          WITH due AS (
            SELECT scene_id, device_id, minutes FROM scene_waiting WHERE due_at <= ${instant(now)}
            ORDER BY due_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
          ), taken AS (
            DELETE FROM scene_waiting USING due WHERE scene_waiting.scene_id = due.scene_id
              AND scene_waiting.device_id = due.device_id AND scene_waiting.minutes = due.minutes
            RETURNING scene_waiting.*
          )
          SELECT taken.*, EXISTS (SELECT FROM scene WHERE scene.scene_id = taken.scene_id) AND EXISTS (
            SELECT FROM device WHERE device.device_id = taken.device_id AND device.enabled
              AND device.status = taken.status AND device.status_changed_at = taken.since
          ) AS lasts FROM taken ORDER BY due_at`
        const lasting = rows.filter(({ lasts }) => lasts).map(waitingFromRow).filter(admit)
        if (lasting.length > 0) yield* addExecutions(sql, lasting)
        return rows.length
      }).pipe(sql.withTransaction, Effect.mapError(storeError("ExecutionStore.tickLasting"))),
    prune: ({ before, limit }) =>
      reads`DELETE FROM scene_execution WHERE execution_id = ANY(ARRAY(
          SELECT execution_id FROM scene_execution WHERE due_at IS NULL AND updated_at < ${instant(before)}
          ORDER BY updated_at LIMIT ${limit}
        )) RETURNING 1`.pipe(
        Effect.map((rows) => rows.length),
        Effect.mapError(storeError("ExecutionStore.prune"))
      )
  })
})

export const layer: Layer.Layer<ExecutionStore, never, PgClient.PgClient> = Layer.effect(ExecutionStore, make)
