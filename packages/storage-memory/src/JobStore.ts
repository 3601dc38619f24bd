/**
 * Jobs and their tasks in memory.
 */
import {
  type AssignedTask,
  type Job,
  JobStore,
  type JobTask,
  JobTaskState,
  openStates,
  outcomeOf,
  type TaskChoice
} from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { paginate, type StoredJob, type StoredTask, Tables } from "./Tables.ts"

/** Part of the group that is replaced together: it reads devices and where they are. */
export const layer: Layer.Layer<JobStore, never, Tables> = Layer.effect(
  JobStore,
  Effect.map(Tables, (tables) => make(tables))
)

const isOpen = ({ task: { state } }: StoredTask): boolean => openStates.includes(state)

const isChosen = (stored: StoredTask, choice: TaskChoice): boolean => {
  switch (choice) {
    case "open":
      return isOpen(stored)
    case "untold":
      return stored.isUntold
    case "waiting":
      return stored.isUntold || stored.task.state === "sent"
  }
}

/** Whether the task was cancelled while its device was told that it waits. */
const isCancelledUnheard = ({ isUntold, task }: StoredTask, told: JobTaskState): boolean =>
  told === "queued" && task.state === "cancelled" && !isUntold

const make = ({ devices, jobs, nextId, projects }: Tables["Service"]) => {
  const shown = ({ job, tasks }: StoredJob): Job =>
    job.status !== "cancelled" && ![...tasks.values()].some(isOpen) ? { ...job, status: "completed" } : job

  const assigned = ({ job }: StoredJob, { task }: StoredTask): AssignedTask => ({ ...task, document: job.document })

  /** Changes a task. `dueAt`: Unix milliseconds; null: nothing is to be done. */
  const change = (
    { due, tasks }: StoredJob,
    { isUntold, task }: StoredTask,
    fields: Partial<JobTask>,
    { dueAt, ...rest }: { readonly dueAt: number | null; readonly isUntold?: boolean }
  ) => {
    const { deviceId } = task
    tasks.set(deviceId, { task: { ...task, ...fields }, isUntold, ...rest })
    if (dueAt === null) due.delete(deviceId)
    else due.set(deviceId, dueAt)
  }

  return JobStore.of({
    create: (draft, scope, pace) =>
      Effect.sync(() => {
        if (scope._tag === "Named") {
          const unknown = scope.deviceIds.filter((deviceId) => devices.get(deviceId)?.projectId !== draft.projectId)
          if (unknown.length > 0) return { _tag: "Unknown", deviceIds: unknown }
        }
        if (!projects.has(draft.projectId)) return { _tag: "NoProject" }
        const chosen = scope._tag === "Named"
          ? scope.deviceIds.map((deviceId) => devices.get(deviceId)!)
          : [...devices.values()].filter((device) =>
            device.productKey === scope.productKey && device.projectId === draft.projectId
          )
        const { createdAt } = draft
        const job: Job = { ...draft, jobId: nextId(), status: "in_progress" }
        const stored: StoredJob = { job, tasks: new Map(), due: new Map() }
        chosen.toSorted((a, b) => a.id - b.id).forEach(({ deviceId }, place) => {
          const task: JobTask = {
            jobId: job.jobId,
            deviceId,
            state: "queued",
            progress: 0,
            details: {},
            createdAt,
            updatedAt: createdAt
          }
          change(stored, { task, isUntold: true }, {}, { dueAt: createdAt + place * pace })
        })
        jobs.set(job.jobId, stored)
        return { _tag: "Created", job: shown(stored) }
      }),
    get: (projectId, jobId) =>
      Effect.sync(() => {
        const stored = jobs.get(jobId)
        if (stored?.job.projectId !== projectId) return Option.none()
        const counts = Object.fromEntries(JobTaskState.literals.map((state) => [state, 0])) as Record<
          JobTaskState,
          number
        >
        for (const { task } of stored.tasks.values()) counts[task.state]++
        return Option.some({ job: shown(stored), counts })
      }),
    list: (projectId, page) =>
      Effect.sync(() => {
        const { items, total } = paginate(
          [...jobs.values()].filter(({ job }) => job.projectId === projectId).map((stored) => ({
            stored,
            createdAt: stored.job.createdAt
          })),
          page
        )
        return { items: items.map(({ stored }) => shown(stored)), total }
      }),
    countUnderWay: (projectId) =>
      Effect.sync(() =>
        [...jobs.values()].filter((stored) =>
          stored.job.projectId === projectId && shown(stored).status === "in_progress"
        ).length
      ),
    tasks: (jobId, state, { page, pageSize }) =>
      Effect.sync(() => {
        const all = [...jobs.get(jobId)?.tasks.values() ?? []].map(({ task }) => task)
          .filter((task) => state === undefined || task.state === state)
          .sort((a, b) => (a.deviceId < b.deviceId ? -1 : 1))
        return { items: all.slice((page - 1) * pageSize, page * pageSize), total: all.length }
      }),
    cancel: (jobId, at) =>
      Effect.sync(() => {
        const stored = jobs.get(jobId)
        if (stored === undefined || shown(stored).status !== "in_progress") return false
        stored.job = { ...stored.job, status: "cancelled" }
        for (const open of [...stored.tasks.values()].filter(isOpen)) {
          const isUntold = open.task.state !== "queued"
          change(stored, open, { state: "cancelled", updatedAt: at }, { isUntold, dueAt: isUntold ? at : null })
        }
        return true
      }),
    remove: (jobId) =>
      Effect.sync(() => {
        const stored = jobs.get(jobId)
        return stored !== undefined && shown(stored).status !== "in_progress" && jobs.delete(jobId)
      }),
    ofDevices: (deviceIds, choice, limit) =>
      Effect.sync(() =>
        deviceIds.flatMap((deviceId) =>
          [...jobs.values()].flatMap((job) => {
            const stored = job.tasks.get(deviceId)
            return stored !== undefined && isChosen(stored, choice) ? [assigned(job, stored)] : []
          }).slice(0, limit)
        )
      ),
    task: (deviceId, jobId) =>
      Effect.sync(() => {
        const job = jobs.get(jobId)
        const stored = job?.tasks.get(deviceId)
        return job === undefined || stored === undefined ? Option.none() : Option.some(assigned(job, stored))
      }),
    told: (tasks, at) =>
      Effect.sync(() => {
        for (const { deviceId, jobId, state } of tasks) {
          const job = jobs.get(jobId)
          const stored = job?.tasks.get(deviceId)
          if (job === undefined || stored === undefined) continue
          if (isCancelledUnheard(stored, state)) change(job, stored, {}, { isUntold: true, dueAt: at })
          if (stored.task.state !== state || !stored.isUntold) continue
          const fields = state === "queued" ? { state: "sent" as const, updatedAt: at } : {}
          change(job, stored, fields, { isUntold: false, dueAt: null })
        }
      }),
    report: (reports) =>
      Effect.sync(() =>
        reports.map((report) => {
          const { at, details, deviceId, jobId, progress, state } = report
          const job = jobs.get(jobId)
          const stored = job?.tasks.get(deviceId)
          const outcome = outcomeOf(stored?.task.state, report)
          if (job === undefined || stored === undefined || outcome !== "stored" || !isOpen(stored)) return outcome
          const { task } = stored
          const { timeout } = job.job
          const end = task.state === "in_progress" ? job.due.get(deviceId)! : at + timeout * 1000
          change(
            job,
            stored,
            { state, progress: progress ?? task.progress, details: details ?? task.details, updatedAt: at },
            { isUntold: false, dueAt: state !== "in_progress" || timeout === 0 ? null : end }
          )
          return outcome
        })
      ),
    claimDue: ({ again, late, limit, now }) =>
      Effect.sync(() => {
        for (const { due, tasks } of jobs.values()) {
          for (const [deviceId, dueAt] of due) {
            if (dueAt < late && tasks.get(deviceId)!.task.state === "in_progress") due.set(deviceId, again)
          }
        }
        const due = [...jobs.values()].flatMap((job) =>
          [...job.due].flatMap(([deviceId, dueAt]) => dueAt <= now ? [{ job, deviceId, dueAt }] : [])
        ).sort((a, b) => a.dueAt - b.dueAt)
        return due.slice(0, limit).map(({ deviceId, job }) => {
          const isOnline = devices.get(deviceId)?.status === "online"
          const stored = job.tasks.get(deviceId)!
          const isLate = stored.task.state === "in_progress"
          change(job, stored, isLate ? { state: "timed_out", updatedAt: now } : {}, {
            isUntold: stored.isUntold || isLate,
            dueAt: isOnline ? again : null
          })
          return { deviceId, isOnline }
        })
      }),
    prune: ({ before, limit }) =>
      Effect.sync(() => {
        const old = [...jobs.values()].filter(({ job, tasks }) =>
          job.createdAt < before &&
          ![...tasks.values()].some((stored) => isOpen(stored) || stored.task.updatedAt >= before)
        ).slice(0, limit)
        for (const { job } of old) jobs.delete(job.jobId)
        return old.length
      })
  })
}
