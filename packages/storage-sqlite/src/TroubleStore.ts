/**
 * What has gone wrong lately, on SQLite.
 */
import { type Trouble, troubleMillis, TroubleStore } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { Sqlite } from "./Sqlite.ts"

/** Can be replaced alone. Its rows go with their project. */
export const layer: Layer.Layer<TroubleStore, never, Sqlite> = Layer.effect(
  TroubleStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

/** The trouble that is there was over before the new one began. */
const wasOver = `excluded.since - known.at >= ${troubleMillis}`

const make = (sql: Sqlite["Service"]) =>
  TroubleStore.of({
    note: (troubles) =>
      sql.write("TroubleStore.note", () => {
        for (const { at, detail, kind, projectId, since, subject, times } of troubles) {
          sql.run(
            `INSERT INTO trouble AS known (project_id, kind, subject, times, detail, since, at)
              SELECT id, ?, ?, ?, ?, ?, ? FROM project WHERE id = ?
              ON CONFLICT (project_id, kind, subject) DO UPDATE SET
                times = CASE WHEN ${wasOver} THEN excluded.times ELSE known.times + excluded.times END,
                since = CASE WHEN ${wasOver} THEN excluded.since ELSE min(known.since, excluded.since) END,
                detail = CASE WHEN excluded.at >= known.at THEN excluded.detail ELSE known.detail END,
                at = max(known.at, excluded.at)`,
            [kind, subject, times, detail, since, at, projectId]
          )
        }
      }),
    latest: (projectId, since, limit) =>
      sql.read("TroubleStore.latest", () =>
        sql.all<Trouble>(
          `SELECT project_id AS projectId, kind, subject, times, detail, since, at FROM (
            SELECT *, row_number() OVER (PARTITION BY kind ORDER BY times DESC, at DESC, subject) AS place
            FROM trouble WHERE project_id = ? AND at >= ?
          ) WHERE place <= ? ORDER BY kind, place`,
          [projectId, since, limit]
        )),
    prune: ({ before, limit }) =>
      sql.write("TroubleStore.prune", () =>
        sql.run(
          `DELETE FROM trouble WHERE (project_id, kind, subject) IN (
            SELECT project_id, kind, subject FROM trouble WHERE at < ? LIMIT ?
          )`,
          [before, limit]
        ))
  })
