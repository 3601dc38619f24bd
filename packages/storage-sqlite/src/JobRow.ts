/**
 * Jobs and their tasks as rows of SQLite.
 */
import type {
  AssignedTask,
  DeviceId,
  Job,
  JobTask,
  JobTaskState,
  Json,
  ProductKey,
  ProjectId
} from "@device-cloud/core"

type JsonObject = Readonly<Record<string, Json>>

export interface JobRow {
  readonly job_id: number
  readonly project_id: string
  readonly name: string
  readonly description: string
  readonly document: string
  readonly timeout: number
  readonly product_key: string | null
  readonly is_cancelled: number
  readonly created_at: number
  /** Whether a task has not ended. */
  readonly is_open: number
}

/** The select list of {@link JobRow}, for the table `job`. */
export const jobColumns = `job.*, EXISTS (
    SELECT 1 FROM job_task WHERE job_task.job_id = job.job_id AND job_task.is_open = 1
  ) AS is_open`

export const jobFromRow = (row: JobRow): Job => ({
  jobId: row.job_id,
  projectId: row.project_id as ProjectId,
  name: row.name,
  description: row.description,
  document: JSON.parse(row.document) as JsonObject,
  timeout: row.timeout,
  productKey: row.product_key as ProductKey | null,
  createdAt: row.created_at,
  status: row.is_cancelled === 1 ? "cancelled" : row.is_open === 1 ? "in_progress" : "completed"
})

export interface TaskRow {
  readonly job_id: number
  readonly device_id: string
  readonly state: JobTaskState
  readonly is_untold: number
  readonly progress: number
  readonly details: string
  readonly due_at: number | null
  readonly created_at: number
  readonly updated_at: number
}

export const taskFromRow = (row: TaskRow): JobTask => ({
  jobId: row.job_id,
  deviceId: row.device_id as DeviceId,
  state: row.state,
  progress: row.progress,
  details: JSON.parse(row.details) as JsonObject,
  createdAt: row.created_at,
  updatedAt: row.updated_at
})

/** Tasks with their documents, each of which is parsed once. */
export const assignedFromRows = (
  rows: ReadonlyArray<TaskRow & { readonly document: string }>
): ReadonlyArray<AssignedTask> => {
  const documents = new Map<number, JsonObject>()
  return rows.map((row) => {
    const document = documents.get(row.job_id) ?? JSON.parse(row.document) as JsonObject
    documents.set(row.job_id, document)
    return { ...taskFromRow(row), document }
  })
}
