/**
 * Firmware and upgrade tasks on PostgreSQL.
 */
import {
  type Assignment,
  deviceCount,
  type DeviceId,
  type DeviceStatus,
  type FirmwareDetail,
  type NewTask,
  OtaStore,
  type PageRequest,
  type RecordChange,
  type TaskCreated,
  type TaskScope,
  taskStatus,
  type UpgradeTask,
  verifiable
} from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import type { SqlError, Statement } from "effect/sql"
import {
  firmwareFromRow,
  type FirmwareRow,
  recordFromRow,
  type RecordRow,
  taskFromRow,
  type TaskRow
} from "./OtaRow.ts"
import { paginate } from "./Pagination.ts"
import { isForeignKeyViolation, isUniqueViolation, storeError } from "./PgErrors.ts"
import { booleans, instant, instants, texts, wholeNumbers } from "./PgParameters.ts"

type FirmwareDetailRow = FirmwareRow & { readonly product_name: string; readonly ongoing: boolean }

const firmwareDetail = (row: FirmwareDetailRow): FirmwareDetail => ({
  firmware: firmwareFromRow(row),
  productName: row.product_name,
  ongoing: row.ongoing
})

const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient

  const detailColumns = sql.literal(
    `firmware.*, product.name AS product_name, EXISTS (
      SELECT FROM ota_task WHERE ota_task.firmware_id = firmware.firmware_id AND ota_task.status < 2
    ) AS ongoing`
  )

  /** Records with the tasks and firmware that they are about. */
  const assign = Effect.fnUntraced(function*(rows: ReadonlyArray<RecordRow>) {
    if (rows.length === 0) return []
    const taskIds = wholeNumbers([...new Set(rows.map(({ task_id }) => Number(task_id)))])
    const tasks = yield* sql<TaskRow>`SELECT * FROM ota_task WHERE task_id = ANY(${taskIds}::bigint[])`
    const firmwareIds = wholeNumbers([...new Set(tasks.map(({ firmware_id }) => Number(firmware_id)))])
    const firmwares = yield* sql<FirmwareRow>`SELECT * FROM firmware WHERE firmware_id = ANY(${firmwareIds}::bigint[])`
    const firmwareById = new Map(firmwares.map((row) => [row.firmware_id, firmwareFromRow(row)]))
    const taskById = new Map(tasks.map((row) => [row.task_id, row]))
    return rows.flatMap((row): ReadonlyArray<Assignment> => {
      const task = taskById.get(row.task_id)
      const firmware = task === undefined ? undefined : firmwareById.get(task.firmware_id)
      // Deleted meanwhile.
      if (task === undefined || firmware === undefined) return []
      return [{ record: recordFromRow(row), task: taskFromRow(task), firmware }]
    })
  })

  /** When the record at `place`, a column, is due: `rolloutDelay` of the core, in SQL because there may be many. */
  const dueAt = (
    firstDue: number,
    { maximumPerMinute, taskId }: Pick<UpgradeTask, "maximumPerMinute" | "taskId">,
    place: string
  ): Statement.Fragment => {
    const turns = sql`((${sql.literal(place)} % ${maximumPerMinute}::int)::float8
      * ((1 + ${taskId}::bigint % 997)::float8 * 0.6180339887498949::float8))`
    return sql`${instant(firstDue)}::timestamptz + make_interval(
      secs => 60::float8 * (${sql.literal(place)} + (${turns} - floor(${turns}))) / ${maximumPerMinute}::int)`
  }

  const busy = (deviceIds: ReadonlyArray<DeviceId>, module: string) =>
    Effect.map(
      sql<{ readonly device_id: string }>`SELECT device_id FROM ota_record
        WHERE device_id = ANY(${texts(deviceIds)}) AND module = ${module} AND status < 3 LIMIT 1`,
      ([row]): TaskCreated | undefined =>
        row === undefined ? undefined : { _tag: "Busy", deviceId: row.device_id as DeviceId }
    )

  const unknown = Effect.fnUntraced(function*(task: NewTask, deviceIds: ReadonlyArray<DeviceId>) {
    const rows = yield* sql<{ readonly device_id: string }>`SELECT device_id FROM device
      WHERE device_id = ANY(${texts(deviceIds)}) AND project_id = ${task.projectId}
        AND product_key = ${task.productKey}`
    const known = new Set(rows.map(({ device_id }) => device_id))
    return deviceIds.filter((deviceId) => !known.has(deviceId))
  })

  const insertTask = (task: NewTask) =>
    sql<TaskRow>`INSERT INTO ota_task (kind, project_id, product_key, firmware_id, module, version, status,
        upgrade_policy, scope_mode, timeout, need_app_confirm, is_app_confirmed, download_protocol, maximum_per_minute,
        retry_count, retry_interval, abort_threshold_percent, abort_min_executed, created_at, updated_at)
      VALUES (${task.kind}, ${task.projectId}, ${task.productKey}, ${task.firmwareId}, ${task.module},
        ${task.version}, ${task.kind === "verify" ? 1 : 0}, ${task.upgradePolicy}, ${task.scopeMode},
        ${task.timeout}, ${task.needAppConfirm}, ${task.isAppConfirmed}, ${task.downloadProtocol}, ${task.maximumPerMinute},
        ${task.retryCount}, ${task.retryInterval}, ${task.abortThresholdPercent}, ${task.abortMinExecuted},
        ${instant(task.createdAt)}, ${instant(task.updatedAt)})
      RETURNING *`

  const insertRecords = (task: UpgradeTask, scope: TaskScope, firstDue: number) => {
    const isDue = task.upgradePolicy === 1 && (!task.needAppConfirm || task.isAppConfirmed)
    return sql<{ readonly device_id: string; readonly place: number }>`
      INSERT INTO ota_record (task_id, place, device_id, device_name, module, due_at, created_at, updated_at)
      SELECT ${task.taskId}::bigint, place, device_id, device_name, ${task.module},
        ${isDue ? dueAt(firstDue, task, "place") : sql`NULL::timestamptz`},
        ${instant(task.createdAt)}, ${instant(task.createdAt)}
      FROM (
        SELECT device.device_id, device.device_name, row_number() OVER (ORDER BY device.id) - 1 AS place
        FROM device LEFT JOIN device_module ON device_module.device_id = device.device_id
          AND device_module.module = ${task.module}
        WHERE device.project_id = ${task.projectId} AND device.product_key = ${task.productKey}
          AND coalesce(device_module.version, '') <> ${task.version}
          AND ${
      scope._tag === "Named"
        ? sql`device.device_id = ANY(${texts(scope.deviceIds)})`
        : sql`NOT EXISTS (SELECT FROM ota_record AS other WHERE other.device_id = device.device_id
                AND other.module = ${task.module} AND other.status < 3)`
    }
      ) AS candidate
      -- All are found before the first is stored: looking for others' records among one's own takes ever longer.
      ORDER BY place
      ${scope._tag === "Named" ? sql`` : sql`ON CONFLICT (device_id, module) WHERE status < 3 DO NOTHING`}
      RETURNING device_id, place`
  }

  /** Closes the gaps that devices have left which another task has taken at the same moment. */
  const closeRanks = (taskId: number) =>
    sql`UPDATE ota_record SET place = rank.place
      FROM (
        SELECT device_id, row_number() OVER (ORDER BY place) - 1 AS place FROM ota_record WHERE task_id = ${taskId}
      ) AS rank
      WHERE ota_record.task_id = ${taskId} AND ota_record.device_id = rank.device_id`

  const createTask = Effect.fnUntraced(
    function*(task: NewTask, scope: TaskScope, firstDue: number) {
      if (scope._tag === "Named") {
        const missing = yield* unknown(task, scope.deviceIds)
        if (missing.length > 0) return { _tag: "Unknown", deviceIds: missing } satisfies TaskCreated
        const taken = yield* busy(scope.deviceIds, task.module)
        if (taken !== undefined) return taken
      }
      const [known] = yield* sql`SELECT firmware_id FROM firmware WHERE firmware_id = ${task.firmwareId} FOR KEY SHARE`
      if (known === undefined) return { _tag: "NoFirmware" } satisfies TaskCreated
      if (task.kind === "verify") {
        const [moved] = yield* sql`UPDATE firmware SET status = 1, updated_at = ${instant(task.createdAt)}
          WHERE firmware_id = ${task.firmwareId} AND status = ANY(${wholeNumbers(verifiable)}::smallint[])
          RETURNING firmware_id`
        if (moved === undefined) return { _tag: "NotVerifiable" } satisfies TaskCreated
      }
      const [row] = yield* insertTask(task)
      const created = taskFromRow(row!)
      const records = yield* insertRecords(created, scope, firstDue)
      if (records.some(({ place }) => place >= records.length)) yield* closeRanks(created.taskId)
      const counts = { ...created.counts, pending: records.length }
      const status = task.kind === "verify" ? created.status : taskStatus(created.status, counts)
      yield* sql`UPDATE ota_task SET pending = ${records.length}, status = ${status} WHERE task_id = ${created.taskId}`
      return {
        _tag: "Created",
        task: { ...created, counts, status },
        deviceIds: records.map(({ device_id }) => device_id as DeviceId)
      } satisfies TaskCreated
    },
    sql.withTransaction
  )

  /** Adds to the counts of tasks, and stores what follows for their status. */
  const recount = Effect.fnUntraced(function*(
    deltas: ReadonlyMap<number, ReadonlyArray<number>>,
    at: number
  ): Effect.fn.Return<ReadonlyArray<UpgradeTask>, SqlError.SqlError> {
    if (deltas.size === 0) return []
    const entries = [...deltas]
    const delta = (status: number) => wholeNumbers(entries.map(([, counts]) => counts[status - 1]!))
    const rows = yield* sql<TaskRow>`
      WITH delta AS (
        SELECT * FROM unnest(${wholeNumbers(entries.map(([taskId]) => taskId))}::bigint[], ${delta(1)}::int[],
          ${delta(2)}::int[], ${delta(3)}::int[], ${delta(4)}::int[], ${delta(5)}::int[])
          AS delta (task_id, pending, upgrading, succeeded, failed, cancelled)
      )
      UPDATE ota_task SET pending = ota_task.pending + delta.pending,
        upgrading = ota_task.upgrading + delta.upgrading, succeeded = ota_task.succeeded + delta.succeeded,
        failed = ota_task.failed + delta.failed, cancelled = ota_task.cancelled + delta.cancelled,
        updated_at = ${instant(at)}
      FROM delta WHERE ota_task.task_id = delta.task_id RETURNING ota_task.*`
    const tasks: Array<UpgradeTask> = []
    for (const task of rows.map(taskFromRow)) {
      const status = task.kind === "verify" ? task.status : taskStatus(task.status, task.counts)
      if (status !== task.status) {
        yield* sql`UPDATE ota_task SET status = ${status} WHERE task_id = ${task.taskId}`
      }
      tasks.push({ ...task, status })
    }
    return tasks
  })

  const save = Effect.fnUntraced(
    function*(changes: ReadonlyArray<RecordChange>) {
      const after = changes.map((change) => change.after)
      // Tasks are locked before their records, by whoever changes both, so that nobody waits for one another.
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
          ${wholeNumbers(after.map(({ status }) => status))}::smallint[],
          ${wholeNumbers(after.map(({ step }) => step))}::int[],
          ${booleans(after.map(({ isConfirmed }) => isConfirmed))},
          ${wholeNumbers(after.map(({ failures }) => failures))}::int[],
          ${texts(after.map(({ reason }) => reason))},
          ${instants(after.map((record) => record.dueAt))},
          ${instants(after.map(({ updatedAt }) => updatedAt))},
          ${wholeNumbers(after.map(({ revision }) => revision))}::bigint[]
        ) WITH ORDINALITY AS change (task_id, device_id, before, status, step, is_confirmed, failures, reason, due_at,
          updated_at, revision, place) JOIN ota_task USING (task_id)
        WHERE (change.status > 1 OR ota_task.status < 2) AND ota_record.task_id = change.task_id AND ota_record.device_id = change.device_id
          AND ota_record.revision = change.before
        RETURNING change.place`
      const places = new Set(rows.map(({ place }) => Number(place) - 1))
      const deltas = new Map<number, Array<number>>()
      changes.forEach(({ after, before }, place) => {
        if (!places.has(place) || after.status === before.status) return
        const delta = deltas.get(after.taskId) ?? [0, 0, 0, 0, 0]
        deltas.set(after.taskId, delta)
        delta[before.status - 1]!--
        delta[after.status - 1]!++
      })
      const tasks = yield* recount(deltas, Math.max(0, ...after.map(({ updatedAt }) => updatedAt)))
      return { saved: changes.map((_, place) => places.has(place)), tasks }
    },
    sql.withTransaction
  )

  interface RecordDetailRow extends RecordRow {
    readonly device_status: string
    readonly current_version: string | null
  }

  /** The records of `page`, with what is shown beside them. */
  const detailed = (page: Statement.Fragment) =>
    sql<RecordDetailRow>`WITH page AS (${page})
      SELECT page.*, coalesce(device.status, 'offline') AS device_status, device_module.version AS current_version
      FROM page LEFT JOIN device USING (device_id)
      LEFT JOIN device_module ON device_module.device_id = page.device_id AND device_module.module = page.module
      ORDER BY page.place DESC`

  /** Their places are 0 and up without gaps: neither counted nor skipped one by one. */
  const allRecords = Effect.fnUntraced(function*(taskId: number, { page, pageSize }: PageRequest) {
    const [task] = yield* sql<TaskRow>`SELECT * FROM ota_task WHERE task_id = ${taskId}`
    const count = task === undefined ? 0 : deviceCount(taskFromRow(task).counts)
    const end = count - (page - 1) * pageSize
    if (end <= 0) return { items: [], total: count }
    const items = yield* detailed(sql`SELECT * FROM ota_record
      WHERE task_id = ${taskId} AND place >= ${end - pageSize} AND place < ${end}`)
    return { items, total: count }
  })

  const notRejected = Effect.fnUntraced(
    function*(taskId: number, rejected: DeviceStatus, { page, pageSize }: PageRequest) {
      const where = sql`task_id = ${taskId} AND NOT EXISTS (
        SELECT FROM device WHERE device.device_id = ota_record.device_id AND device.status = ${rejected})`
      const [counted] = yield* sql<{ readonly count: bigint }>`SELECT count(*) AS count FROM ota_record WHERE ${where}`
      const items = yield* detailed(sql`SELECT * FROM ota_record WHERE ${where}
        ORDER BY place DESC LIMIT ${pageSize} OFFSET ${(page - 1) * pageSize}`)
      return { items, total: Number(counted!.count) }
    }
  )

  return OtaStore.of({
    insertFirmware: (firmware) =>
      sql<FirmwareRow>`INSERT INTO firmware (project_id, product_key, name, version, oss_path, hash, size, remark,
          module, status, created_at, updated_at)
        SELECT project_id, product_key, ${firmware.name}, ${firmware.version}, ${firmware.ossPath}, ${firmware.hash},
          ${firmware.size}::int, ${firmware.remark}, ${firmware.module}, ${firmware.status}::smallint,
          ${instant(firmware.createdAt)}, ${instant(firmware.updatedAt)}
        FROM product WHERE project_id = ${firmware.projectId} AND product_key = ${firmware.productKey}
        RETURNING *`.pipe(
        Effect.map(([row]) => row === undefined ? "no-product" as const : firmwareFromRow(row)),
        Effect.catchIf(isUniqueViolation, () => Effect.succeed("taken" as const)),
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeed("no-product" as const)),
        Effect.mapError(storeError("OtaStore.insertFirmware"))
      ),
    firmware: (projectId, firmwareId) =>
      sql<FirmwareDetailRow>`SELECT ${detailColumns} FROM firmware JOIN product USING (product_key)
        WHERE firmware_id = ${firmwareId} AND firmware.project_id = ${projectId}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), firmwareDetail)),
        Effect.mapError(storeError("OtaStore.firmware"))
      ),
    listFirmwares: (projectId, { name, productKey }, page) =>
      paginate<FirmwareDetailRow>(sql, {
        table: "firmware",
        where: sql.and([
          sql`project_id = ${projectId}`,
          ...productKey === undefined ? [] : [sql`product_key = ${productKey}`],
          ...name === undefined ? [] : [sql`strpos(name, ${name}) > 0`]
        ]),
        tieBreaker: "firmware_id",
        select: sql`SELECT ${detailColumns} FROM page JOIN firmware USING (firmware_id)
          JOIN product ON product.product_key = firmware.product_key`,
        page
      }).pipe(
        Effect.map(({ items, total }) => ({ items: items.map(firmwareDetail), total })),
        Effect.mapError(storeError("OtaStore.listFirmwares"))
      ),
    removeFirmware: (projectId, firmwareId) =>
      Effect.gen(function*() {
        const [row] = yield* sql`SELECT firmware_id FROM firmware
          WHERE firmware_id = ${firmwareId} AND project_id = ${projectId} FOR UPDATE`
        if (row === undefined) return "not-found" as const
        // By itself, after the lock: it sees a task that was made while this waited.
        const ongoing = yield* sql`SELECT task_id FROM ota_task
          WHERE firmware_id = ${firmwareId} AND status < 2 LIMIT 1`
        if (ongoing.length > 0) return "ongoing" as const
        yield* sql`DELETE FROM firmware WHERE firmware_id = ${firmwareId}`
        return "removed" as const
      }).pipe(sql.withTransaction, Effect.mapError(storeError("OtaStore.removeFirmware"))),
    createTask: (task, scope, firstDue) =>
      createTask(task, scope, firstDue).pipe(
        // A task that was made at the same moment has one of the devices; the second look sees it.
        Effect.retry({ while: isUniqueViolation, times: 3 }),
        Effect.mapError(storeError("OtaStore.createTask"))
      ),
    task: (projectId, taskId) =>
      sql<TaskRow>`SELECT * FROM ota_task WHERE task_id = ${taskId} AND project_id = ${projectId}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), taskFromRow)),
        Effect.mapError(storeError("OtaStore.task"))
      ),
    verifyTask: (firmwareId) =>
      sql<TaskRow>`SELECT * FROM ota_task WHERE firmware_id = ${firmwareId} AND kind = 'verify'
        ORDER BY task_id DESC LIMIT 1`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), taskFromRow)),
        Effect.mapError(storeError("OtaStore.verifyTask"))
      ),
    listTasks: (projectId, { firmwareId, status, taskId }, page) =>
      paginate<TaskRow>(sql, {
        table: "ota_task",
        where: sql.and([
          sql`project_id = ${projectId} AND firmware_id = ${firmwareId} AND kind = 'upgrade'`,
          ...status === undefined ? [] : [sql`status = ${status}`],
          ...taskId === undefined ? [] : [sql`task_id = ${taskId}`]
        ]),
        tieBreaker: "task_id",
        select: sql`SELECT * FROM page`,
        page
      }).pipe(
        Effect.map(({ items, total }) => ({ items: items.map(taskFromRow), total })),
        Effect.mapError(storeError("OtaStore.listTasks"))
      ),
    records: (taskId, rejected, request) =>
      (rejected === undefined ? allRecords(taskId, request) : notRejected(taskId, rejected, request)).pipe(
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
    unfinished: (deviceIds, module) =>
      sql<RecordRow>`SELECT * FROM ota_record WHERE device_id = ANY(${texts(deviceIds)}) AND status < 3
        ${module === undefined ? sql`` : sql`AND module = ${module}`} ORDER BY task_id`.pipe(
        Effect.flatMap(assign),
        Effect.mapError(storeError("OtaStore.unfinished"))
      ),
    save: (changes) =>
      changes.length === 0
        ? Effect.succeed({ saved: [], tasks: [] })
        : Effect.mapError(save(changes), storeError("OtaStore.save")),
    endTask: (taskId, to, cancelled, at) =>
      Effect.gen(function*() {
        const [task] = yield* sql<TaskRow>`UPDATE ota_task SET status = ${to}, updated_at = ${instant(at)}
          WHERE task_id = ${taskId} AND status < 2 RETURNING *`
        if (task === undefined) return false
        if (task.kind === "verify") {
          yield* sql`UPDATE firmware SET status = ${to}, updated_at = ${instant(at)}
            WHERE firmware_id = ${Number(task.firmware_id)}`
        }
        yield* sql`
          WITH ended AS (
            SELECT device_id, status FROM ota_record
            WHERE task_id = ${taskId} AND status = ANY(${wholeNumbers(cancelled)}::smallint[]) FOR UPDATE
          ), changed AS (
            UPDATE ota_record SET status = 5, due_at = NULL, reason = 'cancelled', revision = revision + 1,
              updated_at = ${instant(at)}
            FROM ended WHERE ota_record.task_id = ${taskId} AND ota_record.device_id = ended.device_id
          )
          UPDATE ota_task SET
            pending = pending - (SELECT count(*) FROM ended WHERE status = 1),
            upgrading = upgrading - (SELECT count(*) FROM ended WHERE status = 2),
            cancelled = cancelled + (SELECT count(*) FROM ended)
          WHERE task_id = ${taskId}`
        return true
      }).pipe(sql.withTransaction, Effect.mapError(storeError("OtaStore.endTask"))),
    confirmTask: (taskId, firstDue) =>
      Effect.gen(function*() {
        const [task] = yield* sql<TaskRow>`UPDATE ota_task SET is_app_confirmed = true, updated_at = ${
          instant(firstDue)
        }
          WHERE task_id = ${taskId} AND NOT is_app_confirmed RETURNING *`
        if (task === undefined) return false
        if (task.upgrade_policy === 1) {
          yield* sql`
            UPDATE ota_record SET revision = revision + 1, due_at = ${
            dueAt(firstDue, taskFromRow(task), "pending.place")
          }
            FROM (
              SELECT device_id, row_number() OVER (ORDER BY ota_record.place) - 1 AS place FROM ota_record
              WHERE task_id = ${taskId} AND status = 1
            ) AS pending
            WHERE ota_record.task_id = ${taskId} AND ota_record.device_id = pending.device_id`
        }
        return true
      }).pipe(sql.withTransaction, Effect.mapError(storeError("OtaStore.confirmTask"))),
    claimDue: ({ again, limit, now }) =>
      Effect.gen(function*() {
        const rows = yield* sql<RecordRow & { readonly is_online: boolean }>`
          WITH due AS (
            SELECT task_id, device_id, due_at FROM ota_record WHERE due_at <= ${instant(now)}
            ORDER BY due_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
          )
          UPDATE ota_record SET due_at = ${instant(again)}
          FROM due LEFT JOIN device USING (device_id)
          WHERE ota_record.task_id = due.task_id AND ota_record.device_id = due.device_id
          RETURNING ota_record.task_id, ota_record.device_id, ota_record.device_name, ota_record.status, ota_record.step,
            ota_record.is_confirmed, ota_record.failures, ota_record.reason, due.due_at, ota_record.updated_at,
            ota_record.revision, coalesce(device.status = 'online', false) AS is_online`
        const online = new Set(rows.flatMap((row) => row.is_online ? [row.device_id] : []))
        const assignments = yield* assign(rows)
        return assignments.map((assignment) => ({ ...assignment, isOnline: online.has(assignment.record.deviceId) }))
      }).pipe(Effect.mapError(storeError("OtaStore.claimDue"))),
    reportVersions: (reports) => {
      // A statement changes a row once: the latest of each module counts.
      const latest = [...new Map(reports.map((report) => [`${report.deviceId} ${report.module}`, report])).values()]
      return sql`
        WITH report AS (
          SELECT * FROM unnest(${texts(latest.map(({ deviceId }) => deviceId))},
            ${texts(latest.map(({ module }) => module))}, ${texts(latest.map(({ version }) => version))},
            ${instants(latest.map(({ at }) => at))}) AS report (device_id, module, version, reported_at)
        ), shown AS (
          UPDATE device SET firmware_version = report.version FROM report
          WHERE device.device_id = report.device_id AND report.module = 'default'
            AND device.firmware_version <> report.version
        )
        INSERT INTO device_module (device_id, module, version, reported_at)
        SELECT report.* FROM report JOIN device USING (device_id)
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
  })
})

export const layer: Layer.Layer<OtaStore, never, PgClient.PgClient> = Layer.effect(OtaStore, make)
