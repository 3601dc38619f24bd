/**
 * Jobs and their tasks in memory.
 */
import {
  type AssignedTask,
  type DeviceId,
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

const make = ({ devices, jobs, nextId }: Tables["Service"]) => {
  const shown = ({ job, tasks }: StoredJob): Job =>
    job.status !== "cancelled" && ![...tasks.values()].some(isOpen) ? { ...job, status: "completed" } : job

  const assigned = ({ job }: StoredJob, { task }: StoredTask): AssignedTask => ({ ...task, document: job.document })

  const find = (jobId: number, deviceId: DeviceId) => {
    const tasks = jobs.get(jobId)?.tasks
    const stored = tasks?.get(deviceId)
    return tasks === undefined || stored === undefined ? undefined : {
      stored,
      set: (change: Partial<JobTask>, rest: Omit<StoredTask, "task">) =>
        tasks.set(deviceId, { task: { ...stored.task, ...change }, ...rest })
    }
  }

  return JobStore.of({
    create: (draft, scope, pace) =>
      Effect.sync(() => {
        if (scope._tag === "Named") {
          const unknown = scope.deviceIds.filter((deviceId) => devices.get(deviceId)?.projectId !== draft.projectId)
          if (unknown.length > 0) return { _tag: "Unknown", deviceIds: unknown }
        }
        const chosen = scope._tag === "Named"
          ? scope.deviceIds.map((deviceId) => devices.get(deviceId)!)
          : [...devices.values()].filter((device) =>
            device.productKey === scope.productKey && device.projectId === draft.projectId
          )
        const { createdAt } = draft
        const job: Job = { ...draft, jobId: nextId(), status: "in_progress" }
        const tasks = chosen.toSorted((a, b) => a.id - b.id).map(({ deviceId }, place): [DeviceId, StoredTask] => [
          deviceId,
          {
            task: {
              jobId: job.jobId,
              deviceId,
              state: "queued",
              progress: 0,
              details: {},
              createdAt,
              updatedAt: createdAt
            },
            isUntold: true,
            dueAt: createdAt + place * pace
          }
        ])
        const stored = { job, tasks: new Map(tasks) }
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
        for (const [deviceId, { task }] of [...stored.tasks].filter(([, task]) => isOpen(task))) {
          const isUntold = task.state !== "queued"
          stored.tasks.set(deviceId, {
            task: { ...task, state: "cancelled", updatedAt: at },
            isUntold,
            dueAt: isUntold ? at : null
          })
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
          const found = find(jobId, deviceId)
          if (found?.stored.task.state !== state || !found.stored.isUntold) continue
          found.set(state === "queued" ? { state: "sent", updatedAt: at } : {}, { isUntold: false, dueAt: null })
        }
      }),
    report: (reports) =>
      Effect.sync(() =>
        reports.map((report) => {
          const { at, details, deviceId, jobId, progress, state } = report
          const found = find(jobId, deviceId)
          const outcome = outcomeOf(found?.stored.task.state, report)
          if (found === undefined || outcome !== "stored" || !isOpen(found.stored)) return outcome
          const { dueAt, task } = found.stored
          const { timeout } = jobs.get(jobId)!.job
          const begins = task.state !== "in_progress"
          found.set(
            { state, progress: progress ?? task.progress, details: details ?? task.details, updatedAt: at },
            {
              isUntold: false,
              dueAt: state !== "in_progress" || timeout === 0 ? null : begins ? at + timeout * 1000 : dueAt
            }
          )
          return outcome
        })
      ),
    claimDue: ({ again, limit, now }) =>
      Effect.sync(() => {
        const due = [...jobs.values()].flatMap(({ tasks }) => [...tasks.values()])
          .filter(({ dueAt }) => dueAt !== null && dueAt <= now)
          .sort((a, b) => a.dueAt! - b.dueAt!)
        return due.slice(0, limit).map(({ isUntold, task: { deviceId, jobId, state } }) => {
          const isOnline = devices.get(deviceId)?.status === "online"
          const isLate = state === "in_progress"
          find(jobId, deviceId)!.set(
            isLate ? { state: "timed_out", updatedAt: now } : {},
            { isUntold: isUntold || isLate, dueAt: isOnline ? again : null }
          )
          return { deviceId, isOnline }
        })
      })
  })
}
