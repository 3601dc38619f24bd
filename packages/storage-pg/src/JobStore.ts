/**
 * Jobs and their tasks on PostgreSQL. Whoever changes several tasks locks them in
 * the order of jobs and devices: no deadlock.
 */
import {
  type DeviceId,
  type JobCreated,
  type JobScope,
  JobStore,
  type JobTaskReport,
  JobTaskState,
  type NewJob,
  outcomeOf,
  type TaskChoice
} from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import {
  assignedFromRow,
  type AssignedRow,
  isOpen,
  jobFromRow,
  type JobRow,
  taskFromRow,
  type TaskRow
} from "./JobRow.ts"
import { type Clients, clients } from "./LongReads.ts"
import { paginate } from "./Pagination.ts"
import { isForeignKeyViolation, storeError } from "./PgErrors.ts"
import { eachByIndex, instant, instants, texts, wholeNumbers } from "./PgParameters.ts"
import { pruneWithParts } from "./Pruning.ts"
import { noteAdded } from "./Statistics.ts"

/** Part of the group that is replaced together: it reads devices and where they are. */
export const layer: Layer.Layer<JobStore, never, PgClient.PgClient> = Layer.effect(
  JobStore,
  Effect.map(clients, (both) => make(both))
)

const choices: Readonly<Record<TaskChoice, string>> = {
  open: isOpen,
  untold: "is_untold",
  waiting: "(is_untold OR state = 'sent')"
}

