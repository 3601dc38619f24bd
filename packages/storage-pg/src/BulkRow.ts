/**
 * Bulk commands as rows of PostgreSQL.
 */
import type { BulkCommand, Json, ProjectId } from "@device-cloud/core"

export interface BulkRow {
  readonly bulk_id: bigint
  readonly project_id: string
  readonly service_id: string | null
  readonly params: Readonly<Record<string, Json>>
  readonly ttl: number
  readonly is_cancelled: boolean
  readonly total: number
  readonly turns: number
  readonly created_at: Date
  readonly updated_at: Date
}

export const bulkFromRow = (row: BulkRow): BulkCommand => ({
  bulkId: Number(row.bulk_id),
  projectId: row.project_id as ProjectId,
  serviceId: row.service_id,
  params: row.params,
  ttl: row.ttl,
  status: row.is_cancelled ? "cancelled" : row.turns === 0 ? "completed" : "running",
  total: row.total,
  createdAt: row.created_at.getTime(),
  updatedAt: row.updated_at.getTime()
})
