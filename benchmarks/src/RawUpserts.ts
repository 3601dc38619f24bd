/**
 * The reference for durable ingest: the rows that the stores write for a batch of
 * reports, shadows and history, by four fibers, through the same driver, with nothing
 * around it.
 */
import { PgClient, PgTypes } from "@effect/sql-pg"
import { Clock, Console, Effect, Redacted, Result } from "effect"

export interface RawUpsertPlan {
  readonly databaseUrl: string
  readonly devices: number
  /** Rows in one statement. */
  readonly batch: number
  readonly warmupMillis: number
  readonly measureMillis: number
}

const plan = JSON.parse(process.argv[2]!) as RawUpsertPlan
const fibers = 4

const array = (oid: number, values: ReadonlyArray<unknown>) => Result.getOrThrow(PgTypes.array(values, oid))

const program = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  yield* sql`DROP TABLE IF EXISTS raw_shadow`
  yield* sql`CREATE TABLE raw_shadow (device_id text COLLATE "C" PRIMARY KEY, version bigint NOT NULL,
    reported json NOT NULL, desired json NOT NULL, updated_at timestamptz NOT NULL) WITH (fillfactor = 50)`
  yield* sql`DROP TABLE IF EXISTS raw_sample`
  yield* sql`CREATE TABLE raw_sample (id bigint GENERATED ALWAYS AS IDENTITY, device_id text COLLATE "C" NOT NULL,
    property_id text COLLATE "C" NOT NULL, time timestamptz NOT NULL, value json NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT now())`
  yield* sql`CREATE INDEX ON raw_sample (device_id, property_id, time, id)`
  yield* sql`CREATE INDEX ON raw_sample USING brin (stored_at)`
  const ids = Array.from({ length: plan.devices }, (_, i) => `loada1b2c3d4e5f${i}`)
  const reported = JSON.stringify({
    temperature: { value: 21.5, time: 1795231554300 },
    humidity: { value: 48, time: 1795231554300 },
    mode: { value: "eco", time: 1795231554300 }
  })

  const upsert = (rows: ReadonlyArray<string>, now: number) =>
    sql`WITH sample AS (
        INSERT INTO raw_sample (device_id, property_id, time, value) SELECT * FROM unnest(
          ${array(PgTypes.OID.text, rows.flatMap((id) => [id, id, id]))},
          ${array(PgTypes.OID.text, rows.flatMap(() => ["temperature", "humidity", "mode"]))},
          ${array(PgTypes.OID.timestamptz, rows.flatMap(() => [now, now, now]))},
          ${array(PgTypes.OID.text, rows.flatMap(() => ["21.5", "48", `"eco"`]))}::json[])
      )
      INSERT INTO raw_shadow (device_id, version, reported, desired, updated_at)
      SELECT * FROM unnest(
        ${array(PgTypes.OID.text, rows)}, ${array(PgTypes.OID.float8, rows.map(() => 1))}::bigint[],
        ${array(PgTypes.OID.text, rows.map(() => reported))}::json[],
        ${array(PgTypes.OID.text, rows.map(() => "{}"))}::json[],
        ${array(PgTypes.OID.timestamptz, rows.map(() => now))})
      ON CONFLICT (device_id) DO UPDATE SET version = raw_shadow.version + 1, reported = excluded.reported,
        desired = excluded.desired, updated_at = excluded.updated_at`

  const from = yield* Clock.currentTimeMillis
  const measureFrom = from + plan.warmupMillis
  const until = measureFrom + plan.measureMillis
  let count = 0
  // Each fiber has devices of its own: they do not wait for each other's rows.
  const share = Math.floor(ids.length / fibers)
  yield* Effect.forEach(
    Array.from({ length: fibers }, (_, fiber) => ids.slice(fiber * share, (fiber + 1) * share)),
    (own) =>
      Effect.gen(function*() {
        const batch = Math.min(plan.batch, own.length)
        for (let at = 0;; at = (at + batch) % own.length) {
          const now = yield* Clock.currentTimeMillis
          if (now >= until) return
          const rows = own.slice(at, at + batch)
          yield* upsert(rows, now)
          if (now >= measureFrom) count += rows.length
        }
      }),
    { concurrency: "unbounded", discard: true }
  )
  yield* Console.log(JSON.stringify({ count, seconds: plan.measureMillis / 1000 }))
})

await Effect.runPromise(
  program.pipe(Effect.provide(PgClient.layer({ url: Redacted.make(plan.databaseUrl), multiplex: true })))
)
process.exit(0)
