/**
 * Bulk commands as rows of SQLite.
 */
import type {
  BulkCommand,
  BulkDevice,
  BulkDeviceState,
  DeviceId,
  DeviceName,
  Json,
  ProjectId
} from "@device-cloud/core"

export interface BulkRow {
  readonly bulk_id: number
  readonly project_id: string
  readonly service_id: string | null
  readonly params: string
  readonly ttl: number
  readonly is_cancelled: number
  readonly total: number
  readonly turns: number
  readonly created_at: number
  readonly updated_at: number
}

export const bulkFromRow = (row: BulkRow): BulkCommand => ({
  bulkId: row.bulk_id,
  projectId: row.project_id as ProjectId,
  serviceId: row.service_id,
  params: JSON.parse(row.params) as Readonly<Record<string, Json>>,
  ttl: row.ttl,
  status: row.is_cancelled === 1 ? "cancelled" : row.turns === 0 ? "completed" : "running",
  total: row.total,
  createdAt: row.created_at,
  updatedAt: row.updated_at
})

/** The tables of {@link progress} and {@link BulkDeviceRow}. */
export const bulkDevices = "bulk_command_device AS member LEFT JOIN command ON command.message_id = member.message_id"

/** The state of a device in {@link bulkDevices}. */
export const progress = `CASE member.state WHEN 'to-ask' THEN 'pending' WHEN 'refused' THEN 'failed'
  WHEN 'left-out' THEN 'cancelled' ELSE coalesce(command.state, 'gone') END`

/** The select list of {@link BulkDeviceRow}, for {@link bulkDevices}. */
export const bulkDeviceColumns = `member.device_id, member.device_name, ${progress} AS progress, member.message_id,
  command.code, CASE member.state WHEN 'refused' THEN member.reason ELSE coalesce(command.message, '') END AS reason`

export interface BulkDeviceRow {
  readonly device_id: string
  readonly device_name: string
  readonly progress: BulkDeviceState
  readonly message_id: number | null
  readonly code: number | null
  readonly reason: string
}

export const bulkDeviceFromRow = (row: BulkDeviceRow): BulkDevice => ({
  deviceId: row.device_id as DeviceId,
  deviceName: row.device_name as DeviceName,
  state: row.progress,
  messageId: row.message_id,
  code: row.code,
  reason: row.reason
})
