/**
 * Quotas on PostgreSQL. Triggers count what projects have (migrations 0014 and 0029); the
 * row of a count makes writes of one project take turns.
 */
import {
  type ProjectId,
  QuotaExceeded,
  type QuotaLimits,
  QuotaName,
  type QuotaState,
  QuotaStore,
  type StoreError
} from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { SqlError } from "effect/sql"
import { isAbortedTransaction, isForeignKeyViolation, storeError } from "./PgErrors.ts"

/** Part of the group that is replaced together: it counts rows of other stores. */
export const layer: Layer.Layer<QuotaStore, never, PgClient.PgClient> = Layer.effect(
  QuotaStore,
  Effect.map(PgClient.PgClient, (sql) => make(sql))
)

interface Row {
  readonly kind: "project" | "limit" | "used"
  readonly quota: string
  readonly amount: bigint
}

/** Ends a transaction in which a statement of the write has failed, and the write has made a result of it. */
class Undone {
  readonly result: unknown

  constructor(result: unknown) {
    this.result = result
  }
}

const make = (sql: PgClient.PgClient) => {
  /** The project's own limit, or else `limit`. */
  const maximum = (projectId: ProjectId, quota: keyof QuotaLimits, limit: number) =>
    sql`coalesce((SELECT maximum FROM project_quota WHERE project_id = ${projectId} AND quota = ${quota}),
      ${limit}::bigint)`

  const room = (projectId: ProjectId, quota: keyof QuotaLimits, limit: number) =>
    Effect.map(
      sql<{ readonly maximum: bigint; readonly used: bigint }>`SELECT ${maximum(projectId, quota, limit)} AS maximum,
        coalesce((SELECT used FROM project_usage WHERE project_id = ${projectId} AND quota = ${quota}), 0) AS used`,
      ([row]) => ({ maximum: Number(row!.maximum), used: Number(row!.used) })
    )

  const within = <A, E, R>(
    { amount, limit, projectId, quota }: {
      readonly projectId: ProjectId
      readonly quota: Exclude<QuotaName, "objectBytes">
      readonly amount: number
      readonly limit: number
    },
    write: Effect.Effect<A, E, R>
  ): Effect.Effect<A, E | QuotaExceeded | StoreError, R> =>
    Effect.gen(function*() {
      // Spares a large write that cannot fit.
      const before = yield* room(projectId, quota, limit)
      if (before.used + amount > before.maximum) return yield* new QuotaExceeded({ quota, limit: before.maximum })
      const result = yield* write
      // The write holds the row of the count: nobody else adds anything before the end of this transaction.
      const after = yield* Effect.catchIf(
        room(projectId, quota, limit),
        isAbortedTransaction,
        () => Effect.fail(new Undone(result))
      )
      if (after.used > after.maximum) return yield* new QuotaExceeded({ quota, limit: after.maximum })
      return result
    }).pipe(
      sql.withTransaction,
      Effect.catch((error): Effect.Effect<A, E | QuotaExceeded | StoreError> => {
        if (error instanceof Undone) return Effect.succeed(error.result as A)
        return Effect.fail(
          SqlError.isSqlError(error) ? storeError("QuotaStore.within")(error) : error as E | QuotaExceeded
        )
      })
    )

  const take = Effect.fnUntraced(function*(projectId: ProjectId, bytes: number, limit: number) {
    yield* sql`INSERT INTO project_usage (project_id, quota, used) VALUES (${projectId}, 'objectBytes', 0)
      ON CONFLICT DO NOTHING`
    const [row] = yield* sql`UPDATE project_usage SET used = greatest(0, used + ${bytes}::bigint)
      WHERE project_id = ${projectId} AND quota = 'objectBytes'
        AND (${bytes}::bigint <= 0 OR used + ${bytes}::bigint <= ${maximum(projectId, "objectBytes", limit)})
      RETURNING used`
    if (row !== undefined) return
    return yield* new QuotaExceeded({
      quota: "objectBytes",
      limit: (yield* room(projectId, "objectBytes", limit)).maximum
    })
  }, sql.withTransaction)

  return QuotaStore.of({
    state: (projectId) =>
      sql<Row>`SELECT 'project' AS kind, '' AS quota, 0::bigint AS amount FROM project WHERE id = ${projectId}
        UNION ALL SELECT 'limit', quota, maximum FROM project_quota WHERE project_id = ${projectId}
        UNION ALL SELECT 'used', quota, used FROM project_usage WHERE project_id = ${projectId}`.pipe(
        Effect.map((rows) => {
          if (rows.length === 0) return Option.none()
          const amounts = (kind: Row["kind"]): Readonly<Record<string, number>> =>
            Object.fromEntries(
              rows.filter((row) => row.kind === kind).map(({ amount, quota }) => [quota, Number(amount)])
            )
          const used = amounts("used")
          return Option.some({
            limits: amounts("limit") as Partial<QuotaLimits>,
            used: Object.fromEntries(QuotaName.literals.map((quota) => [quota, used[quota] ?? 0])) as QuotaState["used"]
          })
        }),
        Effect.mapError(storeError("QuotaStore.state"))
      ),
    set: (projectId, change) =>
      Effect.gen(function*() {
        const [project] = yield* sql`SELECT id FROM project WHERE id = ${projectId} FOR KEY SHARE`
        if (project === undefined) return false
        for (const [quota, limit] of Object.entries(change)) {
          if (limit === undefined) continue
          yield* limit === null
            ? sql`DELETE FROM project_quota WHERE project_id = ${projectId} AND quota = ${quota}`
            : sql`INSERT INTO project_quota (project_id, quota, maximum) VALUES (${projectId}, ${quota}, ${limit}::bigint)
                ON CONFLICT (project_id, quota) DO UPDATE SET maximum = excluded.maximum`
        }
        return true
      }).pipe(sql.withTransaction, Effect.mapError(storeError("QuotaStore.set"))),
    within,
    take: (projectId, bytes, limit) =>
      take(projectId, bytes, limit).pipe(
        // The project is gone, and its counts with it.
        Effect.catchIf(
          (error): error is SqlError.SqlError => SqlError.isSqlError(error) && isForeignKeyViolation(error),
          () => Effect.void
        ),
        Effect.mapError((error) => SqlError.isSqlError(error) ? storeError("QuotaStore.take")(error) : error)
      ),
    register: (projectId, productKey, minute, limit) =>
      Effect.gen(function*() {
        const most = maximum(projectId, "registrationsPerMinute", limit)
        // `currentMinute` of the core.
        const [row] = yield* sql`INSERT INTO product_registrations AS usage (product_key, used, minute)
          SELECT ${productKey}, 1, ${minute}::bigint WHERE ${most} > 0
          ON CONFLICT (product_key) DO UPDATE SET
            used = CASE WHEN usage.minute - excluded.minute IN (0, 1) THEN usage.used + 1 ELSE 1 END,
            minute = CASE WHEN usage.minute - excluded.minute = 1 THEN usage.minute ELSE excluded.minute END
          WHERE usage.minute - excluded.minute NOT IN (0, 1) OR usage.used < ${most}
          RETURNING used`
        if (row !== undefined) return Option.none()
        return Option.some((yield* room(projectId, "registrationsPerMinute", limit)).maximum)
      }).pipe(
        // The product is gone, and its count with it.
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeedNone),
        Effect.mapError(storeError("QuotaStore.register"))
      )
  })
}
