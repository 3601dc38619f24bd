/**
 * The rows of scenes, timers and executions, and the statement that stores new
 * executions.
 */
import {
  type Execution,
  type ExecutionStatus,
  isWaiting,
  type NewExecution,
  type ProjectId,
  type Scene,
  type SceneId,
  type SceneStatus,
  type SceneTimer,
  type WaitingExecution
} from "@device-cloud/core"
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { booleans, instants, texts, wholeNumbers } from "./PgParameters.ts"

export interface SceneRow {
  readonly scene_id: string
  readonly project_id: string
  readonly name: string
  readonly description: string
  readonly status: string
  readonly triggers: Scene["triggers"]
  readonly conditions: Scene["conditions"]
  readonly actions: Scene["actions"]
  readonly paused_until: Date | null
  readonly revision: bigint
  readonly created_at: Date
  readonly updated_at: Date
}

export const sceneFromRow = (row: SceneRow): Scene => ({
  sceneId: row.scene_id as SceneId,
  projectId: row.project_id as ProjectId,
  name: row.name,
  desc: row.description,
  status: row.status as SceneStatus,
  triggers: row.triggers,
  conditions: row.conditions,
  actions: row.actions,
  pausedUntil: row.paused_until?.getTime() ?? null,
  revision: Number(row.revision),
  createdAt: row.created_at.getTime(),
  updatedAt: row.updated_at.getTime()
})

export interface TimerRow {
  readonly cron_id: string
  readonly scene_id: string
  readonly project_id: string
  readonly cron: string
  readonly time_zone: string | null
  readonly due_at: Date
}

export const timerFromRow = (row: TimerRow): SceneTimer & { readonly dueAt: number } => ({
  cronId: row.cron_id,
  sceneId: row.scene_id as SceneId,
  projectId: row.project_id as ProjectId,
  cron: row.cron,
  timeZone: row.time_zone,
  dueAt: row.due_at.getTime()
})

export interface ExecutionRow {
  readonly execution_id: string
  readonly root_id: string | null
  readonly scene_id: string
  readonly project_id: string
  readonly fired_at: Date
  readonly event: Execution["event"]
  readonly chain: Execution["chain"]
  readonly status: string
  readonly reason: string
  readonly verdict: Execution["verdict"]
  readonly outcomes: Execution["outcomes"]
  readonly due_at: Date | null
  readonly revision: bigint
  readonly updated_at: Date
}

export const executionFromRow = (row: ExecutionRow): Execution => ({
  executionId: row.execution_id,
  rootId: row.root_id,
  sceneId: row.scene_id as SceneId,
  projectId: row.project_id as ProjectId,
  at: row.fired_at.getTime(),
  event: row.event,
  chain: row.chain,
  status: row.status as ExecutionStatus,
  reason: row.reason,
  verdict: row.verdict,
  outcomes: row.outcomes,
  dueAt: row.due_at?.getTime() ?? null,
  revision: Number(row.revision),
  updatedAt: row.updated_at.getTime()
})

interface Fired {
  readonly execution: NewExecution
  /** The execution is stored only if the shadow of this device is written. */
  readonly bound?: { readonly deviceId: string }
}

/**
 * Stores executions of scenes that exist. Those that are bound are stored only if
 * their device is in `written`, which the statement around this one defines.
 */
export const insertExecutions = (sql: SqlClient.SqlClient, fired: ReadonlyArray<Fired>) =>
  sql`
    INSERT INTO scene_execution (execution_id, scene_id, project_id, fired_at, event, chain, due_at, updated_at)
    SELECT fired.execution_id, fired.scene_id, fired.project_id, fired.at, fired.event, fired.chain, fired.at, fired.at
    FROM unnest(
      ${texts(fired.map(({ execution }) => execution.executionId))},
      ${texts(fired.map(({ execution }) => execution.sceneId))},
      ${texts(fired.map(({ execution }) => execution.projectId))},
      ${instants(fired.map(({ execution }) => execution.at))},
      ${texts(fired.map(({ execution }) => JSON.stringify(execution.event)))}::json[],
      ${texts(fired.map(({ execution }) => JSON.stringify(execution.chain)))}::json[],
      ${texts(fired.map(({ bound }) => bound?.deviceId ?? ""))},
      ${booleans(fired.map(({ bound }) => bound !== undefined))}
    ) AS fired (execution_id, scene_id, project_id, at, event, chain, device_id, bound)
    JOIN scene USING (scene_id)
    WHERE NOT fired.bound OR fired.device_id IN (SELECT device_id FROM written)
    ON CONFLICT DO NOTHING`

/** Stores executions of scenes that exist, as a statement of its own. */
export const addExecutions = (sql: SqlClient.SqlClient, executions: ReadonlyArray<NewExecution>) =>
  sql`
    WITH written (device_id) AS (SELECT ''), fired AS (
      ${insertExecutions(sql, executions.map((execution) => ({ execution })))}
    )
    SELECT 1`

export interface WaitingRow {
  readonly execution_id: string
  readonly scene_id: string
  readonly project_id: string
  readonly event: WaitingExecution["event"]
  readonly due_at: Date
}

export const waitingFromRow = (row: WaitingRow): WaitingExecution => ({
  executionId: row.execution_id,
  sceneId: row.scene_id as SceneId,
  projectId: row.project_id as ProjectId,
  at: row.due_at.getTime(),
  event: row.event,
  chain: []
})

/** Stores executions that wait for a status to last, each in place of an earlier one of its scene, device and minutes. */
const addWaiting = (sql: SqlClient.SqlClient, waiting: ReadonlyArray<WaitingExecution>) =>
  sql`
    INSERT INTO scene_waiting
      (scene_id, device_id, minutes, execution_id, project_id, event, status, since, due_at)
    SELECT scene_id, device_id, minutes, execution_id, waiting.project_id, event, waiting.status, since, due_at
    FROM unnest(
      ${texts(waiting.map(({ sceneId }) => sceneId))},
      ${texts(waiting.map(({ event }) => event.device.deviceId))},
      ${wholeNumbers(waiting.map(({ event }) => event.minutes))}::integer[],
      ${texts(waiting.map(({ executionId }) => executionId))},
      ${texts(waiting.map(({ projectId }) => projectId))},
      ${texts(waiting.map(({ event }) => JSON.stringify(event)))}::json[],
      ${texts(waiting.map(({ event }) => event.status))},
      ${instants(waiting.map(({ event }) => event.since))},
      ${instants(waiting.map(({ at }) => at))}
    ) AS waiting (scene_id, device_id, minutes, execution_id, project_id, event, status, since, due_at)
    JOIN scene USING (scene_id)
    ON CONFLICT (scene_id, device_id, minutes) DO UPDATE SET execution_id = excluded.execution_id,
      event = excluded.event, status = excluded.status, since = excluded.since, due_at = excluded.due_at`

/** Stores executions of scenes that exist, and those that wait for a status to last apart. */
export const addReactions = Effect.fnUntraced(
  function*(sql: SqlClient.SqlClient, reactions: ReadonlyArray<NewExecution>) {
    const waiting = reactions.filter(isWaiting)
    const fired = reactions.filter((reaction) => !isWaiting(reaction))
    if (fired.length > 0) yield* addExecutions(sql, fired)
    if (waiting.length > 0) yield* addWaiting(sql, waiting)
  }
)
