/**
 * Subscriptions on PostgreSQL.
 */
import {
  type Progress,
  type ProjectId,
  type StoredSubscription,
  type Subscription,
  type SubscriptionFilter,
  type SubscriptionModification,
  SubscriptionStore,
  type SubscriptionUpdate,
  type SubscriptionWebhook
} from "@device-cloud/core"
import { type PgClient, PgTypes } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { clients } from "./LongReads.ts"
import { paginate } from "./Pagination.ts"
import { isForeignKeyViolation, isUniqueViolation, storeError } from "./PgErrors.ts"
import { eachByIndex, instant, texts, wholeNumbers } from "./PgParameters.ts"

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

/** The next progress of a subscription, and which version of its row it follows. */
interface Step {
  readonly subscriptionId: number
  readonly version: string
  readonly progress: Progress
}

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

  /** Returns the ids of those that nobody else has written since they were read. Rows are locked by id: writers wait for each other in one order. */
  const write = (steps: ReadonlyArray<Step>) =>
    Effect.map(
      sql<Pick<Row, "subscription_id">>`
        WITH mine AS (
          SELECT subscription.subscription_id, new.progress
          FROM (
            SELECT * FROM unnest(
              ${wholeNumbers(steps.map(({ subscriptionId }) => subscriptionId))}::bigint[],
              ${texts(steps.map(({ version }) => version))}::xid[],
              ${texts(steps.map(({ progress }) => JSON.stringify(progress)))}
            ) ${eachByIndex(sql, steps.length)}
          ) AS new (subscription_id, version, progress)
          JOIN subscription ON subscription.subscription_id = new.subscription_id AND subscription.xmin = new.version
          ORDER BY subscription.subscription_id FOR UPDATE OF subscription
        )
        UPDATE subscription SET progress = mine.progress::json FROM mine
        WHERE subscription.subscription_id = mine.subscription_id
        RETURNING subscription.subscription_id`,
      (rows) => new Set(rows.map((row) => Number(row.subscription_id)))
    )

  /**
   * Reads, and writes if nobody else has written meanwhile. Two statements take
   * half of the time of a transaction that locks the rows
   * (docs/decisions/0130-what-a-reader-of-the-feed-costs.md).
   */
  const modify = Effect.fnUntraced(function*<A>(modifications: ReadonlyArray<SubscriptionModification<A>>) {
    const results = new Map<SubscriptionModification<A>, A>()
    let left = modifications
    while (left.length > 0) {
      for (const modification of left) results.delete(modification)
      const ids = [...new Set(left.map(({ subscriptionId }) => subscriptionId))]
      const rows = yield* sql<Row & { readonly now: Date; readonly version: string }>`
        SELECT *, clock_timestamp() AS now, xmin::text AS version FROM subscription
        WHERE subscription_id = ANY(${wholeNumbers(ids)}::bigint[])`
      const steps: Array<Step> = []
      for (const row of rows) {
        const { progress, subscription } = storedFromRow(row)
        const { projectId, subscriptionId } = subscription
        let next = progress
        for (const modification of left) {
          if (modification.subscriptionId !== subscriptionId || modification.projectId !== projectId) continue
          const [result, after = next] = modification.step({ progress: next, subscription }, row.now.getTime())
          results.set(modification, result)
          next = after
        }
        if (next !== progress) steps.push({ subscriptionId, version: row.version, progress: next })
      }
      const written = steps.length === 0 ? new Set() : yield* write(steps)
      const late = new Set(steps.map(({ subscriptionId }) => subscriptionId).filter((id) => !written.has(id)))
      left = left.filter(({ subscriptionId }) => late.has(subscriptionId))
    }
    return modifications.map((modification) =>
      results.has(modification) ? Option.some(results.get(modification)!) : Option.none()
    )
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
    modify: (modifications) => Effect.mapError(modify(modifications), storeError("SubscriptionStore.modify"))
  })
}