const make = ({ reads, sql }: Clients) => {
  const open = sql.literal(isOpen)
  const withOpen = sql`EXISTS (SELECT FROM job_task WHERE job_task.job_id = page.job_id AND ${open}) AS is_open`

  const unknown = Effect.fnUntraced(function*({ projectId }: NewJob, deviceIds: ReadonlyArray<DeviceId>) {
    const rows = yield* sql<{ readonly device_id: string }>`SELECT device_id FROM device
      WHERE device_id = ANY(${texts(deviceIds)}) AND project_id = ${projectId} ORDER BY device_id FOR KEY SHARE`
    const known = new Set(rows.map(({ device_id }) => device_id))
    return deviceIds.filter((deviceId) => !known.has(deviceId))
  })

  const create = Effect.fnUntraced(function*(draft: NewJob, scope: JobScope, pace: number) {
    if (scope._tag === "Named") {
      const deviceIds = yield* unknown(draft, scope.deviceIds)
      if (deviceIds.length > 0) return { _tag: "Unknown", deviceIds } satisfies JobCreated
    }
    const { createdAt, description, document, name, productKey, projectId, timeout } = draft
    const [row] = yield* sql<JobRow & { readonly tasks: number }>`
      WITH chosen AS MATERIALIZED (
        -- Locked: none is removed before the job is there.
        SELECT id, device_id FROM device WHERE project_id = ${projectId} AND ${
      scope._tag === "Named" ? sql`device_id = ANY(${texts(scope.deviceIds)})` : sql`product_key = ${scope.productKey}`
    }
        ORDER BY device_id FOR KEY SHARE
      ), created AS (
        INSERT INTO job (project_id, name, description, document, timeout, product_key, created_at)
        VALUES (${projectId}, ${name}, ${description}, ${JSON.stringify(document)}::json, ${timeout}, ${productKey},
          ${instant(createdAt)})
        RETURNING *
      ), tasks AS (
        INSERT INTO job_task (job_id, device_id, due_at, created_at, updated_at)
        SELECT job_id, device_id,
          ${
      instant(createdAt)
    }::timestamptz + (row_number() OVER (ORDER BY id) - 1) * ${pace} * interval '1 millisecond',
          ${instant(createdAt)}, ${instant(createdAt)}
        FROM created, chosen
      )
      SELECT created.*, tasks > 0 AS is_open, tasks
      FROM created, (SELECT count(*)::int AS tasks FROM chosen) AS counted`
    yield* noteAdded(sql, "job_task", row!.tasks)
    return { _tag: "Created", job: jobFromRow(row!) } satisfies JobCreated
  }, sql.withTransaction)

  const counts = Effect.fnUntraced(function*(jobId: number) {
    const rows = yield* reads<{ readonly state: JobTaskState; readonly count: bigint }>`
      SELECT state, count(*) AS count FROM job_task WHERE job_id = ${jobId} GROUP BY state`
    const found = new Map(rows.map(({ count, state }) => [state, Number(count)]))
    return Object.fromEntries(JobTaskState.literals.map((state) => [state, found.get(state) ?? 0])) as Record<
      JobTaskState,
      number
    >
  })

  /** Tasks with their documents, each of which is read once. */
  const assign = Effect.fnUntraced(function*(rows: ReadonlyArray<TaskRow>) {
    if (rows.length === 0) return []
    const jobIds = wholeNumbers([...new Set(rows.map(({ job_id }) => Number(job_id)))])
    const jobs = yield* sql<Pick<JobRow, "job_id" | "document">>`
      SELECT job_id, document FROM job WHERE job_id = ANY(${jobIds}::bigint[])`
    const documents = new Map(jobs.map(({ document, job_id }) => [job_id, document]))
    return rows.flatMap((row) => {
      const document = documents.get(row.job_id)
      // Somebody has removed the job since the task was read.
      return document === undefined ? [] : [assignedFromRow({ ...row, document })]
    })
  })

  const cancel = Effect.fnUntraced(function*(jobId: number, at: number) {
    const [row] = yield* sql`UPDATE job SET is_cancelled = true
      WHERE job_id = ${jobId} AND NOT is_cancelled
        AND EXISTS (SELECT FROM job_task WHERE job_task.job_id = job.job_id AND ${open})
      RETURNING 1`
    if (row === undefined) return false
    // Locked first, in their order. In one statement they would be joined to themselves, each to all of them
    // if the statistics of the table do not know this job yet.
    yield* sql`SELECT count(*) FROM (
      SELECT FROM job_task WHERE job_id = ${jobId} AND ${open} ORDER BY device_id FOR UPDATE
    ) AS locked`
    yield* sql`UPDATE job_task SET state = 'cancelled', is_untold = state <> 'queued', updated_at = ${instant(at)},
        due_at = CASE WHEN state <> 'queued' THEN ${instant(at)}::timestamptz END
      WHERE job_id = ${jobId} AND ${open}`
    return true
  }, sql.withTransaction)

  const report = Effect.fnUntraced(function*(reports: ReadonlyArray<JobTaskReport>) {
    const rows = yield* sql<{ readonly place: bigint; readonly before: JobTaskState | null }>`
      WITH report AS (
        SELECT * FROM unnest(${wholeNumbers(reports.map(({ jobId }) => jobId))}::bigint[],
          ${texts(reports.map(({ deviceId }) => deviceId))}, ${texts(reports.map(({ state }) => state))},
          ${wholeNumbers(reports.map(({ progress }) => progress ?? null))}::smallint[],
          ${texts(reports.map(({ details }) => details === undefined ? null : JSON.stringify(details)))},
          ${instants(reports.map(({ at }) => at))})
          WITH ORDINALITY AS report (job_id, device_id, state, progress, details, at, place)
        ${eachByIndex(sql, reports.length)}
      ), locked AS (
        SELECT job_task.job_id, job_task.device_id, job_task.state, job.timeout
        FROM report JOIN job_task USING (job_id, device_id) JOIN job USING (job_id)
        ORDER BY job_task.job_id, job_task.device_id FOR UPDATE OF job_task
      ), changed AS (
        UPDATE job_task SET state = report.state, progress = coalesce(report.progress, job_task.progress),
          details = coalesce(report.details::json, job_task.details), is_untold = false, updated_at = report.at,
          due_at = CASE
            WHEN report.state <> 'in_progress' OR locked.timeout = 0 THEN NULL
            WHEN locked.state = 'in_progress' THEN job_task.due_at
            ELSE report.at + locked.timeout * interval '1 second'
          END
        FROM locked JOIN report USING (job_id, device_id)
        WHERE job_task.job_id = locked.job_id AND job_task.device_id = locked.device_id AND locked.${open}
      )
      SELECT report.place, locked.state AS before FROM report LEFT JOIN locked USING (job_id, device_id)
      ORDER BY report.place`
    return rows.map(({ before }, i) => outcomeOf(before ?? undefined, reports[i]!))
  })

  return JobStore.of({
    create: (job, scope, pace) =>
      create(job, scope, pace).pipe(
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeed({ _tag: "NoProject" } satisfies JobCreated)),
        Effect.mapError(storeError("JobStore.create"))
      ),
    get: (projectId, jobId) =>
      Effect.gen(function*() {
        const [row] = yield* reads<JobRow>`SELECT *, ${withOpen} FROM job AS page
          WHERE job_id = ${jobId} AND project_id = ${projectId}`
        return row === undefined ? Option.none() : Option.some({ job: jobFromRow(row), counts: yield* counts(jobId) })
      }).pipe(Effect.mapError(storeError("JobStore.get"))),
    list: (projectId, page) =>
      paginate<JobRow>(reads, {
        table: "job",
        where: sql`project_id = ${projectId}`,
        tieBreaker: "job_id",
        select: sql`SELECT *, ${withOpen} FROM page`,
        page
      }).pipe(
        Effect.map(({ items, total }) => ({ items: items.map(jobFromRow), total })),
        Effect.mapError(storeError("JobStore.list"))
      ),
    countUnderWay: (projectId) =>
      reads<{ readonly found: number }>`SELECT count(*)::int AS found FROM job
        WHERE project_id = ${projectId} AND NOT is_cancelled
          AND EXISTS (SELECT FROM job_task WHERE job_task.job_id = job.job_id AND ${open})`.pipe(
        Effect.map(([row]) => row!.found),
        Effect.mapError(storeError("JobStore.countUnderWay"))
      ),
    tasks: (jobId, state, { page, pageSize }) =>
      Effect.gen(function*() {
        const where = sql`job_id = ${jobId} ${state === undefined ? sql`` : sql`AND state = ${state}`}`
        const [counted] = yield* reads<
          { readonly count: bigint }
        >`SELECT count(*) AS count FROM job_task WHERE ${where}`
        const rows = yield* reads<TaskRow>`SELECT * FROM job_task WHERE ${where}
          ORDER BY device_id LIMIT ${pageSize} OFFSET ${(page - 1) * pageSize}`
        return { items: rows.map(taskFromRow), total: Number(counted!.count) }
      }).pipe(Effect.mapError(storeError("JobStore.tasks"))),
    cancel: (jobId, at) => Effect.mapError(cancel(jobId, at), storeError("JobStore.cancel")),
    remove: (jobId) =>
      sql`DELETE FROM job WHERE job_id = ${jobId}
        AND NOT EXISTS (SELECT FROM job_task WHERE job_task.job_id = job.job_id AND ${open}) RETURNING 1`.pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.mapError(storeError("JobStore.remove"))
      ),
    ofDevices: (deviceIds, choice, limit) =>
      sql<TaskRow>`
        SELECT task.*
        FROM (SELECT * FROM unnest(${texts(deviceIds)}) AS wanted (device_id) ${
        eachByIndex(sql, deviceIds.length)
      }) AS wanted
        CROSS JOIN LATERAL (
          SELECT * FROM job_task WHERE job_task.device_id = wanted.device_id AND ${sql.literal(choices[choice])}
          ORDER BY job_id LIMIT ${limit}
        ) AS task ORDER BY task.device_id, task.job_id`.pipe(
        Effect.flatMap(assign),
        Effect.mapError(storeError("JobStore.ofDevices"))
      ),
    task: (deviceId, jobId) =>
      sql<AssignedRow>`SELECT job_task.*, job.document FROM job_task JOIN job USING (job_id)
        WHERE job_id = ${jobId} AND device_id = ${deviceId}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), assignedFromRow)),
        Effect.mapError(storeError("JobStore.task"))
      ),
    told: (tasks, at) =>
      tasks.length === 0 ? Effect.void : sql`
        WITH told AS (
          SELECT * FROM unnest(${wholeNumbers(tasks.map(({ jobId }) => jobId))}::bigint[],
            ${texts(tasks.map(({ deviceId }) => deviceId))}, ${texts(tasks.map(({ state }) => state))})
            AS told (job_id, device_id, state)
          ${eachByIndex(sql, tasks.length)}
        ), locked AS (
          SELECT job_id, device_id FROM told JOIN job_task USING (job_id, device_id)
          WHERE CASE WHEN job_task.is_untold THEN job_task.state = told.state
            ELSE told.state = 'queued' AND job_task.state = 'cancelled' END
          ORDER BY job_task.job_id, job_task.device_id FOR UPDATE OF job_task
        )
        UPDATE job_task SET state = CASE state WHEN 'queued' THEN 'sent' ELSE state END, is_untold = NOT is_untold,
          due_at = CASE WHEN NOT is_untold THEN ${instant(at)}::timestamptz END,
          updated_at = CASE state WHEN 'queued' THEN ${instant(at)}::timestamptz ELSE updated_at END
        FROM locked WHERE job_task.job_id = locked.job_id AND job_task.device_id = locked.device_id`.pipe(
        Effect.asVoid,
        Effect.mapError(storeError("JobStore.told"))
      ),
    report: (reports) =>
      reports.length === 0 ? Effect.succeed([]) : Effect.mapError(report(reports), storeError("JobStore.report")),
    claimDue: ({ again, late, limit, now }) => {
      const isLate = sql`(state = 'in_progress' AND due_at < ${instant(late)})`
      return sql<{ readonly device_id: string; readonly is_online: boolean }>`
        WITH late AS (
          SELECT job_id, device_id FROM job_task WHERE ${isLate}
          ORDER BY due_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
        ), prolonged AS (
          UPDATE job_task SET due_at = ${instant(again)} FROM late
          WHERE job_task.job_id = late.job_id AND job_task.device_id = late.device_id
        ), due AS (
          SELECT job_id, device_id FROM job_task WHERE due_at <= ${instant(now)} AND NOT ${isLate}
          ORDER BY due_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
        )
        UPDATE job_task SET state = CASE state WHEN 'in_progress' THEN 'timed_out' ELSE state END,
          is_untold = is_untold OR state = 'in_progress',
          updated_at = CASE state WHEN 'in_progress' THEN ${instant(now)}::timestamptz ELSE job_task.updated_at END,
          due_at = CASE device.status WHEN 'online' THEN ${instant(again)}::timestamptz END
        FROM due JOIN device USING (device_id)
        WHERE job_task.job_id = due.job_id AND job_task.device_id = due.device_id
        RETURNING job_task.device_id, device.status = 'online' AS is_online`.pipe(
        Effect.map((rows) =>
          rows.map(({ device_id, is_online }) => ({ deviceId: device_id as DeviceId, isOnline: is_online }))
        ),
        Effect.mapError(storeError("JobStore.claimDue"))
      )
    },
    prune: ({ before, limit }) =>
      pruneWithParts(
        reads,
        { table: "job", parts: "job_task", id: "job_id" },
        sql`created_at < ${instant(before)} AND NOT EXISTS (
          SELECT FROM job_task WHERE job_task.job_id = job.job_id AND ${open}
        ) AND NOT EXISTS (
          SELECT FROM job_task WHERE job_task.job_id = job.job_id AND job_task.updated_at >= ${instant(before)}
        )`,
        limit
      ).pipe(Effect.mapError(storeError("JobStore.prune")))
  })
}
