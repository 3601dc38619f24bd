/**
 * Jobs and their tasks on SQLite.
 */
import {
  type AssignedTask,
  type DeviceId,
  type JobCreated,
  type JobScope,
  JobStore,
  type JobTaskReport,
  JobTaskState,
  type NewJob,
  openStates,
  outcomeOf,
  type ReportOutcome,
  type TaskChoice,
  type ToldTask
} from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { assignedFromRows, jobColumns, jobFromRow, type JobRow, taskFromRow, type TaskRow } from "./JobRow.ts"
import { pageOf } from "./Paging.ts"
import { pruneWithParts } from "./Pruning.ts"
import { Sqlite } from "./Sqlite.ts"
import { unknownDevices } from "./UnknownDevices.ts"

/** Part of the group that is replaced together: it reads devices and where they are. */
export const layer: Layer.Layer<JobStore, never, Sqlite> = Layer.effect(
  JobStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

const choices: Readonly<Record<TaskChoice, string>> = {
  open: "is_open = 1",
  untold: "is_untold = 1",
  waiting: "(is_untold = 1 OR state = 'sent')"
}

const isOpen = (state: JobTaskState): boolean => openStates.includes(state)

/** What changes of a task. `dueAt`: Unix milliseconds; null: nothing is to be done. */
interface TaskChange {
  readonly state: JobTaskState
  readonly isUntold: boolean
  readonly dueAt: number | null
  readonly updatedAt: number
}

const make = (sql: Sqlite["Service"]) => {
  const findJob = (jobId: number): JobRow | undefined =>
    sql.get<JobRow>(`SELECT ${jobColumns} FROM job WHERE job_id = ?`, [jobId])

  const findTask = (jobId: number, deviceId: DeviceId): TaskRow | undefined =>
    sql.get<TaskRow>("SELECT * FROM job_task WHERE job_id = ? AND device_id = ?", [jobId, deviceId])

  const change = (
    { device_id, job_id }: Pick<TaskRow, "device_id" | "job_id">,
    { dueAt, isUntold, state, updatedAt }: TaskChange
  ) =>
    sql.run(
      `UPDATE job_task SET state = ?, is_open = ?, is_untold = ?, due_at = ?, updated_at = ?
        WHERE job_id = ? AND device_id = ?`,
      [state, isOpen(state), isUntold, dueAt, updatedAt, job_id, device_id]
    )

  const create = (draft: NewJob, scope: JobScope, pace: number): JobCreated => {
    const { createdAt, projectId } = draft
    if (scope._tag === "Named") {
      const deviceIds = unknownDevices(sql, { projectId }, scope.deviceIds)
      if (deviceIds.length > 0) return { _tag: "Unknown", deviceIds }
    }
    if (sql.get("SELECT 1 FROM project WHERE id = ?", [projectId]) === undefined) return { _tag: "NoProject" }
    const { job_id } = sql.get<{ readonly job_id: number }>(
      `INSERT INTO job (project_id, name, description, document, timeout, product_key, created_at)
        VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING job_id`,
      [
        projectId,
        draft.name,
        draft.description,
        JSON.stringify(draft.document),
        draft.timeout,
        draft.productKey,
        createdAt
      ]
    )!
    const { values, where } = scope._tag === "Named"
      ? { where: "device_id IN (SELECT value FROM json_each(?))", values: [JSON.stringify(scope.deviceIds)] }
      : { where: "project_id = ? AND product_key = ?", values: [projectId, scope.productKey] }
    sql.run(
      `INSERT INTO job_task (job_id, device_id, due_at, created_at, updated_at)
        SELECT ?1, device_id, ?2 + (row_number() OVER (ORDER BY id) - 1) * ?3, ?2, ?2 FROM device WHERE ${where}`,
      [job_id, createdAt, pace, ...values]
    )
    return { _tag: "Created", job: jobFromRow(findJob(job_id)!) }
  }

  const counts = (jobId: number): Record<JobTaskState, number> => {
    const rows = sql.all<{ readonly state: JobTaskState; readonly count: number }>(
      "SELECT state, count(*) AS count FROM job_task WHERE job_id = ? GROUP BY state",
      [jobId]
    )
    const found = new Map(rows.map(({ count, state }) => [state, count]))
    return Object.fromEntries(JobTaskState.literals.map((state) => [state, found.get(state) ?? 0])) as Record<
      JobTaskState,
      number
    >
  }

  const cancel = (jobId: number, at: number): boolean => {
    const cancelled = sql.run(
      `UPDATE job SET is_cancelled = 1 WHERE job_id = ? AND is_cancelled = 0
        AND EXISTS (SELECT 1 FROM job_task WHERE job_task.job_id = job.job_id AND job_task.is_open = 1)`,
      [jobId]
    )
    if (cancelled === 0) return false
    for (const row of sql.all<TaskRow>("SELECT * FROM job_task WHERE job_id = ? AND is_open = 1", [jobId])) {
      const isUntold = row.state !== "queued"
      change(row, { state: "cancelled", isUntold, dueAt: isUntold ? at : null, updatedAt: at })
    }
    return true
  }

  const tell = ({ deviceId, jobId, state }: ToldTask, at: number) => {
    const row = findTask(jobId, deviceId)
    if (row === undefined) return
    const isQueued = state === "queued"
    if (isQueued && row.state === "cancelled" && row.is_untold === 0) {
      // It was cancelled while its device was told that it waits.
      change(row, { state: row.state, isUntold: true, dueAt: at, updatedAt: row.updated_at })
    }
    if (row.state !== state || row.is_untold === 0) return
    change(row, {
      state: isQueued ? "sent" : state,
      isUntold: false,
      dueAt: null,
      updatedAt: isQueued ? at : row.updated_at
    })
  }

  const report = (said: JobTaskReport): ReportOutcome => {
    const { at, details, deviceId, jobId, progress, state } = said
    const row = findTask(jobId, deviceId)
    const outcome = outcomeOf(row?.state, said)
    if (row === undefined || outcome !== "stored" || !isOpen(row.state)) return outcome
    const { timeout } = sql.get<{ readonly timeout: number }>("SELECT timeout FROM job WHERE job_id = ?", [jobId])!
    const end = row.state === "in_progress" ? row.due_at : at + timeout * 1000
    change(row, {
      state,
      isUntold: false,
      dueAt: state !== "in_progress" || timeout === 0 ? null : end,
      updatedAt: at
    })
    sql.run(
      `UPDATE job_task SET progress = coalesce(?, progress), details = coalesce(?, details)
        WHERE job_id = ? AND device_id = ?`,
      [progress ?? null, details === undefined ? null : JSON.stringify(details), jobId, deviceId]
    )
    return outcome
  }

  const assigned = (where: string, ...parameters: ReadonlyArray<string | number>): ReadonlyArray<AssignedTask> =>
    assignedFromRows(
      sql.all<TaskRow & { readonly document: string }>(
        `SELECT job_task.*, job.document FROM job_task JOIN job USING (job_id) WHERE ${where}`,
        parameters
      )
    )

  return JobStore.of({
    create: (job, scope, pace) => sql.write("JobStore.create", () => create(job, scope, pace)),
    get: (projectId, jobId) =>
      sql.read("JobStore.get", () => {
        const row = findJob(jobId)
        return row?.project_id === projectId
          ? Option.some({ job: jobFromRow(row), counts: counts(jobId) })
          : Option.none()
      }),
    list: (projectId, page) =>
      sql.read("JobStore.list", () => {
        const { items, total } = pageOf<JobRow>(sql, {
          table: "job",
          columns: jobColumns,
          where: "project_id = ?",
          values: [projectId],
          order: "created_at DESC, job_id DESC",
          page
        })
        return { items: items.map(jobFromRow), total }
      }),
    countUnderWay: (projectId) =>
      sql.read("JobStore.countUnderWay", () =>
        sql.get<{ readonly found: number }>(
          `SELECT count(*) AS found FROM job WHERE project_id = ? AND NOT is_cancelled
            AND EXISTS (SELECT 1 FROM job_task WHERE job_task.job_id = job.job_id AND is_open = 1)`,
          [projectId]
        )!.found),
    tasks: (jobId, state, { page, pageSize }) =>
      sql.read("JobStore.tasks", () => {
        const where = `job_id = ?1 ${state === undefined ? "" : "AND state = ?2"}`
        const parameters = state === undefined ? [jobId] : [jobId, state]
        return {
          items: sql.all<TaskRow>(`SELECT * FROM job_task WHERE ${where} ORDER BY device_id LIMIT ? OFFSET ?`, [
            ...parameters,
            pageSize,
            (page - 1) * pageSize
          ]).map(taskFromRow),
          total:
            sql.get<{ readonly count: number }>(`SELECT count(*) AS count FROM job_task WHERE ${where}`, parameters)!
              .count
        }
      }),
    cancel: (jobId, at) => sql.write("JobStore.cancel", () => cancel(jobId, at)),
    remove: (jobId) =>
      sql.write("JobStore.remove", () =>
        sql.run(
          `DELETE FROM job WHERE job_id = ?
            AND NOT EXISTS (SELECT 1 FROM job_task WHERE job_task.job_id = job.job_id AND job_task.is_open = 1)`,
          [jobId]
        ) > 0),
    ofDevices: (deviceIds, choice, limit) =>
      sql.read(
        "JobStore.ofDevices",
        () =>
          deviceIds.flatMap((deviceId) =>
            assigned(`device_id = ? AND ${choices[choice]} ORDER BY job_id LIMIT ?`, deviceId, limit)
          )
      ),
    task: (deviceId, jobId) =>
      sql.read(
        "JobStore.task",
        () => Option.fromUndefinedOr(assigned("job_id = ? AND device_id = ?", jobId, deviceId)[0])
      ),
    told: (tasks, at) =>
      sql.write("JobStore.told", () => {
        for (const task of tasks) tell(task, at)
      }),
    report: (reports) => sql.write("JobStore.report", () => reports.map(report)),
    claimDue: ({ again, late, limit, now }) =>
      sql.write("JobStore.claimDue", () => {
        sql.run("UPDATE job_task SET due_at = ? WHERE state = 'in_progress' AND due_at < ?", [again, late])
        const due = sql.all<TaskRow & { readonly status: string }>(
          `SELECT job_task.*, device.status FROM job_task JOIN device USING (device_id)
            WHERE due_at <= ? ORDER BY due_at LIMIT ?`,
          [now, limit]
        )
        return due.map((row) => {
          const isOnline = row.status === "online"
          const isLate = row.state === "in_progress"
          change(row, {
            state: isLate ? "timed_out" : row.state,
            isUntold: isLate || row.is_untold === 1,
            dueAt: isOnline ? again : null,
            updatedAt: isLate ? now : row.updated_at
          })
          return { deviceId: row.device_id as DeviceId, isOnline }
        })
      }),
    prune: ({ before, limit }) =>
      pruneWithParts(sql, "JobStore.prune", {
        table: "job",
        parts: "job_task",
        id: "job_id",
        where: `created_at < ?1 AND NOT EXISTS (
          SELECT 1 FROM job_task WHERE job_task.job_id = job.job_id AND (is_open = 1 OR updated_at >= ?1)
        )`,
        values: [before]
      }, limit)
  })
}
