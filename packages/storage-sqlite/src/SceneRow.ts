/**
 * Scenes, timers and executions as rows of SQLite, and how new executions are
 * stored.
 */
import {
  type Execution,
  hasFired,
  isWaiting,
  type NewExecution,
  pendingExecution,
  type ProjectId,
  type Scene,
  type SceneId,
  type SceneTimer,
  type WaitingExecution
} from "@device-cloud/core"
import type { Statements } from "./Sqlite.ts"

export interface SceneRow {
  readonly scene_id: string
  readonly project_id: string
  readonly name: string
  readonly description: string
  readonly status: Scene["status"]
  readonly triggers: string
  readonly conditions: string
  readonly actions: string
  readonly paused_until: number | null
  readonly revision: number
  readonly created_at: number
  readonly updated_at: number
}

export const sceneFromRow = (row: SceneRow): Scene => ({
  sceneId: row.scene_id as SceneId,
  projectId: row.project_id as ProjectId,
  name: row.name,
  desc: row.description,
  status: row.status,
  triggers: JSON.parse(row.triggers) as Scene["triggers"],
  conditions: JSON.parse(row.conditions) as Scene["conditions"],
  actions: JSON.parse(row.actions) as Scene["actions"],
  pausedUntil: row.paused_until,
  revision: row.revision,
  createdAt: row.created_at,
  updatedAt: row.updated_at
})

export interface TimerRow {
  readonly cron_id: string
  readonly scene_id: string
  readonly project_id: string
  readonly cron: string
  readonly time_zone: string | null
  readonly due_at: number
}

export const timerFromRow = (row: TimerRow): SceneTimer & { readonly dueAt: number } => ({
  cronId: row.cron_id,
  sceneId: row.scene_id as SceneId,
  projectId: row.project_id as ProjectId,
  cron: row.cron,
  timeZone: row.time_zone,
  dueAt: row.due_at
})

export interface ExecutionRow {
  readonly execution_id: string
  readonly root_id: string | null
  readonly scene_id: string
  readonly project_id: string
  readonly fired_at: number
  readonly event: string
  readonly chain: string
  readonly status: Execution["status"]
  readonly reason: string
  readonly verdict: string
  readonly outcomes: string
  readonly due_at: number | null
  readonly revision: number
  readonly updated_at: number
}

export const executionFromRow = (row: ExecutionRow): Execution => ({
  executionId: row.execution_id,
  rootId: row.root_id,
  sceneId: row.scene_id as SceneId,
  projectId: row.project_id as ProjectId,
  at: row.fired_at,
  event: JSON.parse(row.event) as Execution["event"],
  chain: JSON.parse(row.chain) as Execution["chain"],
  status: row.status,
  reason: row.reason,
  verdict: JSON.parse(row.verdict) as Execution["verdict"],
  outcomes: JSON.parse(row.outcomes) as Execution["outcomes"],
  dueAt: row.due_at,
  revision: row.revision,
  updatedAt: row.updated_at
})

/** Stores an execution as the newest of its scene, unless it is there or the scene is not. */
export const insertExecution = (sql: Statements, execution: Execution): void => {
  sql.run(
    `INSERT INTO scene_execution (execution_id, root_id, scene_id, project_id, fired_at, event, chain, status, reason,
        verdict, outcomes, has_fired, due_at, revision, updated_at)
      SELECT ?, ?, scene_id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM scene WHERE scene_id = ?
      ON CONFLICT DO NOTHING`,
    [
      execution.executionId,
      execution.rootId,
      execution.projectId,
      execution.at,
      JSON.stringify(execution.event),
      JSON.stringify(execution.chain),
      execution.status,
      execution.reason,
      JSON.stringify(execution.verdict),
      JSON.stringify(execution.outcomes),
      hasFired(execution),
      execution.dueAt,
      execution.revision,
      execution.updatedAt,
      execution.sceneId
    ]
  )
}

export interface WaitingRow {
  readonly scene_id: string
  readonly device_id: string
  readonly minutes: number
  readonly execution_id: string
  readonly project_id: string
  readonly event: string
  readonly due_at: number
}

export const waitingFromRow = (row: WaitingRow): WaitingExecution => ({
  executionId: row.execution_id,
  sceneId: row.scene_id as SceneId,
  projectId: row.project_id as ProjectId,
  at: row.due_at,
  event: JSON.parse(row.event) as WaitingExecution["event"],
  chain: []
})

/** Stores an execution that waits for a status to last, in place of an earlier one of its scene, device and minutes. */
const insertWaiting = (sql: Statements, { at, event, executionId, projectId, sceneId }: WaitingExecution): void => {
  sql.run(
    `INSERT OR REPLACE INTO scene_waiting (scene_id, device_id, minutes, execution_id, project_id, event, due_at)
      SELECT scene_id, ?, ?, ?, ?, ?, ? FROM scene WHERE scene_id = ?`,
    [event.device.deviceId, event.minutes, executionId, projectId, JSON.stringify(event), at, sceneId]
  )
}

/** Stores executions of scenes that exist, and those that wait for a status to last apart. */
export const addReactions = (sql: Statements, reactions: ReadonlyArray<NewExecution>): void => {
  for (const reaction of reactions) {
    if (isWaiting(reaction)) insertWaiting(sql, reaction)
    else insertExecution(sql, pendingExecution(reaction))
  }
}
