/**
 * The part of `OtaStore` that keeps the records of devices in tasks, and the
 * versions that devices report.
 */
import {
  type Assignment,
  deviceCount,
  type DeviceStatus,
  isTaskAborted,
  type OtaStore,
  type OtaTask,
  type PageRequest,
  type RecordChange,
  type RecordCounts,
  type RecordFilter,
  type RecordStatus,
  timeZoneTag,
  withCounts
} from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Option } from "effect"
import type { SqlError, Statement } from "effect/sql"
import {
  firmwareFromRow,
  type FirmwareRow,
  recordFromRow,
  recordNumber,
  type RecordRow,
  taskFromRow,
  taskNumber,
  type TaskRow
} from "./OtaRow.ts"
import { noteProgress } from "./OtaProgress.ts"
import * as OtaRules from "./OtaRules.ts"
import * as OtaStages from "./OtaStages.ts"
import { endTask } from "./OtaTasks.ts"
import { clients } from "./LongReads.ts"
import { storeError } from "./PgErrors.ts"
import { booleans, instant, instants, texts, wholeNumbers } from "./PgParameters.ts"

export const make: Effect.Effect<
  Pick<
    OtaStore["Service"],
    "records" | "record" | "newest" | "unfinished" | "orphaned" | "save" | "claimDue" | "reportVersions" | "versions"
  >,
  never,
  PgClient.PgClient
