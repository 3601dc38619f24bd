/**
 * Commands as rows, and how they move forward within a transaction.
 */
import {
  type Command,
  type CommandProgress,
  type CommandState,
  type DeviceId,
  type ProjectId,
  rankOf
} from "@device-cloud/core"
import type { Statements } from "./Sqlite.ts"

export interface CommandRow {
  readonly message_id: number
  readonly project_id: string
  readonly device_id: string
  readonly service_id: string | null
  readonly user_topic: string | null
  readonly params: string
  readonly synchronous: number
  readonly state: CommandState
  readonly deliveries: number
  readonly code: number | null
  readonly message: string
  readonly data: string
  readonly created_at: number
  readonly expires_at: number
  readonly updated_at: number
}

export const commandFromRow = (row: CommandRow): Command => ({
  messageId: row.message_id,
  projectId: row.project_id as ProjectId,
  deviceId: row.device_id as DeviceId,
  serviceId: row.service_id,
  userTopic: row.user_topic,
  params: JSON.parse(row.params),
  synchronous: row.synchronous === 1,
  state: row.state,
  deliveries: row.deliveries,
  code: row.code,
  message: row.message,
  data: JSON.parse(row.data),
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  updatedAt: row.updated_at
})

/**
 * Moves commands forward and counts their deliveries. A step changes nothing if
 * the command has ended or belongs to another device, or is further and the step
 * is no delivery. What the device has answered was delivered.
 */
export const advance = (sql: Statements, steps: ReadonlyArray<CommandProgress>): void => {
  for (const { at, code, data, deviceId, message, messageId, state } of steps) {
    const command = sql.get<Pick<CommandRow, "state">>(
      "SELECT state FROM command WHERE message_id = ? AND device_id = ? AND is_open",
      [messageId, deviceId]
    )
    if (command === undefined) continue
    const deliveries = state === "sent" ? 1 : 0
    if (rankOf(state) > rankOf(command.state)) {
      sql.run(
        `UPDATE command SET state = ?, code = ?, message = ?, data = ?, deliveries = max(deliveries + ?, ?), updated_at = ?
          WHERE message_id = ?`,
        [state, code, message, JSON.stringify(data), deliveries, code === null ? 0 : 1, at, messageId]
      )
    } else if (deliveries > 0) {
      sql.run("UPDATE command SET deliveries = deliveries + 1, updated_at = ? WHERE message_id = ?", [at, messageId])
    }
  }
}
