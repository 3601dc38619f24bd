/**
 * Writes the same rows as the stores for a batch of reports (shadows and history)
 * with one statement. The references use it.
 */
import { PgClient, PgTypes } from "@effect/sql-pg"
import { Effect, Result } from "effect"

/** A report of a device. */
export interface Report {
  readonly deviceId: string
  /** The reported side of the shadow, as JSON. */
  readonly reported: string
  readonly properties: ReadonlyArray<string>
  /** The value of each property, as JSON. */
  readonly values: ReadonlyArray<string>
}

const array = (oid: number, values: ReadonlyArray<unknown>) => Result.getOrThrow(PgTypes.array(values, oid))

/** Creates its own tables and writes to them. A device may occur once in a batch. */
export const makeReportRows = Effect.gen(function*() {
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

  return (reports: ReadonlyArray<Report>, now: number) =>
    sql`WITH sample AS (
        INSERT INTO raw_sample (device_id, property_id, time, value) SELECT * FROM unnest(
          ${array(PgTypes.OID.text, reports.flatMap(({ deviceId, properties }) => properties.map(() => deviceId)))},
          ${array(PgTypes.OID.text, reports.flatMap(({ properties }) => properties))},
          ${array(PgTypes.OID.timestamptz, reports.flatMap(({ properties }) => properties.map(() => now)))},
          ${array(PgTypes.OID.text, reports.flatMap(({ values }) => values))}::json[])
      )
      INSERT INTO raw_shadow (device_id, version, reported, desired, updated_at)
      SELECT * FROM unnest(
        ${array(PgTypes.OID.text, reports.map(({ deviceId }) => deviceId))},
        ${array(PgTypes.OID.float8, reports.map(() => 1))}::bigint[],
        ${array(PgTypes.OID.text, reports.map(({ reported }) => reported))}::json[],
        ${array(PgTypes.OID.text, reports.map(() => "{}"))}::json[],
        ${array(PgTypes.OID.timestamptz, reports.map(() => now))})
      ON CONFLICT (device_id) DO UPDATE SET version = raw_shadow.version + 1, reported = excluded.reported,
        desired = excluded.desired, updated_at = excluded.updated_at`
})
