/**
 * The upgrade of a device in a campaign ends once, and with success only if the device
 * has said that it runs the version.
 */
import { type DeviceId, OtaStore, type ProjectId } from "@device-cloud/core"
import { Effect, Option } from "effect"
import type { Inspection, Invariant } from "../Witness.ts"

export const oneEnd = "an upgrade has one end"
export const success = "an upgrade succeeds by the device's word"
export const counts = "a campaign counts its devices"

const finals: ReadonlySet<string> = new Set(["succeeded", "failed", "cancelled"])

export const make = ({ read, violated }: Inspection): Invariant => {
  /** How the upgrade of a device in a task has ended. */
  const ends = new Map<string, string>()
  const versions = new Map<DeviceId, Set<string>>()
  const tasks = new Map<number, ProjectId>()
  const ota = <A, E>(use: (store: OtaStore["Service"]) => Effect.Effect<A, E>) =>
    read(Effect.flatMap(Effect.service(OtaStore), use))

  return {
    informs: ({ deviceId }, version) => {
      const known = versions.get(deviceId)
      if (known === undefined) versions.set(deviceId, new Set([version]))
      else known.add(version)
    },
    campaign: (projectId, taskId) => void tasks.set(taskId, projectId),
    recorded: ({ event }) => {
      if (event._tag !== "UpgradeProgressed") return
      const { device: { deviceId, deviceName }, status, taskId, version } = event
      const key = `${taskId} ${deviceId}`
      const end = ends.get(key)
      if (end !== undefined) violated(oneEnd, `${deviceName} is ${status} in task ${taskId}, after it was ${end}`)
      if (!finals.has(status)) return
      ends.set(key, status)
      if (status === "succeeded" && versions.get(deviceId)?.has(version) !== true) {
        violated(success, `${deviceName} has succeeded in task ${taskId} and has never said that it runs ${version}`)
      }
    },
    finished: () => {
      for (const [key, end] of ends) {
        const [taskId, deviceId] = key.split(" ") as [string, DeviceId]
        const found = Option.getOrUndefined(ota((store) => store.record(deviceId, Number(taskId))))
        if (found !== undefined && found.record.status !== end) {
          violated(oneEnd, `device ${deviceId} is ${found.record.status} in task ${taskId}, after it was ${end}`)
        }
      }
      for (const [taskId, projectId] of tasks) {
        const task = Option.getOrUndefined(ota((store) => store.task(projectId, taskId)))
        if (task === undefined) continue
        const records = ota((store) => store.records(taskId, {}, { page: 1, pageSize: 100_000 })).items
        for (const [status, count] of Object.entries(task.counts)) {
          const there = records.filter(({ record }) => record.status === status).length
          if (there !== count) violated(counts, `task ${taskId} counts ${count} ${status}, and has ${there}`)
        }
      }
    }
  }
}
