/**
 * The heartbeats of nodes on SQLite: the one that has the file open, and those that
 * had it before.
 */
import type { HeartbeatLimits, Judge } from "@device-cloud/core"
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
  sql.run("INSERT OR REPLACE INTO node (id, heartbeat_at, steady_since) VALUES (?, ?, ?)", [
    nodeId,
    now,
    known === undefined || age! > gap ? now : known.steady_since
  ])
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
    INSERT OR IGNORE INTO node (id, heartbeat_at, steady_since)
    SELECT id, ?1, ?1 FROM holder WHERE id IS NOT NULL`,
    [now]
  )
  return sql.all<{ readonly id: string }>("SELECT id FROM node").map(({ id }) => id)
    .filter((id) => isSilent(sql, id, judge, now))
}

/** Forgets a node that has no devices. */
export const forget = (sql: Statements, nodeId: string): void => {
  sql.run("DELETE FROM node WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM presence WHERE node_id = ?1)", [nodeId])
}
