/**
 * Executions of scenes and their timers on SQLite.
 */
import {
  type DeviceStatus,
  type Execution,
  ExecutionStore,
  growTree,
  hasFired,
  keptExecutions,
  type NewExecution,
  pendingExecution,
  type ProjectId,
  type SceneId,
  type SceneTree,
  type TreeEnd,
  type TreeGrowth,
  treeKeptMillis,
  type WaitingExecution
} from "@device-cloud/core"
import { Effect, Layer } from "effect"
import {
  executionFromRow,
  type ExecutionRow,
  insertExecution,
  timerFromRow,
  type TimerRow,
  waitingFromRow,
  type WaitingRow
} from "./SceneRow.ts"
import { Sqlite } from "./Sqlite.ts"

/** Part of the group that is replaced together: executions go with their scene. */
export const layer: Layer.Layer<ExecutionStore, never, Sqlite> = Layer.effect(
  ExecutionStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

interface TreeRow {
  readonly actions: number
  readonly started_at: number
  readonly ended: TreeEnd | null
}

const treeFromRow = ({ actions, ended, started_at }: TreeRow): SceneTree => ({ actions, startedAt: started_at, ended })

const make = (sql: Sqlite["Service"]) => {
  const findTree = (rootId: string): SceneTree | undefined => {
    const row = sql.get<TreeRow>("SELECT actions, started_at, ended FROM scene_tree WHERE root_id = ?", [rootId])
    return row === undefined ? undefined : treeFromRow(row)
  }

  const enqueueChild = (child: NewExecution, rootId: string, growth: TreeGrowth): TreeEnd | null => {
    const isStored = sql.get("SELECT 1 FROM scene_execution WHERE execution_id = ?", [child.executionId]) !== undefined
    if (isStored) return null
    sql.run("DELETE FROM scene_tree WHERE started_at < ?", [growth.at - treeKeptMillis])
    const { actions, ended, startedAt } = growTree(findTree(rootId), growth)
    sql.run("INSERT OR REPLACE INTO scene_tree (root_id, actions, started_at, ended) VALUES (?, ?, ?, ?)", [
      rootId,
      actions,
      startedAt,
      ended
    ])
    if (ended === null) insertExecution(sql, pendingExecution(child, rootId))
    return ended
  }

  /** The projects that have executions that are due. Goes from one to the next in the index, past any backlog. */
  const dueProjects = (now: number, except: ReadonlyArray<ProjectId>, limit: number) =>
    sql.all<{ readonly project_id: string }>(
      `WITH RECURSIVE waiting (project_id) AS (
        SELECT min(project_id) FROM scene_execution WHERE due_at IS NOT NULL
        UNION ALL
        SELECT (
          SELECT min(following.project_id) FROM scene_execution AS following
          WHERE following.due_at IS NOT NULL AND following.project_id > waiting.project_id
        ) FROM waiting WHERE project_id IS NOT NULL
      )
      SELECT project_id FROM waiting
      WHERE project_id IS NOT NULL AND project_id NOT IN (SELECT value FROM json_each(?)) AND EXISTS (
        SELECT 1 FROM scene_execution AS one WHERE one.project_id = waiting.project_id AND one.due_at <= ?
      )
      -- If not all projects can be served, none of them is always left out.
      ORDER BY random() LIMIT ?`,
      [JSON.stringify(except), now, limit]
    )

  const claim = ({ again, except, limit, now }: Parameters<ExecutionStore["Service"]["claim"]>[0]) => {
    const served = dueProjects(now, except, limit)
    const share = Math.ceil(limit / served.length)
    const claimed: Array<Execution> = []
    for (const { project_id } of served) {
      const rows = sql.all<ExecutionRow>(
        "SELECT * FROM scene_execution WHERE project_id = ? AND due_at <= ? ORDER BY due_at, seq LIMIT ?",
        [project_id, now, Math.min(share, limit - claimed.length)]
      )
      for (const row of rows) {
        sql.run("UPDATE scene_execution SET due_at = ?, revision = revision + 1 WHERE execution_id = ?", [
          again,
          row.execution_id
        ])
        claimed.push(executionFromRow({ ...row, due_at: again, revision: row.revision + 1 }))
      }
    }
    return claimed
  }

  const save = (execution: Execution): boolean =>
    sql.run(
      `UPDATE scene_execution SET status = ?, reason = ?, verdict = ?, outcomes = ?, has_fired = ?, due_at = ?,
          updated_at = ?
        WHERE execution_id = ? AND revision = ?`,
      [
        execution.status,
        execution.reason,
        JSON.stringify(execution.verdict),
        JSON.stringify(execution.outcomes),
        hasFired(execution),
        execution.dueAt,
        execution.updatedAt,
        execution.executionId,
        execution.revision
      ]
    ) > 0

  /** Deletes the executions of a scene that have ended and are beyond those that are kept. */
  const forgetOldest = (sceneId: SceneId, keepSince: number) => {
    const beyond = sql.get<{ readonly seq: number }>(
      "SELECT seq FROM scene_execution WHERE scene_id = ? AND due_at IS NULL ORDER BY seq DESC LIMIT 1 OFFSET ?",
      [sceneId, keptExecutions]
    )
    if (beyond === undefined) return
    sql.run(
      `DELETE FROM scene_execution WHERE scene_id = ? AND due_at IS NULL AND seq <= ?
        AND NOT (has_fired = 1 AND fired_at >= ?)`,
      [sceneId, beyond.seq, keepSince]
    )
  }

  const isLasting = ({ device, since, status }: WaitingExecution["event"]): boolean => {
    const known = sql.get<
      { readonly enabled: number; readonly status: DeviceStatus; readonly status_changed_at: number | null }
    >("SELECT enabled, status, status_changed_at FROM device WHERE device_id = ?", [device.deviceId])
    return known?.enabled === 1 && known.status === status && known.status_changed_at === since
  }

  return ExecutionStore.of({
    enqueue: (fired) =>
      sql.write("ExecutionStore.enqueue", () => {
        for (const execution of fired) insertExecution(sql, pendingExecution(execution))
      }),
    enqueueChild: (child, rootId, growth) =>
      sql.write("ExecutionStore.enqueueChild", () => enqueueChild(child, rootId, growth)),
    endedTrees: (rootIds) =>
      sql.read("ExecutionStore.endedTrees", () =>
        new Map(
          rootIds.flatMap((rootId): ReadonlyArray<[string, TreeEnd]> => {
            const ended = findTree(rootId)?.ended ?? null
            return ended === null ? [] : [[rootId, ended]]
          })
        )),
    countPending: (projectIds, limit) =>
      sql.read("ExecutionStore.countPending", () =>
        new Map(
          projectIds.map((projectId): [ProjectId, number] => {
            const { count } = sql.get<{ readonly count: number }>(
              `SELECT count(*) AS count FROM (
                SELECT 1 FROM scene_execution WHERE project_id = ? AND due_at IS NOT NULL LIMIT ?
              )`,
              [projectId, limit]
            )!
            return [projectId, count]
          }).filter(([, count]) => count > 0)
        )),
    note: (executions) =>
      sql.write("ExecutionStore.note", () => {
        for (const execution of executions) {
          if (sql.get("SELECT 1 FROM scene WHERE scene_id = ?", [execution.sceneId]) === undefined) continue
          sql.run("DELETE FROM scene_execution WHERE execution_id = ?", [execution.executionId])
          insertExecution(sql, execution)
        }
      }),
    claim: (options) => sql.write("ExecutionStore.claim", () => claim(options)),
    save: (executions, keepSince) =>
      sql.write("ExecutionStore.save", () => {
        const saved = executions.map(save)
        const ended = executions.filter(({ dueAt }, i) => dueAt === null && saved[i] === true)
        for (const sceneId of new Set(ended.map(({ sceneId }) => sceneId))) forgetOldest(sceneId, keepSince)
        return saved
      }),
    countFired: (sceneIds, since, until) =>
      sql.read("ExecutionStore.countFired", () =>
        new Map(
          sceneIds.map((sceneId) => {
            const { count } = sql.get<{ readonly count: number }>(
              `SELECT count(*) AS count FROM scene_execution
                WHERE scene_id = ? AND has_fired = 1 AND fired_at BETWEEN ? AND ?`,
              [sceneId, since, until]
            )!
            return [sceneId, count]
          })
        )),
    executions: (sceneId, { page, pageSize }) =>
      sql.read("ExecutionStore.executions", () => {
        const offset = (page - 1) * pageSize
        const { count } = sql.get<{ readonly count: number }>(
          "SELECT count(*) AS count FROM (SELECT 1 FROM scene_execution WHERE scene_id = ? LIMIT ?)",
          [sceneId, keptExecutions]
        )!
        const rows = sql.all<ExecutionRow>(
          "SELECT * FROM scene_execution WHERE scene_id = ? ORDER BY seq DESC LIMIT ? OFFSET ?",
          [sceneId, Math.max(0, Math.min(pageSize, keptExecutions - offset)), offset]
        )
        return { items: rows.map(executionFromRow), total: count }
      }),
    tick: ({ limit, now, step }) =>
      sql.write("ExecutionStore.tick", () => {
        const due = sql.all<TimerRow>("SELECT * FROM scene_timer WHERE due_at <= ? ORDER BY due_at LIMIT ?", [
          now,
          limit
        ])
        for (const row of due) {
          const { dueAt, execution } = step(timerFromRow(row))
          sql.run("UPDATE scene_timer SET due_at = ? WHERE cron_id = ?", [dueAt, row.cron_id])
          if (execution !== undefined) insertExecution(sql, pendingExecution(execution))
        }
        return due.length
      }),
    hasten: ({ after, limit, step }) =>
      sql.write("ExecutionStore.hasten", () => {
        const found = sql.all<TimerRow>(
          "SELECT * FROM scene_timer WHERE due_at IS NOT NULL AND cron_id > ? ORDER BY cron_id LIMIT ?",
          [after, limit]
        )
        for (const row of found) {
          sql.run("UPDATE scene_timer SET due_at = ?1 WHERE cron_id = ?2 AND due_at > ?1", [
            step(timerFromRow(row)),
            row.cron_id
          ])
        }
        return found.at(-1)?.cron_id
      }),
    tickLasting: ({ admit, limit, now }) =>
      sql.write("ExecutionStore.tickLasting", () => {
        const due = sql.all<WaitingRow>("SELECT * FROM scene_waiting WHERE due_at <= ? ORDER BY due_at LIMIT ?", [
          now,
          limit
        ])
        for (const row of due) {
          sql.run("DELETE FROM scene_waiting WHERE scene_id = ? AND device_id = ? AND minutes = ?", [
            row.scene_id,
            row.device_id,
            row.minutes
          ])
          const execution = waitingFromRow(row)
          if (isLasting(execution.event) && admit(execution)) insertExecution(sql, pendingExecution(execution))
        }
        return due.length
      }),
    prune: ({ before, limit }) =>
      sql.write("ExecutionStore.prune", () =>
        sql.run(
          `DELETE FROM scene_execution WHERE seq IN (
            SELECT seq FROM scene_execution WHERE due_at IS NULL AND updated_at < ? ORDER BY updated_at LIMIT ?
          )`,
          [before, limit]
        ))
  })
}
