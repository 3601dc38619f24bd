/**
 * Subscriptions on SQLite.
 */
import {
  type Progress,
  type ProjectId,
  type StoredSubscription,
  type Subscription,
  type SubscriptionFilter,
  SubscriptionStore,
  type SubscriptionWebhook
} from "@device-cloud/core"
import { Clock, Effect, Layer, Option } from "effect"
import { pageOf } from "./Paging.ts"
import { Sqlite } from "./Sqlite.ts"

/** Can be replaced alone. Its rows refer to projects in the same database. */
export const layer: Layer.Layer<SubscriptionStore, never, Sqlite> = Layer.effect(
  SubscriptionStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

interface Row {
  readonly subscription_id: number
  readonly project_id: string
  readonly name: string
  readonly filter: string
  readonly webhook: string | null
  readonly progress: string
  readonly created_at: number
  readonly updated_at: number
}

const fromRow = (row: Row): Subscription => ({
  subscriptionId: row.subscription_id,
  projectId: row.project_id as ProjectId,
  name: row.name,
  filter: JSON.parse(row.filter) as SubscriptionFilter,
  webhook: row.webhook === null ? null : JSON.parse(row.webhook) as SubscriptionWebhook,
  createdAt: row.created_at,
  updatedAt: row.updated_at
})

const storedFromRow = (row: Row): StoredSubscription => ({
  subscription: fromRow(row),
  progress: JSON.parse(row.progress) as Progress
})

const webhookText = (webhook: SubscriptionWebhook | null): string | null =>
  webhook === null ? null : JSON.stringify(webhook)

const make = (sql: Sqlite["Service"]) => {
  const find = (projectId: ProjectId, subscriptionId: number): StoredSubscription | undefined => {
    const row = sql.get<Row>("SELECT * FROM subscription WHERE subscription_id = ? AND project_id = ?", [
      subscriptionId,
      projectId
    ])
    return row === undefined ? undefined : storedFromRow(row)
  }

  const isTaken = (projectId: ProjectId, name: string): boolean =>
    sql.get("SELECT 1 FROM subscription WHERE project_id = ? AND name = ?", [projectId, name]) !== undefined

  return SubscriptionStore.of({
    insert: ({ createdAt, filter, name, projectId, updatedAt, webhook }, progress) =>
      sql.write("SubscriptionStore.insert", () => {
        if (isTaken(projectId, name)) return "taken"
        const row = sql.get<Row>(
          `INSERT INTO subscription (project_id, name, filter, webhook, progress, created_at, updated_at)
            SELECT id, ?, ?, ?, ?, ?, ? FROM project WHERE id = ? RETURNING *`,
          [
            name,
            JSON.stringify(filter),
            webhookText(webhook),
            JSON.stringify(progress),
            createdAt,
            updatedAt,
            projectId
          ]
        )
        return row === undefined ? "no-project" : fromRow(row)
      }),
    get: (projectId, subscriptionId) =>
      sql.read("SubscriptionStore.get", () => Option.fromUndefinedOr(find(projectId, subscriptionId))),
    list: (projectId, page) =>
      sql.read("SubscriptionStore.list", () => {
        const { items, total } = pageOf<Row>(sql, {
          table: "subscription",
          where: "project_id = ?",
          values: [projectId],
          order: "created_at DESC, subscription_id DESC",
          page
        })
        return { items: items.map(fromRow), total }
      }),
    all: (after, limit) =>
      sql.read(
        "SubscriptionStore.all",
        () =>
          sql.all<Row>("SELECT * FROM subscription WHERE subscription_id > ? ORDER BY subscription_id LIMIT ?", [
            after,
            limit
          ]).map(storedFromRow)
      ),
    pushing: (projectId, except = []) =>
      sql.read("SubscriptionStore.pushing", () =>
        sql.all<Row>(
          `SELECT * FROM subscription WHERE webhook IS NOT NULL
            AND subscription_id NOT IN (SELECT value FROM json_each(?))
            ${projectId === undefined ? "" : "AND project_id = ?"}`,
          [JSON.stringify(except), ...projectId === undefined ? [] : [projectId]]
        ).map(storedFromRow)),
    update: (projectId, subscriptionId, { updatedAt, ...change }) =>
      sql.write("SubscriptionStore.update", () => {
        const before = find(projectId, subscriptionId)?.subscription
        if (before === undefined) return Option.none()
        const { filter = before.filter, name = before.name, webhook = before.webhook } = change
        if (name !== before.name && isTaken(projectId, name)) return "taken"
        sql.run("UPDATE subscription SET name = ?, filter = ?, webhook = ?, updated_at = ? WHERE subscription_id = ?", [
          name,
          JSON.stringify(filter),
          webhookText(webhook),
          updatedAt,
          subscriptionId
        ])
        return Option.some({ ...before, name, filter, webhook, updatedAt })
      }),
    remove: (projectId, subscriptionId) =>
      sql.write(
        "SubscriptionStore.remove",
        () =>
          sql.run("DELETE FROM subscription WHERE subscription_id = ? AND project_id = ?", [
            subscriptionId,
            projectId
          ]) > 0
      ),
    modify: (modifications) =>
      Effect.flatMap(
        Clock.currentTimeMillis,
        (now) =>
          sql.write("SubscriptionStore.modify", () =>
            modifications.map(({ projectId, step, subscriptionId }) => {
              const stored = find(projectId, subscriptionId)
              if (stored === undefined) return Option.none()
              const [result, progress] = step(stored, now)
              if (progress !== undefined) {
                sql.run("UPDATE subscription SET progress = ? WHERE subscription_id = ?", [
                  JSON.stringify(progress),
                  subscriptionId
                ])
              }
              return Option.some(result)
            }))
      )
  })
}
