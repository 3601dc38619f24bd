/**
 * Bulk commands on SQLite.
 */
import {
  BulkCommandStore,
  type BulkCounts,
  type BulkCreated,
  type BulkDeviceState,
  bulkOrigin,
  type BulkOutcome,
  type BulkScope,
  type BulkTurn,
  type DeviceId,
  maxBulkDevices,
  maxRunningBulkCommands,
  type NewBulkCommand,
  type ProjectId
} from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import {
  bulkDeviceColumns,
  bulkDeviceFromRow,
  type BulkDeviceRow,
  bulkDevices,
  bulkFromRow,
  type BulkRow,
  progress
} from "./BulkRow.ts"
import { matches } from "./DeviceFilter.ts"
import { pageOf } from "./Paging.ts"
import { pruneWithParts } from "./Pruning.ts"
import { Sqlite } from "./Sqlite.ts"
import { unknownDevices } from "./UnknownDevices.ts"

/** Part of the group that is replaced together: it finds devices and reads commands. */
export const layer: Layer.Layer<BulkCommandStore, never, Sqlite> = Layer.effect(
  BulkCommandStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

/** What is left to do for a device, and what was done. Those to ask and to cancel have a turn. */
type State = "to-ask" | "asked" | "refused" | "left-out" | "to-cancel"

interface MemberRow {
  readonly place: number
  readonly device_id: string
  readonly state: State
  readonly message_id: number | null
}

const hasTurn = "state IN ('to-ask', 'to-cancel')"

const make = (sql: Sqlite["Service"]) => {
  const find = (bulkId: number): BulkRow | undefined =>
    sql.get<BulkRow>("SELECT * FROM bulk_command WHERE bulk_id = ?", [bulkId])

  const countDevices = (projectId: ProjectId, scope: BulkScope): number => {
    if (scope._tag === "Named") return scope.deviceIds.length
    const { values, where } = matches(projectId, scope.filter)
    return sql.get<{ readonly count: number }>(
      `SELECT count(*) AS count FROM (SELECT 1 FROM device WHERE ${where} LIMIT ?)`,
      [...values, maxBulkDevices + 1]
    )!.count
  }

  const insertDevices = (bulkId: number, projectId: ProjectId, scope: BulkScope) => {
    if (scope._tag === "Named") {
      return sql.run(
        `INSERT INTO bulk_command_device (bulk_id, place, device_id, device_name)
          SELECT ?, named.key, device_id, device_name FROM json_each(?) AS named JOIN device ON device_id = named.value`,
        [bulkId, JSON.stringify(scope.deviceIds)]
      )
    }
    const { values, where } = matches(projectId, scope.filter)
    return sql.run(
      `INSERT INTO bulk_command_device (bulk_id, place, device_id, device_name)
        SELECT ?, row_number() OVER (ORDER BY id) - 1, device_id, device_name FROM device WHERE ${where}`,
      [bulkId, ...values]
    )
  }

  const insert = ({ createdAt, params, projectId, serviceId, ttl }: NewBulkCommand, scope: BulkScope): BulkCreated => {
    if (scope._tag === "Named") {
      const unknown = unknownDevices(sql, { projectId }, scope.deviceIds)
      if (unknown.length > 0) return { _tag: "Unknown", deviceIds: unknown }
    }
    const running = sql.get<{ readonly count: number }>(
      "SELECT count(*) AS count FROM bulk_command WHERE project_id = ? AND turns > 0",
      [projectId]
    )!
    if (running.count >= maxRunningBulkCommands) return { _tag: "Busy" }
    const count = countDevices(projectId, scope)
    if (count === 0) return { _tag: "Empty" }
    if (count > maxBulkDevices) return { _tag: "TooLarge" }
    const row = sql.get<BulkRow>(
      `INSERT INTO bulk_command (project_id, service_id, params, ttl, total, turns, served_at, created_at, updated_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?6, ?6) RETURNING *`,
      [projectId, serviceId, JSON.stringify(params), ttl, count, createdAt]
    )!
    insertDevices(row.bulk_id, projectId, scope)
    return { _tag: "Created", bulk: bulkFromRow(row) }
  }

  const countStates = (bulkId: number): BulkCounts => {
    const rows = sql.all<{ readonly progress: BulkDeviceState; readonly count: number }>(
      `SELECT ${progress} AS progress, count(*) AS count FROM ${bulkDevices} WHERE member.bulk_id = ? GROUP BY 1`,
      [bulkId]
    )
    return Object.fromEntries(rows.map(({ count, progress }) => [progress, count]))
  }

  const cancel = (bulkId: number, at: number): boolean => {
    const cancelled = sql.run(
      "UPDATE bulk_command SET is_cancelled = 1, updated_at = ? WHERE bulk_id = ? AND is_cancelled = 0",
      [at, bulkId]
    )
    if (cancelled === 0) return false
    // Whoever has the turns may have ended before it stored what came of them.
    sql.run(
      `UPDATE bulk_command_device AS member SET state = 'asked', message_id = command.message_id
        FROM command
        WHERE member.bulk_id = ? AND member.state = 'to-ask' AND member.claimed_until > 0
          AND command.device_id = member.device_id AND command.origin = ?`,
      [bulkId, bulkOrigin(bulkId)]
    )
    sql.run(
      `UPDATE bulk_command_device SET state = CASE state WHEN 'to-ask' THEN 'left-out' ELSE 'to-cancel' END,
          claimed_until = 0
        WHERE bulk_id = ? AND state IN ('to-ask', 'asked')`,
      [bulkId]
    )
    sql.run(
      `UPDATE bulk_command SET turns = (
          SELECT count(*) FROM bulk_command_device AS member WHERE member.bulk_id = ?1 AND ${hasTurn}
        ) WHERE bulk_id = ?1`,
      [bulkId]
    )
    return true
  }

  const claimOf = (row: BulkRow, now: number, again: number, limit: number): ReadonlyArray<BulkTurn> => {
    const bulk = bulkFromRow(row)
    const members = sql.all<MemberRow>(
      `SELECT place, device_id, message_id FROM bulk_command_device
        WHERE bulk_id = ? AND ${hasTurn} AND (claimed_until <= ? OR claimed_until > ?) ORDER BY place LIMIT ?`,
      [row.bulk_id, now, now + 2 * (again - now), limit]
    )
    return members.map(({ device_id, message_id, place }) => {
      sql.run("UPDATE bulk_command_device SET claimed_until = ? WHERE bulk_id = ? AND place = ?", [
        again,
        row.bulk_id,
        place
      ])
      return { bulk, place, deviceId: device_id as DeviceId, cancels: message_id }
    })
  }

  const settle = ({ messageId, reason, turn }: BulkOutcome, at: number) => {
    const { bulk: { bulkId }, cancels, place } = turn
    const member = sql.get<MemberRow>("SELECT * FROM bulk_command_device WHERE bulk_id = ? AND place = ?", [
      bulkId,
      place
    ])
    const before: State = cancels === null ? "to-ask" : "to-cancel"
    // The bulk command was cancelled while the device was asked.
    const isLate = member?.state === "left-out" && before === "to-ask" && messageId !== null
    if (member?.state !== before && !isLate) return
    const after: State = isLate ? "to-cancel" : messageId === null ? "refused" : "asked"
    sql.run(
      `UPDATE bulk_command_device SET state = ?, claimed_until = 0, message_id = ?, reason = ?
        WHERE bulk_id = ? AND place = ?`,
      [after, messageId, reason, bulkId, place]
    )
    sql.run("UPDATE bulk_command SET turns = turns + ?, updated_at = ? WHERE bulk_id = ?", [
      isLate ? 1 : -1,
      at,
      bulkId
    ])
  }

  return BulkCommandStore.of({
    insert: (bulk, scope) => sql.write("BulkCommandStore.insert", () => insert(bulk, scope)),
    get: (projectId, bulkId) =>
      sql.read("BulkCommandStore.get", () => {
        const row = find(bulkId)
        return row?.project_id === projectId
          ? Option.some({ bulk: bulkFromRow(row), counts: countStates(bulkId) })
          : Option.none()
      }),
    list: (projectId, page) =>
      sql.read("BulkCommandStore.list", () => {
        const { items, total } = pageOf<BulkRow>(sql, {
          table: "bulk_command",
          where: "project_id = ?",
          values: [projectId],
          order: "created_at DESC, bulk_id DESC",
          page
        })
        return { items: items.map(bulkFromRow), total }
      }),
    countUnderWay: (projectId) =>
      sql.read("BulkCommandStore.countUnderWay", () =>
        sql.get<{ readonly found: number }>(
          "SELECT count(*) AS found FROM bulk_command WHERE project_id = ? AND turns > 0",
          [projectId]
        )!.found),
    devices: (bulkId, state, page) =>
      sql.read("BulkCommandStore.devices", () => {
        const { items, total } = pageOf<BulkDeviceRow>(sql, {
          table: bulkDevices,
          columns: bulkDeviceColumns,
          where: state === undefined ? "member.bulk_id = ?" : `member.bulk_id = ? AND ${progress} = ?`,
          values: state === undefined ? [bulkId] : [bulkId, state],
          order: "member.place",
          page
        })
        return { items: items.map(bulkDeviceFromRow), total }
      }),
    cancel: (bulkId, at) => sql.write("BulkCommandStore.cancel", () => cancel(bulkId, at)),
    claim: ({ again, bulks, now, perBulk }) =>
      sql.write("BulkCommandStore.claim", () => {
        const waiting = sql.all<BulkRow>("SELECT * FROM bulk_command WHERE turns > 0 ORDER BY served_at LIMIT ?", [
          bulks
        ])
        return waiting.flatMap((row) => {
          sql.run("UPDATE bulk_command SET served_at = ? WHERE bulk_id = ?", [now, row.bulk_id])
          return claimOf(row, now, again, perBulk)
        })
      }),
    settle: (outcomes, at) =>
      sql.write("BulkCommandStore.settle", () => {
        for (const outcome of outcomes) settle(outcome, at)
      }),
    prune: ({ before, limit }) =>
      pruneWithParts(sql, "BulkCommandStore.prune", {
        table: "bulk_command",
        parts: "bulk_command_device",
        id: "bulk_id",
        // The first comparison with the time has an index.
        where: "turns = 0 AND updated_at < ?1 AND updated_at + ttl * 1000 < ?1",
        values: [before]
      }, limit)
  })
}
