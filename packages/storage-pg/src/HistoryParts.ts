/**
 * The parts of the history: partitions of `history_segment` by the days to keep,
 * and below by day, so that what is too old goes as a whole. What is kept for ever
 * has one part.
 *
 * Parts are attached and detached under locks that readers and writers share.
 */
import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { texts } from "./PgParameters.ts"

type Sql = SqlClient.SqlClient
type Done = Effect.Effect<void, SqlError.SqlError>

/** Parts of the time to keep. */
const partsOfTime = 12

/** Any number that nothing else in the database locks. */
const lock = 7_238_912

/** The days of a part. */
const widthOf = (keep: number): number => Math.max(1, Math.round(keep / partsOfTime))

/** Where segments go. */
interface Target {
  /** Days; 0: for ever. */
  readonly keep: number
  readonly day: number
}

interface Part {
  readonly name: string
  readonly parent: string
  /** Its first day, and the first day after it. */
  readonly from: number
  readonly to: number
}

const prefix = "history_segment"

const partOf = ({ day, keep }: Target): Part => {
  const width = widthOf(keep)
  const from = Math.floor(day / width) * width
  return { name: `${prefix}_${keep}_${from}`, parent: `${prefix}_${keep}`, from, to: from + width }
}

/** The part with this name, if it is one that goes some day. */
const parsePart = (name: string): (Part & { readonly keep: number }) | undefined => {
  const [, keep, day] = /^history_segment_([0-9]+)_([0-9]+)$/.exec(name) ?? []
  return keep === undefined ? undefined : { ...partOf({ keep: Number(keep), day: Number(day) }), keep: Number(keep) }
}

const numbers = (sql: Sql, ...values: ReadonlyArray<number>) => sql.literal(values.map(String).join(", "))

/** Makes those of the parts that are missing. */
export const ensureParts = (sql: Sql, targets: ReadonlyArray<Target>): Done =>
  Effect.gen(function*() {
    const parts = new Map(targets.flatMap((target) => {
      const part = partOf(target)
      return target.keep === 0 ? [] : [[part.name, { ...part, keep: target.keep }]]
    }))
    const missing = sql<{ readonly name: string }>`
      SELECT name FROM unnest(${texts([...parts.keys()])}) AS name WHERE to_regclass(name) IS NULL`
    if (parts.size === 0 || (yield* missing).length === 0) return
    yield* sql.withTransaction(Effect.gen(function*() {
      yield* sql`SELECT pg_advisory_xact_lock(${lock}::int)`
      for (const { name } of yield* missing) {
        const { from, keep, parent, to } = parts.get(name)!
        const [known] = yield* sql`SELECT WHERE to_regclass(${parent}) IS NOT NULL`
        if (known === undefined) {
          yield* sql`CREATE TABLE ${sql(parent)} (LIKE history_segment INCLUDING ALL) PARTITION BY RANGE (day)`
          yield* sql`ALTER TABLE history_segment ATTACH PARTITION ${sql(parent)} FOR VALUES IN (${numbers(sql, keep)})`
        }
        yield* sql`CREATE TABLE ${sql(name)} (LIKE history_segment INCLUDING ALL)`
        yield* sql`
          ALTER TABLE ${sql(parent)} ATTACH PARTITION ${sql(name)}
          FOR VALUES FROM (${numbers(sql, from)}) TO (${numbers(sql, to)})`
      }
    }))
  })

/**
 * Drops the parts in which everything is too old, also those that a process which was
 * stopped has left detached. One process at a time may do it, on a connection that
 * nobody shares: a part is detached when the statements have ended that may read it.
 */
export const dropOldParts = (sql: Sql, today: number): Done =>
  Effect.gen(function*() {
    const tables = yield* sql<{ readonly name: string; readonly isPending: boolean | null }>`
      SELECT relname AS name, inhdetachpending AS "isPending"
      FROM pg_class LEFT JOIN pg_inherits ON inhrelid = pg_class.oid
      WHERE relkind = 'r' AND relname LIKE 'history\\_segment\\_%' AND pg_table_is_visible(pg_class.oid)`
    for (const { isPending, name } of tables) {
      const part = parsePart(name)
      if (part === undefined || part.to > today - part.keep) continue
      if (isPending !== null) {
        yield* sql`ALTER TABLE ${sql(part.parent)} DETACH PARTITION ${sql(name)} ${
          sql.literal(isPending ? "FINALIZE" : "CONCURRENTLY")
        }`
      }
      yield* sql`DROP TABLE IF EXISTS ${sql(name)}`
    }
  })
