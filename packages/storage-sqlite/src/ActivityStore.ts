/**
 * What is counted of each project, on SQLite.
 */
import { type ActivityCount, ActivityStore, type ActivitySum } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { Sqlite } from "./Sqlite.ts"

/** Can only be replaced together with `DeviceStore`: it counts the devices that are online. */
export const layer: Layer.Layer<ActivityStore, never, Sqlite> = Layer.effect(
  ActivityStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

const make = (sql: Sqlite["Service"]) => {
  const addTo = (step: number, { code, count, measure, minute, projectId }: ActivityCount) =>
    sql.run(
      `INSERT INTO activity AS known (project_id, step, minute, measure, code, count)
        SELECT id, ?, ?, ?, ?, ? FROM project WHERE id = ?
        ON CONFLICT (project_id, step, minute, measure, code) DO UPDATE SET count = known.count + excluded.count`,
      [step, minute - minute % step, measure, code, count, projectId]
    )

  /** Those of one step. */
  const pruneStep = (step: number, before: number, limit: number): number =>
    sql.run(
      `DELETE FROM activity WHERE (project_id, step, minute, measure, code) IN (
        SELECT project_id, step, minute, measure, code FROM activity WHERE step = ? AND minute < ? LIMIT ?
      )`,
      [step, before, limit]
    )

  return ActivityStore.of({
    add: (counts) =>
      sql.write("ActivityStore.add", () => {
        for (const count of counts) {
          addTo(1, count)
          addTo(60, count)
        }
      }),
    sampleOnline: (minute) =>
      sql.write("ActivityStore.sampleOnline", () => {
        const sampled = sql.all<Pick<ActivityCount, "projectId" | "count">>(
          `INSERT INTO activity (project_id, step, minute, measure, code, count)
            SELECT id, 1, ?, 'online', '', online FROM (
              SELECT id, (SELECT count(*) FROM device WHERE project_id = project.id AND status = 'online') AS online
              FROM project
            ) WHERE online > 0
            ON CONFLICT DO NOTHING RETURNING project_id AS projectId, count`,
          [minute]
        )
        for (const one of sampled) addTo(60, { ...one, minute, measure: "online", code: "" })
      }),
    read: ({ from, interval, projectId, to }) =>
      sql.read("ActivityStore.read", () =>
        sql.all<ActivitySum>(
          `SELECT minute / ?1 * ?1 AS minute, measure, code, sum(count) AS count FROM activity
            WHERE project_id = ?2 AND step = ?3 AND minute >= ?4 AND minute < ?5
            GROUP BY 1, 2, 3`,
          [interval, projectId, interval < 60 ? 1 : 60, from, to]
        )),
    prune: ({ hours, limit, minutes }) =>
      sql.write("ActivityStore.prune", () => {
        const removed = pruneStep(1, minutes, limit)
        return removed + pruneStep(60, hours, limit - removed)
      })
  })
}
