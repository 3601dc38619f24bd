/**
 * Writes the feed.
 */
import { type DomainEvent, projectOf } from "@device-cloud/core"
import type { Statements } from "./Sqlite.ts"

interface LastRow {
  readonly recorded_at: number
  readonly total: number
}

/** Adds events to the feed alone. `now`: Unix milliseconds. */
export const appendFeed = (sql: Statements, events: ReadonlyArray<DomainEvent>, now: number): void => {
  if (events.length === 0) return
  const last = sql.get<LastRow>("SELECT recorded_at, total FROM feed ORDER BY number DESC LIMIT 1")
  const recordedAt = Math.max(now, last?.recorded_at ?? 0)
  let total = last?.total ?? 0
  for (const event of events) {
    const body = JSON.stringify(event)
    total += Buffer.byteLength(body)
    sql.run(
      `INSERT INTO feed (project_id, kind, device_id, product_key, recorded_at, total, body)
        VALUES (?, ?, ?, ?, ?, ?, ?)`,
      [
        projectOf(event),
        event._tag,
        event.device?.deviceId ?? null,
        event.device?.productKey ?? null,
        recordedAt,
        total,
        body
      ]
    )
  }
}
