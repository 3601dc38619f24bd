/**
 * Subscriptions on PostgreSQL.
 */
import {
  type Progress,
  type ProjectId,
  type StoredSubscription,
  type Subscription,
  type SubscriptionFilter,
  SubscriptionStore,
  type SubscriptionUpdate,
  type SubscriptionWebhook
} from "@device-cloud/core"
import { type PgClient, PgTypes } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { clients } from "./LongReads.ts"
import { paginate } from "./Pagination.ts"
import { isForeignKeyViolation, isUniqueViolation, storeError } from "./PgErrors.ts"
import { instant, wholeNumbers } from "./PgParameters.ts"

/** Can be replaced alone. Its rows refer to projects in the same database. */
export const layer: Layer.Layer<SubscriptionStore, never, PgClient.PgClient> = Layer.effect(
  SubscriptionStore,
  Effect.map(clients, ({ reads, sql }) => make(sql, reads))
)

interface Row {
  readonly subscription_id: bigint
  readonly project_id: string
  readonly name: string
  readonly filter: SubscriptionFilter
  readonly webhook: SubscriptionWebhook | null
  readonly progress: Progress
  readonly created_at: Date
  readonly updated_at: Date
}

const fromRow = (row: Row): Subscription => ({
  subscriptionId: Number(row.subscription_id),
  projectId: row.project_id as ProjectId,
  name: row.name,
  filter: row.filter,
  webhook: row.webhook,
  createdAt: row.created_at.getTime(),
  updatedAt: row.updated_at.getTime()
})

const storedFromRow = (row: Row): StoredSubscription => ({ subscription: fromRow(row), progress: row.progress })

const json = (value: object | null | undefined) =>
  PgTypes.text(value === null || value === undefined ? null : JSON.stringify(value))

const make = (sql: PgClient.PgClient, reads: PgClient.PgClient) => {
  const update = (
    projectId: ProjectId,
    subscriptionId: number,
    { filter, name, updatedAt, webhook }: SubscriptionUpdate
  ) =>
    sql<Row>`UPDATE subscription SET
        name = coalesce(${PgTypes.text(name ?? null)}, name),
        filter = coalesce(${json(filter)}::json, filter),
        webhook = CASE WHEN ${webhook !== undefined} THEN ${json(webhook)}::json ELSE webhook END,
        updated_at = ${instant(updatedAt)}
      WHERE subscription_id = ${subscriptionId} AND project_id = ${projectId}
      RETURNING *`

  /**
   * Reads, and writes if nobody else has written meanwhile. Two statements take
   * half of the time of a transaction that locks the row
   * (docs/decisions/0130-what-a-reader-of-the-feed-costs.md).
   */
  const modify = Effect.fnUntraced(function*<A>(
    projectId: ProjectId,
    subscriptionId: number,
    step: (stored: StoredSubscription, now: number) => readonly [A, (Progress | undefined)?]
  ) {
    while (true) {
      const [row] = yield* sql<Row & { readonly now: Date; readonly version: string }>`
        SELECT *, clock_timestamp() AS now, xmin::text AS version FROM subscription
        WHERE subscription_id = ${subscriptionId} AND project_id = ${projectId}`
      if (row === undefined) return Option.none<A>()
      const [result, progress] = step(storedFromRow(row), row.now.getTime())
      if (progress === undefined) return Option.some(result)
      const written = yield* sql`UPDATE subscription SET progress = ${json(progress)}::json
        WHERE subscription_id = ${subscriptionId} AND xmin = ${row.version}::xid RETURNING 1`
      if (written.length > 0) return Option.some(result)
    }
  })

  return SubscriptionStore.of({
    insert: ({ createdAt, filter, name, projectId, updatedAt, webhook }, progress) =>
      sql<Row>`INSERT INTO subscription (project_id, name, filter, webhook, progress, created_at, updated_at)
        VALUES (${projectId}, ${name}, ${json(filter)}::json, ${json(webhook)}::json, ${json(progress)}::json,
          ${instant(createdAt)}, ${instant(updatedAt)})
        RETURNING *`.pipe(
        Effect.map(([row]) => fromRow(row!)),
        Effect.catchIf(isUniqueViolation, () => Effect.succeed("taken" as const)),
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeed("no-project" as const)),
        Effect.mapError(storeError("SubscriptionStore.insert"))
      ),
    get: (projectId, subscriptionId) =>
      sql<Row>`SELECT * FROM subscription WHERE subscription_id = ${subscriptionId} AND project_id = ${projectId}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), storedFromRow)),
        Effect.mapError(storeError("SubscriptionStore.get"))
      ),
    list: (projectId, page) =>
      paginate<Row>(reads, {
        table: "subscription",
        where: sql`project_id = ${projectId}`,
        tieBreaker: "subscription_id",
        select: sql`SELECT * FROM page`,
        page
      }).pipe(
        Effect.map(({ items, total }) => ({ items: items.map(fromRow), total })),
        Effect.mapError(storeError("SubscriptionStore.list"))
      ),
    all: (after, limit) =>
      reads<Row>`SELECT * FROM subscription WHERE subscription_id > ${after} ORDER BY subscription_id LIMIT ${limit}`
        .pipe(
          Effect.map((rows) => rows.map(storedFromRow)),
          Effect.mapError(storeError("SubscriptionStore.all"))
        ),
    pushing: (projectId, except = []) =>
      sql<Row>`SELECT * FROM subscription WHERE webhook IS NOT NULL
        AND NOT EXISTS (
          SELECT FROM unnest(${wholeNumbers(except)}::bigint[]) AS known (id) WHERE known.id = subscription_id
        )
        ${projectId === undefined ? sql`` : sql`AND project_id = ${projectId}`}`.pipe(
        Effect.map((rows) => rows.map(storedFromRow)),
        Effect.mapError(storeError("SubscriptionStore.pushing"))
      ),
    update: (projectId, subscriptionId, change) =>
      update(projectId, subscriptionId, change).pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), fromRow)),
        Effect.catchIf(isUniqueViolation, () => Effect.succeed("taken" as const)),
        Effect.mapError(storeError("SubscriptionStore.update"))
      ),
    remove: (projectId, subscriptionId) =>
      sql`DELETE FROM subscription WHERE subscription_id = ${subscriptionId} AND project_id = ${projectId}
        RETURNING subscription_id`.pipe(
        Effect.map(({ length }) => length > 0),
        Effect.mapError(storeError("SubscriptionStore.remove"))
      ),
    modify: (projectId, subscriptionId, step) =>
      Effect.mapError(modify(projectId, subscriptionId, step), storeError("SubscriptionStore.modify"))
  })
}
