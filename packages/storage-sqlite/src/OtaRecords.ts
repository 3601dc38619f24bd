/**
 * The part of `OtaStore` that keeps the records of devices in tasks, and the
 * versions that devices report.
 */
import {
  type Assignment,
  deviceCount,
  type DeviceId,
  type DeviceStatus,
  type FailureCount,
  type Firmware,
  isOngoing,
  isTaskAborted,
  type OtaStore,
  type OtaTask,
  type Page,
  type PageRequest,
  progressResolution,
  type RecordChange,
  type RecordCounts,
  type RecordDetail,
  type RecordFilter,
  timeZoneTag,
  type UpgradeRecord,
  withCounts
} from "@device-cloud/core"
import { Option } from "effect"
import {
  findTask,
  firmwareFromRow,
  type FirmwareRow,
  recordFromRow,
  type RecordRow,
  updateRecord,
  updateTask
} from "./OtaRow.ts"
import { openPassed } from "./OtaStages.ts"
import { endTask } from "./OtaTasks.ts"
import { pageOf } from "./Paging.ts"
import type { Sqlite, Value } from "./Sqlite.ts"

interface RecordDetailRow extends RecordRow {
  readonly device_status: DeviceStatus
  readonly current_version: string
}

const detailFromRow = (row: RecordDetailRow): RecordDetail => ({
  record: recordFromRow(row),
  deviceStatus: row.device_status,
  currentVersion: row.current_version
})

/** The select list of {@link RecordDetailRow}, for {@link detailTables}. */
const detailColumns = `ota_record.*, coalesce(device.status, 'offline') AS device_status,
  coalesce(known.version, '') AS current_version`
const detailTables = `ota_record LEFT JOIN device USING (device_id)
  LEFT JOIN device_module AS known ON known.device_id = ota_record.device_id AND known.module = ota_record.module`

export const make = (
  sql: Sqlite["Service"]
): Pick<
  OtaStore["Service"],
  | "records"
  | "countsBefore"
  | "failures"
  | "record"
  | "newest"
  | "unfinished"
  | "orphaned"
  | "save"
  | "claimDue"
  | "reportVersions"
  | "versions"
