/**
 * What is counted of each project, on PostgreSQL.
 */
import { type ActivityMeasure, ActivityStore } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { storeError } from "./PgErrors.ts"
import { texts, wholeNumbers } from "./PgParameters.ts"

/** Can only be replaced together with `DeviceStore`: it counts the devices that are online. */
export const layer: Layer.Layer<ActivityStore, never, PgClient.PgClient> = Layer.effect(
  ActivityStore,
  Effect.map(PgClient.PgClient, (sql) => make(sql))
)

interface Row {
  readonly minute: number
  readonly measure: ActivityMeasure
  readonly code: string
  readonly count: bigint
}

const make = (sql: PgClient.PgClient) =>
  ActivityStore.of({
    add: (counts) =>
      sql`
        WITH new AS (
          SELECT new.* FROM unnest(
            ${texts(counts.map(({ projectId }) => projectId))},
            ${wholeNumbers(counts.map(({ minute }) => minute))}::int[],
            ${texts(counts.map(({ measure }) => measure))},
            ${texts(counts.map(({ code }) => code))},
            ${wholeNumbers(counts.map(({ count }) => count))}::bigint[]
          ) AS new (project_id, minute, measure, code, count)
          JOIN project ON project.id = new.project_id
        )
        INSERT INTO activity AS known (project_id, step, minute, measure, code, count)
        SELECT project_id, step, minute / step * step AS first, measure, code, sum(count)
        FROM new, (VALUES (1::smallint), (60::smallint)) AS steps (step)
        GROUP BY project_id, step, first, measure, code
        -- In one order, so that nodes that store at the same time wait for each other in one direction.
        ORDER BY project_id, step, first, measure, code
        ON CONFLICT (project_id, step, minute, measure, code) DO UPDATE SET count = known.count + excluded.count`.pipe(
        Effect.asVoid,
        Effect.mapError(storeError("ActivityStore.add"))
      ),
    sampleOnline: (minute) =>
      sql`
        WITH sampled AS (
          INSERT INTO activity (project_id, step, minute, measure, code, count)
          SELECT project_id, 1, ${minute}::int, 'online', '', sum(devices) FROM device_count
          WHERE status = 'online' GROUP BY project_id HAVING sum(devices) > 0 ORDER BY project_id
          ON CONFLICT DO NOTHING RETURNING project_id, count
        )
        INSERT INTO activity AS known (project_id, step, minute, measure, code, count)
        SELECT project_id, 60, ${minute}::int / 60 * 60, 'online', '', count FROM sampled ORDER BY project_id
        ON CONFLICT (project_id, step, minute, measure, code) DO UPDATE SET count = known.count + excluded.count`.pipe(
        Effect.asVoid,
        Effect.mapError(storeError("ActivityStore.sampleOnline"))
      ),
    read: ({ from, interval, projectId, to }) =>
      sql<Row>`
        SELECT minute / ${interval}::int * ${interval}::int AS minute, measure, code, sum(count)::bigint AS count
        FROM activity
        WHERE project_id = ${projectId} AND step = ${interval < 60 ? 1 : 60}::smallint
          AND minute >= ${from}::int AND minute < ${to}::int
        GROUP BY 1, 2, 3`.pipe(
        Effect.map((rows) => rows.map((row) => ({ ...row, count: Number(row.count) }))),
        Effect.mapError(storeError("ActivityStore.read"))
      ),
    prune: ({ hours, limit, minutes }) =>
      sql`
        DELETE FROM activity WHERE ctid = ANY(ARRAY(
          (SELECT ctid FROM activity WHERE step = 1 AND minute < ${minutes}::int LIMIT ${limit}::int)
          UNION ALL
          (SELECT ctid FROM activity WHERE step = 60 AND minute < ${hours}::int LIMIT ${limit}::int)
          LIMIT ${limit}::int
        )) RETURNING 1`.pipe(
        Effect.map((rows) => rows.length),
        Effect.mapError(storeError("ActivityStore.prune"))
      )
  })
