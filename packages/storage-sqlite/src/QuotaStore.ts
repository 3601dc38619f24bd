/**
 * Quotas on SQLite.
 */
import {
  currentMinute,
  type ProjectId,
  QuotaExceeded,
  type QuotaLimits,
  QuotaName,
  type QuotaState,
  QuotaStore
} from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { Sqlite } from "./Sqlite.ts"

/** Part of the group that is replaced together: it counts rows of other stores. */
export const layer: Layer.Layer<QuotaStore, never, Sqlite> = Layer.effect(
  QuotaStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

/** What a project has, in statements with its id as the parameter. */
const usages: Readonly<Record<QuotaName, string>> = {
  products: "SELECT count(*) AS used FROM product WHERE project_id = ?",
  devices: "SELECT count(*) AS used FROM device WHERE project_id = ?",
  deviceGroups: "SELECT count(*) AS used FROM device_group WHERE project_id = ?",
  accessKeys: "SELECT count(*) AS used FROM access_key WHERE project_id = ?",
  scenes: "SELECT count(*) AS used FROM scene WHERE project_id = ?",
  jobs: "SELECT count(*) AS used FROM job WHERE project_id = ?",
  subscriptions: "SELECT count(*) AS used FROM subscription WHERE project_id = ?",
  objectBytes: "SELECT coalesce(sum(bytes), 0) AS used FROM project_objects WHERE project_id = ?"
}

const make = (sql: Sqlite["Service"]) => {
  const isProject = (projectId: ProjectId): boolean =>
    sql.get("SELECT 1 FROM project WHERE id = ?", [projectId]) !== undefined

  /** The limits of the project's own. */
  const limitsOf = (projectId: ProjectId): Partial<QuotaLimits> =>
    Object.fromEntries(
      sql.all<{ readonly quota: string; readonly maximum: number }>(
        "SELECT quota, maximum FROM project_quota WHERE project_id = ?",
        [projectId]
      ).map(({ maximum, quota }) => [quota, maximum])
    )

  const used = (projectId: ProjectId, quota: QuotaName): number =>
    sql.get<{ readonly used: number }>(usages[quota], [projectId])!.used

  /** Why `amount` more would be too many; undefined: it is not. */
  const excess = (projectId: ProjectId, quota: QuotaName, amount: number, limit: number) => {
    const maximum = limitsOf(projectId)[quota] ?? limit
    return amount > 0 && used(projectId, quota) + amount > maximum
      ? new QuotaExceeded({ quota, limit: maximum })
      : undefined
  }

  return QuotaStore.of({
    state: (projectId) =>
      sql.read("QuotaStore.state", () =>
        isProject(projectId)
          ? Option.some({
            limits: limitsOf(projectId),
            used: Object.fromEntries(
              QuotaName.literals.map((quota) => [quota, used(projectId, quota)])
            ) as QuotaState["used"]
          })
          : Option.none()),
    set: (projectId, change) =>
      sql.write("QuotaStore.set", () => {
        if (!isProject(projectId)) return false
        for (const [quota, limit] of Object.entries(change)) {
          if (limit === null) {
            sql.run("DELETE FROM project_quota WHERE project_id = ? AND quota = ?", [projectId, quota])
          } else if (limit !== undefined) {
            sql.run("INSERT OR REPLACE INTO project_quota (project_id, quota, maximum) VALUES (?, ?, ?)", [
              projectId,
              quota,
              limit
            ])
          }
        }
        return true
      }),
    within: ({ amount, limit, projectId, quota }, write) =>
      sql.within(
        "QuotaStore.within",
        Effect.andThen(
          Effect.flatMap(
            sql.read("QuotaStore.within", () => excess(projectId, quota, amount, limit)),
            (exceeded) => exceeded ?? Effect.void
          ),
          write
        )
      ),
    take: (projectId, bytes, limit) =>
      Effect.flatMap(
        sql.write("QuotaStore.take", () => {
          const exceeded = excess(projectId, "objectBytes", bytes, limit)
          if (exceeded === undefined) {
            sql.run(
              `INSERT INTO project_objects AS known (project_id, bytes) SELECT id, max(0, ?1) FROM project WHERE id = ?2
                ON CONFLICT (project_id) DO UPDATE SET bytes = max(0, known.bytes + ?1)`,
              [bytes, projectId]
            )
          }
          return exceeded
        }),
        (exceeded) => exceeded ?? Effect.void
      ),
    register: (projectId, productKey, minute, limit) =>
      sql.write("QuotaStore.register", () => {
        const maximum = limitsOf(projectId).registrationsPerMinute ?? limit
        const known = sql.get<{ readonly minute: number; readonly used: number }>(
          "SELECT minute, used FROM product_registrations WHERE product_key = ?",
          [productKey]
        )
        const current = currentMinute(known?.minute ?? 0, minute)
        const before = current === known?.minute ? known.used : 0
        if (before >= maximum) return Option.some(maximum)
        sql.run(
          `INSERT OR REPLACE INTO product_registrations (product_key, minute, used)
            SELECT product_key, ?, ? FROM product WHERE product_key = ?`,
          [current, before + 1, productKey]
        )
        return Option.none()
      })
  })
}
