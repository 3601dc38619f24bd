/**
 * The heartbeats of nodes on SQLite: the one that has the file open, and those that
 * had it before.
 */
import { type HeartbeatLimits, type Judge, type NodeReport, type NodeState, sightingMillis } from "@device-cloud/core"
import type { Statements } from "./Sqlite.ts"

interface Row {
  readonly heartbeat_at: number
  readonly steady_since: number
}

const find = (sql: Statements, nodeId: string): Row | undefined =>
  sql.get<Row>("SELECT heartbeat_at, steady_since FROM node WHERE id = ?", [nodeId])

/** How old the heartbeat is; one from the future is as old as it is ahead. */
const ageOf = ({ heartbeat_at }: Row, now: number): number => Math.abs(now - heartbeat_at)

/** Whether the node may judge others at `now`, Unix milliseconds. */
export const isSteady = (sql: Statements, { limits: { gap, silence }, nodeId }: Judge, now: number): boolean => {
  const row = find(sql, nodeId)
  return row !== undefined && ageOf(row, now) <= gap && row.heartbeat_at - row.steady_since >= silence
}

/** Whether the node is silent at `now`, Unix milliseconds, and the judge may say so. */
export const isSilent = (sql: Statements, nodeId: string, judge: Judge, now: number): boolean => {
  const row = find(sql, nodeId)
  return row !== undefined && ageOf(row, now) > judge.limits.silence && isSteady(sql, judge, now)
}

/** Stores that the node is alive at `now`, Unix milliseconds. Returns whether it was silent. */
export const beat = (sql: Statements, nodeId: string, { gap, silence }: HeartbeatLimits, now: number): boolean => {
  const known = find(sql, nodeId)
  const age = known === undefined ? undefined : ageOf(known, now)
  // Ends that are further away were stored before this start, by a clock that was ahead.
  if (known === undefined) {
    sql.run("UPDATE presence SET online_until = ?1 WHERE online_until > ?1", [now + sightingMillis])
  }
  sql.run(
    `INSERT INTO node (id, heartbeat_at, steady_since, started_at) VALUES (?1, ?2, ?3, ?2)
      ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at, steady_since = excluded.steady_since`,
    [nodeId, now, known === undefined || age! > gap ? now : known.steady_since]
  )
  return age === undefined || age > silence
}

/** The nodes that are silent at `now`, Unix milliseconds. One that has devices and no heartbeat counts as heard. */
export const silentNodes = (sql: Statements, judge: Judge, now: number): ReadonlyArray<string> => {
  sql.run(
    `WITH RECURSIVE holder (id) AS (
      SELECT min(node_id) FROM presence WHERE node_id IS NOT NULL
      UNION ALL
      SELECT (SELECT min(node_id) FROM presence WHERE node_id > holder.id) FROM holder WHERE holder.id IS NOT NULL
    )
    INSERT OR IGNORE INTO node (id, heartbeat_at, steady_since, started_at)
    SELECT id, ?1, ?1, ?1 FROM holder WHERE id IS NOT NULL`,
    [now]
  )
  return sql.all<{ readonly id: string }>("SELECT id FROM node").map(({ id }) => id)
    .filter((id) => isSilent(sql, id, judge, now))
}

/** Stores what a node says of itself. */
export const report = (
  sql: Statements,
  nodeId: string,
  { connections, isDraining, startedAt }: NodeReport
): void => {
  sql.run("UPDATE node SET started_at = ?, connections = ?, draining = ? WHERE id = ?", [
    startedAt,
    connections,
    isDraining,
    nodeId
  ])
}

interface StateRow extends Row {
  readonly id: string
  readonly started_at: number
  readonly connections: number | null
  readonly draining: number
}

/** The nodes as they are at `now`, Unix milliseconds. */
export const nodes = (sql: Statements, limits: HeartbeatLimits, now: number): ReadonlyArray<NodeState> =>
  sql.all<StateRow>("SELECT * FROM node ORDER BY id").map((row) => ({
    nodeId: row.id,
    heartbeatAt: row.heartbeat_at,
    startedAt: row.started_at,
    connections: row.connections,
    isDraining: row.draining === 1,
    isSteady: isSteady(sql, { nodeId: row.id, limits }, now),
    isSilent: ageOf(row, now) > limits.silence
  }))

/** Forgets a node that has no devices. */
export const forget = (sql: Statements, nodeId: string): void => {
  sql.run("DELETE FROM node WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM presence WHERE node_id = ?1)", [nodeId])
}