> = Effect.gen(function*() {
  const { reads, sql } = yield* clients
  const isOngoing = sql.literal(OtaRules.isOngoing)
  const isUnfinished = sql.literal(OtaRules.isUnfinished)

  const timeZonesOf = Effect.fnUntraced(function*(deviceIds: ReadonlyArray<string>) {
    if (deviceIds.length === 0) return new Map<string, string>()
    const rows = yield* sql<{ readonly device_id: string; readonly time_zone: string }>`
      SELECT device_id, tags ->> ${timeZoneTag}::text AS time_zone FROM device
      WHERE device_id = ANY(${texts(deviceIds)}) AND tags ->> ${timeZoneTag}::text IS NOT NULL`
    return new Map(rows.map((row) => [row.device_id, row.time_zone]))
  })

  /** Records with their tasks and firmware. */
  const assign = Effect.fnUntraced(function*(rows: ReadonlyArray<RecordRow>) {
    if (rows.length === 0) return []
    const taskIds = wholeNumbers([...new Set(rows.map(({ task_id }) => Number(task_id)))])
    const tasks = yield* sql<TaskRow>`SELECT * FROM ota_task WHERE task_id = ANY(${taskIds}::bigint[])`
    const firmwareIds = wholeNumbers([...new Set(tasks.map(({ firmware_id }) => Number(firmware_id)))])
    const firmwares = yield* sql<FirmwareRow>`SELECT * FROM firmware WHERE firmware_id = ANY(${firmwareIds}::bigint[])`
    const windowed = new Set(tasks.flatMap((row) => row.start_window === null ? [] : [row.task_id]))
    const timeZones = yield* timeZonesOf(rows.flatMap((row) => windowed.has(row.task_id) ? [row.device_id] : []))
    const firmwareById = new Map(firmwares.map((row) => [row.firmware_id, firmwareFromRow(row)]))
    const taskById = new Map(tasks.map((row) => [row.task_id, row]))
    return rows.flatMap((row): ReadonlyArray<Assignment> => {
      const task = taskById.get(row.task_id)
      const firmware = task === undefined ? undefined : firmwareById.get(task.firmware_id)
      // Somebody has removed them since the record was read.
      if (task === undefined || firmware === undefined) return []
      const timeZone = timeZones.get(row.device_id) ?? ""
      return [{ record: recordFromRow(row), task: taskFromRow(task), firmware, timeZone }]
    })
  })

  /** Adds to the counts of tasks, and stores the statuses that follow. */
  const recount = Effect.fnUntraced(function*(
    deltas: ReadonlyMap<number, RecordCounts>,
    at: number
  ): Effect.fn.Return<ReadonlyArray<OtaTask>, SqlError.SqlError> {
    if (deltas.size === 0) return []
    const entries = [...deltas]
    const delta = (status: RecordStatus) => wholeNumbers(entries.map(([, counts]) => counts[status]))
    const rows = yield* sql<TaskRow>`
      WITH delta AS (
        SELECT * FROM unnest(${wholeNumbers(entries.map(([taskId]) => taskId))}::bigint[],
          ${delta("pending")}::int[], ${delta("upgrading")}::int[], ${delta("succeeded")}::int[],
          ${delta("failed")}::int[], ${delta("cancelled")}::int[])
          AS delta (task_id, pending, upgrading, succeeded, failed, cancelled)
      ), changed AS (
        UPDATE ota_task SET pending = ota_task.pending + delta.pending,
          upgrading = ota_task.upgrading + delta.upgrading, succeeded = ota_task.succeeded + delta.succeeded,
          failed = ota_task.failed + delta.failed, cancelled = ota_task.cancelled + delta.cancelled,
          updated_at = ${instant(at)}
        FROM delta WHERE ota_task.task_id = delta.task_id RETURNING ota_task.*
      ), noted AS (${noteProgress(sql, at)})
      SELECT * FROM changed`
    const tasks: Array<OtaTask> = []
    for (const before of rows.map(taskFromRow)) {
      const task = withCounts(before, before.counts)
      if (task.status !== before.status) {
        yield* sql`UPDATE ota_task SET status = ${taskNumber(task)} WHERE task_id = ${task.taskId}`
      }
      tasks.push(task)
    }
    return tasks
  })

  /** Cancels the task if too many devices have failed, and otherwise opens the stages that have passed. */
  const settled = (task: OtaTask) =>
    isTaskAborted(task)
      ? Effect.map(
        endTask(sql, task.taskId, "cancelled", ["pending"], task.updatedAt),
        Option.getOrElse(() => task)
      )
      : OtaStages.openPassed(sql, task)

  const save = Effect.fnUntraced(
    function*(changes: ReadonlyArray<RecordChange>) {
      const after = changes.map((change) => change.after)
      // Whoever changes both locks tasks before their records: no deadlock.
      if (changes.length > 1 || changes.some(({ after, before }) => after.status !== before.status)) {
        const taskIds = wholeNumbers([...new Set(after.map(({ taskId }) => taskId))])
        yield* sql`SELECT task_id FROM ota_task WHERE task_id = ANY(${taskIds}::bigint[]) ORDER BY task_id FOR UPDATE`
      }
      const rows = yield* sql<{ readonly task_id: bigint; readonly device_id: string; readonly place: bigint }>`
        UPDATE ota_record SET status = change.status, step = change.step, is_confirmed = change.is_confirmed,
          failures = change.failures, reason = change.reason, due_at = change.due_at, updated_at = change.updated_at,
          revision = change.revision
        FROM unnest(
          ${wholeNumbers(after.map(({ taskId }) => taskId))}::bigint[],
          ${texts(after.map(({ deviceId }) => deviceId))},
          ${wholeNumbers(changes.map(({ before }) => before.revision))}::bigint[],
          ${wholeNumbers(after.map(({ status }) => recordNumber[status]))}::smallint[],
          ${wholeNumbers(after.map(({ step }) => step))}::int[],
          ${booleans(after.map(({ isConfirmed }) => isConfirmed))},
          ${wholeNumbers(after.map(({ failures }) => failures))}::int[],
          ${texts(after.map(({ reason }) => reason))},
          ${instants(after.map((record) => record.dueAt))},
          ${instants(after.map(({ updatedAt }) => updatedAt))},
          ${wholeNumbers(after.map(({ revision }) => revision))}::bigint[]
        ) WITH ORDINALITY AS change (task_id, device_id, before, status, step, is_confirmed, failures, reason, due_at,
          updated_at, revision, place) JOIN ota_task USING (task_id)
        WHERE (change.status <> ${recordNumber.pending} OR ota_task.${isOngoing})
          AND ota_record.task_id = change.task_id AND ota_record.device_id = change.device_id
          AND ota_record.revision = change.before
        RETURNING change.place`
      const places = new Set(rows.map(({ place }) => Number(place) - 1))
      const stored = changes.filter((_, place) => places.has(place))
      const tasks = yield* recount(deltasOf(stored), Math.max(0, ...after.map(({ updatedAt }) => updatedAt)))
      const afterwards = yield* Effect.forEach(tasks, settled)
      return { saved: changes.map((_, place) => places.has(place)), tasks: afterwards }
    },
    sql.withTransaction
  )

  /** The records of `page`, with what the API shows beside them. */
  const detailed = (page: Statement.Fragment) =>
    reads<RecordDetailRow>`WITH page AS (${page})
      SELECT page.*, coalesce(device.status, 'offline') AS device_status, device_module.version AS current_version
      FROM page LEFT JOIN device USING (device_id)
      LEFT JOIN device_module ON device_module.device_id = page.device_id AND device_module.module = page.module
      ORDER BY page.place DESC`

  /** Their places count from 0 without gaps: no statement counts records or skips them one by one. */
  const allRecords = Effect.fnUntraced(function*(taskId: number, { page, pageSize }: PageRequest) {
    const [task] = yield* sql<TaskRow>`SELECT * FROM ota_task WHERE task_id = ${taskId}`
    const count = task === undefined ? 0 : deviceCount(taskFromRow(task).counts)
    const end = count - (page - 1) * pageSize
    if (end <= 0) return { items: [], total: count }
    const items = yield* detailed(sql`SELECT * FROM ota_record
      WHERE task_id = ${taskId} AND place >= ${end - pageSize} AND place < ${end}`)
    return { items, total: count }
  })

  /** Counts only what the task has not counted already. */
  const matchingRecords = Effect.fnUntraced(
    function*(taskId: number, { failure, rejected, status }: RecordFilter, { page, pageSize }: PageRequest) {
      const where = sql.and([
        sql`task_id = ${taskId}`,
        // An index has the failures.
        ...status === undefined ? [] : status === "failed" ? [sql`failure IS NOT NULL`] : [
          sql`status = ${recordNumber[status]}::smallint`
        ],
        ...failure === undefined ? [] : [sql`failure = ${failure}`],
        ...rejected === undefined ? [] : [sql`NOT EXISTS (
          SELECT FROM device WHERE device.device_id = ota_record.device_id AND device.status = ${rejected})`]
      ])
      const [counted] = status !== undefined && failure === undefined && rejected === undefined
        ? yield* sql<TaskRow>`SELECT * FROM ota_task WHERE task_id = ${taskId}`.pipe(
          Effect.map((tasks) => tasks.map((task) => ({ count: taskFromRow(task).counts[status] })))
        )
        : yield* reads<{ readonly count: number }>`SELECT count(*)::int AS count FROM ota_record WHERE ${where}`
      const total = counted?.count ?? 0
      const offset = (page - 1) * pageSize
      const items = offset >= total ? [] : yield* detailed(sql`SELECT * FROM ota_record WHERE ${where}
        ORDER BY place DESC LIMIT ${pageSize} OFFSET ${offset}`)
      return { items, total }
    }
  )

  return {
    records: (taskId, filter, request) =>
      (Object.values(filter).every((condition) => condition === undefined)
        ? allRecords(taskId, request)
        : matchingRecords(taskId, filter, request)).pipe(
          Effect.map(({ items, total }) => ({
            total,
            items: items.map((row) => ({
              record: recordFromRow(row),
              deviceStatus: row.device_status as DeviceStatus,
              currentVersion: row.current_version ?? ""
            }))
          })),
          Effect.mapError(storeError("OtaStore.records"))
        ),
    record: (deviceId, taskId) =>
      sql<RecordRow>`SELECT * FROM ota_record WHERE device_id = ${deviceId}
        ${taskId === undefined ? sql`` : sql`AND task_id = ${taskId}`} ORDER BY task_id DESC LIMIT 1`.pipe(
        Effect.flatMap(assign),
        Effect.map(([assignment]) => Option.fromUndefinedOr(assignment)),
        Effect.mapError(storeError("OtaStore.record"))
      ),
    newest: (deviceId, module) =>
      sql<RecordRow>`SELECT * FROM ota_record WHERE device_id = ${deviceId} AND module = ${module}
        ORDER BY task_id DESC LIMIT 1`.pipe(
        Effect.flatMap(assign),
        Effect.map(([assignment]) => Option.fromUndefinedOr(assignment)),
        Effect.mapError(storeError("OtaStore.newest"))
      ),
    unfinished: (deviceIds, module) =>
      sql<RecordRow>`SELECT * FROM ota_record WHERE device_id = ANY(${texts(deviceIds)}) AND ${isUnfinished}
        ${module === undefined ? sql`` : sql`AND module = ${module}`} ORDER BY task_id`.pipe(
        Effect.flatMap(assign),
        Effect.mapError(storeError("OtaStore.unfinished"))
      ),
    orphaned: (limit) =>
      reads<RecordRow>`SELECT * FROM ota_record WHERE ${isUnfinished} AND NOT EXISTS (
          SELECT FROM device WHERE device.device_id = ota_record.device_id
        ) LIMIT ${limit}`.pipe(
        Effect.flatMap(assign),
        Effect.mapError(storeError("OtaStore.orphaned"))
      ),
    save: (changes) =>
      changes.length === 0
        ? Effect.succeed({ saved: [], tasks: [] })
        : Effect.mapError(save(changes), storeError("OtaStore.save")),
    claimDue: ({ again, limit, now }) =>
      Effect.gen(function*() {
        const rows = yield* sql<RecordRow & { readonly is_connected: boolean }>`
          WITH due AS (
            SELECT task_id, device_id, due_at FROM ota_record WHERE due_at <= ${instant(now)}
            ORDER BY due_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
          )
          UPDATE ota_record SET due_at = ${instant(again)}
          FROM due LEFT JOIN presence USING (device_id)
          WHERE ota_record.task_id = due.task_id AND ota_record.device_id = due.device_id
          RETURNING ota_record.task_id, ota_record.device_id, ota_record.device_name, ota_record.status, ota_record.step,
            ota_record.is_confirmed, ota_record.is_held, ota_record.failures, ota_record.reason, due.due_at, ota_record.updated_at,
            ota_record.revision, presence.node_id IS NOT NULL AS is_connected`
        const connected = new Set(rows.flatMap((row) => row.is_connected ? [row.device_id] : []))
        const assignments = yield* assign(rows)
        return assignments.map((assignment) => ({
          ...assignment,
          isConnected: connected.has(assignment.record.deviceId)
        }))
      }).pipe(Effect.mapError(storeError("OtaStore.claimDue"))),
    reportVersions: (reports) => {
      // A statement changes a row only once: take the latest report of each module.
      const latest = [...new Map(reports.map((report) => [`${report.deviceId} ${report.module}`, report])).values()]
      return sql`
        WITH report AS (
          SELECT * FROM unnest(${texts(latest.map(({ deviceId }) => deviceId))},
            ${texts(latest.map(({ module }) => module))}, ${texts(latest.map(({ version }) => version))},
            ${instants(latest.map(({ at }) => at))}) AS report (device_id, module, version, reported_at)
        ), outdated AS (
          SELECT device.device_id, report.version FROM report JOIN device USING (device_id)
          WHERE report.module = 'default' AND device.firmware_version <> report.version
          ORDER BY device.device_id FOR NO KEY UPDATE OF device
        ), shown AS (
          UPDATE device SET firmware_version = outdated.version FROM outdated
          WHERE device.device_id = outdated.device_id
        )
        INSERT INTO device_module (device_id, module, version, reported_at)
        SELECT report.* FROM report JOIN device USING (device_id) ORDER BY device.device_id, module
        FOR KEY SHARE OF device
        ON CONFLICT (device_id, module) DO UPDATE
          SET version = excluded.version, reported_at = excluded.reported_at`.pipe(
        Effect.asVoid,
        Effect.mapError(storeError("OtaStore.reportVersions"))
      )
    },
    versions: (deviceId) =>
      sql<{ readonly module: string; readonly version: string }>`
        SELECT module, version FROM device_module WHERE device_id = ${deviceId}`.pipe(
        Effect.map((rows) => Object.fromEntries(rows.map(({ module, version }) => [module, version]))),
        Effect.mapError(storeError("OtaStore.versions"))
      )
  }
})

interface RecordDetailRow extends RecordRow {
  readonly device_status: string
  readonly current_version: string | null
}

/** What changes of statuses add to the counts of each task. */
const deltasOf = (changes: ReadonlyArray<RecordChange>): ReadonlyMap<number, RecordCounts> => {
  const deltas = new Map<number, Record<RecordStatus, number>>()
  for (const { after, before } of changes) {
    if (after.status === before.status) continue
    const delta = deltas.get(after.taskId) ?? { pending: 0, upgrading: 0, succeeded: 0, failed: 0, cancelled: 0 }
    deltas.set(after.taskId, delta)
    delta[before.status]--
    delta[after.status]++
  }
  return deltas
}
