/**
 * Jobs and their tasks as rows of PostgreSQL.
 */
import {
  type AssignedTask,
  type DeviceId,
  type Job,
  type JobTask,
  type JobTaskState,
  type Json,
  openStates,
  type ProductKey,
  type ProjectId
} from "@device-cloud/core"

type JsonObject = Readonly<Record<string, Json>>

export interface JobRow {
  readonly job_id: bigint
  readonly project_id: string
  readonly name: string
  readonly description: string
  readonly document: JsonObject
  readonly timeout: number
  readonly product_key: string | null
  readonly is_cancelled: boolean
  readonly created_at: Date
  /** Whether a task has not ended. */
  readonly is_open: boolean
}

export const jobFromRow = (row: JobRow): Job => ({
  jobId: Number(row.job_id),
  projectId: row.project_id as ProjectId,
  name: row.name,
  description: row.description,
  document: row.document,
  timeout: row.timeout,
  productKey: row.product_key as ProductKey | null,
  createdAt: row.created_at.getTime(),
  status: row.is_cancelled ? "cancelled" : row.is_open ? "in_progress" : "completed"
})

export interface TaskRow {
  readonly job_id: bigint
  readonly device_id: string
  readonly state: JobTaskState
  readonly progress: number
  readonly details: JsonObject
  readonly created_at: Date
  readonly updated_at: Date
}

export const taskFromRow = (row: TaskRow): JobTask => ({
  jobId: Number(row.job_id),
  deviceId: row.device_id as DeviceId,
  state: row.state,
  progress: row.progress,
  details: row.details,
  createdAt: row.created_at.getTime(),
  updatedAt: row.updated_at.getTime()
})

export interface AssignedRow extends TaskRow {
  readonly document: JsonObject
}

export const assignedFromRow = (row: AssignedRow): AssignedTask => ({ ...taskFromRow(row), document: row.document })

/** The condition that a task has not ended, as the indexes have it. */
export const isOpen = `state IN (${openStates.map((state) => `'${state}'`).join(", ")})`
