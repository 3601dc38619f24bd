/**
 * What is counted of each project, in memory.
 */
import { type ActivityCount, ActivityStore, type ActivitySum, type ProjectId } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { Tables } from "./Tables.ts"

/** Can only be replaced together with `DeviceStore`: it counts the devices that are online. */
export const layer: Layer.Layer<ActivityStore, never, Tables> = Layer.effect(
  ActivityStore,
  Effect.map(Tables, (tables) => make(tables))
)

const keyOf = ({ code, measure, minute }: ActivitySum): string => `${minute} ${measure} ${code}`

const make = ({ activity, devices, projects }: Tables["Service"]) => {
  const ofProject = ({ projectId }: Pick<ActivityCount, "projectId">, step: 1 | 60) => {
    const known = activity.get(projectId) ?? { 1: new Map<string, ActivitySum>(), 60: new Map<string, ActivitySum>() }
    activity.set(projectId, known)
    return known[step]
  }

  const add = (count: ActivityCount) => {
    if (!projects.has(count.projectId)) return
    for (const step of [1, 60] as const) {
      const { code, measure } = count
      const sum = { minute: count.minute - count.minute % step, measure, code, count: count.count }
      const sums = ofProject(count, step)
      sums.set(keyOf(sum), { ...sum, count: sum.count + (sums.get(keyOf(sum))?.count ?? 0) })
    }
  }

  return ActivityStore.of({
    add: (counts) => Effect.sync(() => counts.forEach(add)),
    sampleOnline: (minute) =>
      Effect.sync(() => {
        const online = new Map<ProjectId, number>()
        for (const { projectId, status } of devices.values()) {
          if (status === "online") online.set(projectId, (online.get(projectId) ?? 0) + 1)
        }
        for (const [projectId, found] of online) {
          const count: ActivityCount = { projectId, minute, measure: "online", code: "", count: found }
          if (!ofProject(count, 1).has(keyOf(count))) add(count)
        }
      }),
    read: ({ from, interval, projectId, to }) =>
      Effect.sync(() => {
        const found = new Map<string, ActivitySum>()
        for (const sum of activity.get(projectId)?.[interval < 60 ? 1 : 60].values() ?? []) {
          if (sum.minute < from || sum.minute >= to) continue
          const first = { ...sum, minute: sum.minute - sum.minute % interval }
          found.set(keyOf(first), { ...first, count: sum.count + (found.get(keyOf(first))?.count ?? 0) })
        }
        return [...found.values()]
      }),
    prune: ({ hours, limit, minutes }) =>
      Effect.sync(() => {
        let removed = 0
        for (const steps of activity.values()) {
          for (const [sums, before] of [[steps[1], minutes], [steps[60], hours]] as const) {
            for (const [key, { minute }] of sums) {
              if (minute >= before || removed === limit) continue
              sums.delete(key)
              removed++
            }
          }
        }
        return removed
      })
  })
}