> => {
  const firmwareOf = ({ firmwareId }: OtaTask): Firmware =>
    firmwareFromRow(sql.get<FirmwareRow>("SELECT * FROM firmware WHERE firmware_id = ?", [firmwareId])!)

  const timeZoneOf = (deviceId: DeviceId): string => {
    const row = sql.get<{ readonly tags: string }>("SELECT tags FROM device WHERE device_id = ?", [deviceId])
    return row === undefined ? "" : (JSON.parse(row.tags) as Record<string, string>)[timeZoneTag] ?? ""
  }

  /** Records with their tasks and firmware, each of which is read once. */
  const assign = (rows: ReadonlyArray<RecordRow>): ReadonlyArray<Assignment> => {
    const read = new Map<number, Pick<Assignment, "task" | "firmware">>()
    return rows.map((row) => {
      const record = recordFromRow(row)
      let shared = read.get(row.task_id)
      if (shared === undefined) {
        const task = findTask(sql, row.task_id)!
        shared = { task, firmware: firmwareOf(task) }
        read.set(row.task_id, shared)
      }
      const timeZone = shared.task.startWindow === null ? "" : timeZoneOf(record.deviceId)
      return { ...shared, record, timeZone }
    })
  }

  const findRecord = (taskId: number, deviceId: DeviceId): UpgradeRecord | undefined => {
    const row = sql.get<RecordRow>("SELECT * FROM ota_record WHERE task_id = ? AND device_id = ?", [taskId, deviceId])
    return row === undefined ? undefined : recordFromRow(row)
  }

  const save = (changes: ReadonlyArray<RecordChange>) => {
    const tasks = new Map<number, OtaTask>()
    const saved = changes.map(({ after, before }) => {
      const { taskId } = before
      const stored = findRecord(taskId, before.deviceId)
      if (stored === undefined || stored.revision !== before.revision) return false
      const task = tasks.get(taskId) ?? findTask(sql, taskId)!
      if (after.status === "pending" && !isOngoing(task)) return false
      updateRecord(sql, after)
      if (after.status === stored.status) return true
      const counts = { ...task.counts, [stored.status]: task.counts[stored.status] - 1 }
      tasks.set(taskId, {
        ...withCounts(task, { ...counts, [after.status]: counts[after.status] + 1 }),
        updatedAt: after.updatedAt
      })
      return true
    })
    const afterwards = [...tasks.values()].map((task) => {
      updateTask(sql, task)
      const ended = isTaskAborted(task)
        ? endTask(sql, task.taskId, "cancelled", ["pending"], task.updatedAt)
        : undefined
      return ended ?? openPassed(sql, task)
    })
    return { saved, tasks: afterwards }
  }

  /** Their places count from 0 without gaps: no statement counts records or skips them one by one. */
  const allRecords = (taskId: number, { page, pageSize }: PageRequest): Page<RecordDetailRow> => {
    const task = findTask(sql, taskId)
    const total = task === undefined ? 0 : deviceCount(task.counts)
    const end = total - (page - 1) * pageSize
    const items = sql.all<RecordDetailRow>(
      `SELECT ${detailColumns} FROM ${detailTables} WHERE task_id = ? AND place >= ? AND place < ? ORDER BY place DESC`,
      [taskId, end - pageSize, end]
    )
    return { items, total }
  }

  const matchingRecords = (taskId: number, { failure, rejected, status }: RecordFilter, page: PageRequest) =>
    pageOf<RecordDetailRow>(sql, {
      table: detailTables,
      columns: detailColumns,
      where: `task_id = ? ${status === undefined ? "" : "AND ota_record.status = ?"} ${
        failure === undefined ? "" : "AND ota_record.status = 'failed' AND reason = ?"
      } ${rejected === undefined ? "" : "AND coalesce(device.status, '') <> ?"}`,
      values: [taskId, ...[status, failure, rejected].filter((value) => value !== undefined)],
      order: "place DESC",
      page
    })

  const assignments = (where: string, ...values: ReadonlyArray<Value>) =>
    assign(sql.all<RecordRow>(`SELECT * FROM ota_record WHERE ${where}`, values))

  return {
    records: (taskId, filter, page) =>
      sql.read("OtaStore.records", () => {
        const isAll = Object.values(filter).every((condition) => condition === undefined)
        const { items, total } = isAll ? allRecords(taskId, page) : matchingRecords(taskId, filter, page)
        return { items: items.map(detailFromRow), total }
      }),
    countsBefore: (taskId, times) =>
      sql.read("OtaStore.countsBefore", () =>
        times.map((time) =>
          sql.all<RecordCounts>(
            `SELECT pending, upgrading, succeeded, failed, cancelled FROM ota_progress
              WHERE task_id = ? AND tick < ? ORDER BY tick DESC LIMIT 1`,
            [taskId, time / progressResolution]
          )[0] ?? { pending: 0, upgrading: 0, succeeded: 0, failed: 0, cancelled: 0 }
        )),
    failures: (taskId, limit) =>
      sql.read("OtaStore.failures", () =>
        sql.all<FailureCount>(
          `SELECT reason, count(*) AS devices FROM ota_record WHERE task_id = ? AND status = 'failed'
            GROUP BY reason ORDER BY devices DESC, reason LIMIT ?`,
          [taskId, limit]
        )),
    record: (deviceId, taskId) =>
      sql.read("OtaStore.record", () =>
        Option.fromUndefinedOr(
          (taskId === undefined
            ? assignments("device_id = ? ORDER BY task_id DESC LIMIT 1", deviceId)
            : assignments("device_id = ? AND task_id = ?", deviceId, taskId))[0]
        )),
    newest: (deviceId, module) =>
      sql.read("OtaStore.newest", () =>
        Option.fromUndefinedOr(
          assignments("device_id = ? AND module = ? ORDER BY task_id DESC LIMIT 1", deviceId, module)[0]
        )),
    unfinished: (deviceIds, module) =>
      sql.read("OtaStore.unfinished", () =>
        deviceIds.flatMap((deviceId) =>
          module === undefined
            ? assignments("device_id = ? AND is_open = 1 ORDER BY task_id", deviceId)
            : assignments("device_id = ? AND module = ? AND is_open = 1", deviceId, module)
        )),
    orphaned: (limit) =>
      sql.read("OtaStore.orphaned", () =>
        assignments(
          `is_open = 1 AND NOT EXISTS (SELECT 1 FROM device WHERE device.device_id = ota_record.device_id) LIMIT ?`,
          limit
        )),
    save: (changes) => sql.write("OtaStore.save", () => save(changes)),
    claimDue: ({ again, limit, now }) =>
      sql.write("OtaStore.claimDue", () => {
        const rows = sql.all<RecordRow & { readonly is_connected: number }>(
          `SELECT ota_record.*, presence.node_id IS NOT NULL AS is_connected
            FROM ota_record LEFT JOIN presence USING (device_id) WHERE due_at <= ? ORDER BY due_at LIMIT ?`,
          [now, limit]
        )
        for (const { device_id, task_id } of rows) {
          sql.run("UPDATE ota_record SET due_at = ? WHERE task_id = ? AND device_id = ?", [again, task_id, device_id])
        }
        return assign(rows).map((assignment, i) => ({ ...assignment, isConnected: rows[i]!.is_connected === 1 }))
      }),
    reportVersions: (reports) =>
      sql.write("OtaStore.reportVersions", () => {
        for (const { at, deviceId, module, version } of reports) {
          sql.run(
            `INSERT OR REPLACE INTO device_module (device_id, module, version, reported_at)
              SELECT device_id, ?, ?, ? FROM device WHERE device_id = ?`,
            [module, version, at, deviceId]
          )
          if (module === "default") {
            sql.run("UPDATE device SET firmware_version = ?1 WHERE device_id = ?2 AND firmware_version <> ?1", [
              version,
              deviceId
            ])
          }
        }
      }),
    versions: (deviceId) =>
      sql.read("OtaStore.versions", () =>
        Object.fromEntries(
          sql.all<{ readonly module: string; readonly version: string }>(
            "SELECT module, version FROM device_module WHERE device_id = ?",
            [deviceId]
          ).map(({ module, version }) => [module, version])
        ))
  }
}
