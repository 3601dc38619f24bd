/**
 * Commands as rows of PostgreSQL, and the statement that moves them forward.
 */
import {
  type Command,
  type CommandProgress,
  CommandState,
  type DeviceId,
  finalRank,
  type Json,
  type ProjectId
} from "@device-cloud/core"
import { PgTypes } from "@effect/sql-pg"
import { Result } from "effect"
import type { SqlClient } from "effect/sql"
import { eachByIndex, instants, texts, wholeNumbers } from "./PgParameters.ts"

export interface CommandRow {
  readonly message_id: bigint
  readonly project_id: string
  readonly device_id: string
  readonly service_id: string | null
  readonly user_topic: string | null
  readonly params: Readonly<Record<string, Json>>
  readonly synchronous: boolean
  readonly state: number
  readonly deliveries: number
  readonly code: bigint | null
  readonly message: string
  readonly data: Json
  readonly created_at: Date
  readonly expires_at: Date
  readonly updated_at: Date
}

export const commandFromRow = (row: CommandRow): Command => ({
  messageId: Number(row.message_id),
  projectId: row.project_id as ProjectId,
  deviceId: row.device_id as DeviceId,
  serviceId: row.service_id,
  userTopic: row.user_topic,
  params: row.params,
  synchronous: row.synchronous,
  state: CommandState.literals[row.state]!,
  deliveries: row.deliveries,
  code: row.code === null ? null : Number(row.code),
  message: row.message,
  data: row.data,
  createdAt: row.created_at.getTime(),
  expiresAt: row.expires_at.getTime(),
  updatedAt: row.updated_at.getTime()
})

/** The number that stands for a state in the table. */
export const stateNumber = (state: CommandState): number => CommandState.literals.indexOf(state)

const codes = (values: ReadonlyArray<number | null>) => Result.getOrThrow(PgTypes.array(values, PgTypes.OID.float8))

/**
 * The condition that a command has not ended, as text: with a parameter in its
 * place, a plan for all values could not use the indexes of open commands and
 * would read all commands that a device ever had.
 */
export const hasNotEnded = `command.state < ${finalRank}`

/** The opposite, as text for the same reason. */
export const hasEnded = `command.state >= ${finalRank}`

interface Steps {
  readonly furthest: CommandProgress
  readonly deliveries: number
}

/**
 * Joins several steps of one command, because a statement changes a row once. Sorted,
 * so that statements that change the same commands wait for each other in one order.
 */
const join = (steps: ReadonlyArray<CommandProgress>): ReadonlyArray<Steps> => {
  const byId = new Map<string, Steps>()
  for (const step of steps) {
    const key = `${step.deviceId} ${step.messageId}`
    const known = byId.get(key)
    if (known !== undefined && stateNumber(known.furthest.state) >= finalRank) continue
    const isFurther = known === undefined || stateNumber(known.furthest.state) < stateNumber(step.state)
    byId.set(key, {
      furthest: isFurther ? step : known.furthest,
      deliveries: (known?.deliveries ?? 0) + (step.state === "sent" ? 1 : 0)
    })
  }
  return [...byId.values()].toSorted((a, b) => a.furthest.messageId - b.furthest.messageId)
}

/**
 * Moves commands forward and counts their deliveries. A step changes nothing if the
 * command has ended or belongs to another device, or is further and the step is no
 * delivery. What the device has answered was delivered.
 */
export const advanceCommands = (sql: SqlClient.SqlClient, all: ReadonlyArray<CommandProgress>) => {
  const joined = join(all)
  const steps = joined.map(({ furthest }) => furthest)
  return sql`
    UPDATE command SET state = greatest(command.state, step.state), code = step.code, message = step.message,
      data = step.data, updated_at = step.at,
      deliveries = greatest(command.deliveries + step.deliveries, CASE WHEN step.code IS NULL THEN 0 ELSE 1 END)
    FROM (SELECT * FROM unnest(
      ${wholeNumbers(steps.map(({ messageId }) => messageId))}::bigint[],
      ${texts(steps.map(({ deviceId }) => deviceId))},
      ${wholeNumbers(steps.map(({ state }) => stateNumber(state)))}::smallint[],
      ${codes(steps.map(({ code }) => code))}::bigint[],
      ${texts(steps.map(({ message }) => message))},
      ${texts(steps.map(({ data }) => JSON.stringify(data)))}::json[],
      ${instants(steps.map(({ at }) => at))},
      ${wholeNumbers(joined.map(({ deliveries }) => deliveries))}::smallint[]
    ) ${eachByIndex(sql, steps.length)}) AS step (message_id, device_id, state, code, message, data, at, deliveries)
    WHERE command.message_id = step.message_id AND command.device_id = step.device_id
      AND ${sql.literal(hasNotEnded)} AND (command.state < step.state OR step.deliveries > 0)`
}
