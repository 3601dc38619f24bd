/**
 * What has gone wrong lately, on PostgreSQL.
 */
import { type ProjectId, type Trouble, type TroubleKind, troubleMillis, TroubleStore } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { storeError } from "./PgErrors.ts"
import { instant, instants, texts, wholeNumbers } from "./PgParameters.ts"

/** Can be replaced alone. Its rows go with their project. */
export const layer: Layer.Layer<TroubleStore, never, PgClient.PgClient> = Layer.effect(
  TroubleStore,
  Effect.map(PgClient.PgClient, (sql) => make(sql))
)

interface Row {
  readonly project_id: string
  readonly kind: string
  readonly subject: string
  readonly times: bigint
  readonly detail: string
  readonly since: Date
  readonly at: Date
}

const fromRow = (row: Row): Trouble => ({
  projectId: row.project_id as ProjectId,
  kind: row.kind as TroubleKind,
  subject: row.subject,
  times: Number(row.times),
  detail: row.detail,
  since: row.since.getTime(),
  at: row.at.getTime()
})

const make = (sql: PgClient.PgClient) => {
  /** The trouble that is there was over before the new one began. */
  const wasOver = sql.literal(`excluded.since - known.at >= interval '${troubleMillis} milliseconds'`)

  return TroubleStore.of({
    note: (troubles) =>
      sql`
        INSERT INTO trouble AS known (project_id, kind, subject, times, detail, since, at)
        SELECT new.* FROM unnest(
          ${texts(troubles.map(({ projectId }) => projectId))},
          ${texts(troubles.map(({ kind }) => kind))},
          ${texts(troubles.map(({ subject }) => subject))},
          ${wholeNumbers(troubles.map(({ times }) => times))}::bigint[],
          ${texts(troubles.map(({ detail }) => detail))},
          ${instants(troubles.map(({ since }) => since))},
          ${instants(troubles.map(({ at }) => at))}
        ) AS new (project_id, kind, subject, times, detail, since, at)
        JOIN project ON project.id = new.project_id
        -- In one order, so that nodes that store at the same time wait for each other in one direction.
        ORDER BY new.project_id, new.kind, new.subject
        ON CONFLICT (project_id, kind, subject) DO UPDATE SET
          times = CASE WHEN ${wasOver} THEN excluded.times ELSE known.times + excluded.times END,
          since = CASE WHEN ${wasOver} THEN excluded.since ELSE least(known.since, excluded.since) END,
          detail = CASE WHEN excluded.at >= known.at THEN excluded.detail ELSE known.detail END,
          at = greatest(known.at, excluded.at)`.pipe(
        Effect.asVoid,
        Effect.mapError(storeError("TroubleStore.note"))
      ),
    latest: (projectId, since, limit) =>
      sql<Row>`
        SELECT * FROM (
          SELECT *, row_number() OVER (PARTITION BY kind ORDER BY times DESC, at DESC, subject) AS place
          FROM trouble WHERE project_id = ${projectId} AND at >= ${instant(since)}
        ) AS placed WHERE place <= ${limit} ORDER BY kind, place`.pipe(
        Effect.map((rows) => rows.map(fromRow)),
        Effect.mapError(storeError("TroubleStore.latest"))
      ),
    prune: ({ before, limit }) =>
      sql`DELETE FROM trouble WHERE ctid = ANY(ARRAY(
          SELECT ctid FROM trouble WHERE at < ${instant(before)} LIMIT ${limit}
        )) RETURNING 1`.pipe(
        Effect.map((rows) => rows.length),
        Effect.mapError(storeError("TroubleStore.prune"))
      )
  })
}
