/**
 * Seals rows under the newest data key: rows from before secrets were sealed, and
 * rows that an older data key seals. It works in slices, on all nodes: each row is
 * done once, and a restart goes on where the last slice ended.
 */
import type { DataKey, KeyRing, KeyRingError } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Schedule } from "effect"
import type { DatabaseError } from "./PgErrors.ts"
import { texts } from "./PgParameters.ts"
import { SealedSecrets } from "./SealedSecrets.ts"
import { networkRow, placeOf } from "./SecretColumns.ts"

/** Rows in one transaction: few, because sealing holds up everything else of the process. */
const sliceSize = 100
/** Between two slices. */
const pause = "10 millis"
/** Between two passes. A node seals with the newest data key after this time at the latest. */
const interval = "1 minute"
/** Rows that do not open and are left as they are; a pass ends when there are more. */
const maxLeft = 1000

/** A table with secrets. All its names are constants of this file. */
interface SealedTable {
  readonly name: string
  /** The primary key. */
  readonly id: string
  readonly idType: "text" | "bigint"
  readonly columns: ReadonlyArray<string>
  /** What reads the columns of a row that is not sealed yet. Default: the columns. */
  readonly plain?: ReadonlyArray<string>
  /** Another assignment for each row that is sealed. */
  readonly also?: string
  /** Rows are bound by project and fingerprint of the first column, in place of the primary key. */
  readonly hasFingerprint?: true
}

const tables: ReadonlyArray<SealedTable> = [
  { name: "product", id: "product_key", idType: "text", columns: ["product_secret", "previous_secret"] },
  { name: "certificate_authority", id: "authority_id", idType: "text", columns: ["private_key"] },
  { name: "webhook_key", id: "project_id", idType: "text", columns: ["current", "previous"] },
  {
    name: "mesh_network",
    id: "network_id",
    idType: "bigint",
    columns: ["network_key", "app_key"],
    hasFingerprint: true
  },
  {
    name: "device",
    id: "device_id",
    idType: "text",
    columns: ["device_secret", "previous_secret", "cloud_gateway_password"],
    plain: ["device_secret", "previous_secret", "cloud_gateway->>'password'"],
    also: "cloud_gateway = (cloud_gateway::jsonb - 'password')::json"
  }
]

interface Row {
  readonly id: string
  readonly project_id: string
  readonly sealed_with: number
  readonly fingerprint: string | null
  readonly secrets: ReadonlyArray<string | null>
}

const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const secrets = yield* SealedSecrets

  /** The row with its secrets under the key; undefined if one of them does not open. */
  const reseal = (key: DataKey, { columns, hasFingerprint, name }: SealedTable, row: Row) => {
    const fingerprint = hasFingerprint ? row.fingerprint ?? secrets.fingerprint(row.secrets[0]!) : null
    const bound = fingerprint === null ? row.id : networkRow(row.project_id, fingerprint)
    const sealed: Record<string, string | null> = fingerprint === null ? { id: row.id } : { id: row.id, fingerprint }
    for (const [i, column] of columns.entries()) {
      const place = placeOf(name, bound, column)
      const text = row.secrets[i] ?? null
      const opened = text === null ? null : secrets.tryOpen(row.sealed_with, text, place)
      if (opened === undefined) return undefined
      sealed[column] = opened === null ? null : key.seal(opened, place)
    }
    return sealed
  }

  /** Seals some rows, and adds to `left` those that it leaves as they are. Returns how many it has taken. */
  const slice = Effect.fnUntraced(function*(table: SealedTable, left: Array<string>) {
    const { also, columns, hasFingerprint, id, idType, name, plain = columns } = table
    // One key for the whole slice, also if a newer one comes meanwhile.
    const { key, number } = secrets.current()
    const [asText, written] = [`${id}::text`, hasFingerprint ? [...columns, "fingerprint"] : columns]
    const rows = yield* sql<Row>`
      SELECT ${sql.literal(asText)} AS id, project_id, sealed_with,
        ${sql.literal(hasFingerprint ? "fingerprint" : "NULL")} AS fingerprint,
        CASE WHEN sealed_with = 0 THEN ${sql.literal(`ARRAY[${plain.join(", ")}]`)}
          ELSE ${sql.literal(`ARRAY[${columns.join(", ")}]`)} END AS secrets
      FROM ${sql(name)} WHERE sealed_with < ${number} AND ${sql.literal(asText)} <> ALL(${texts(left)})
      ORDER BY sealed_with LIMIT ${sliceSize} FOR NO KEY UPDATE SKIP LOCKED`.pipe(Effect.flatMap(secrets.ready))
    const sealed = rows.map((row) => reseal(key, table, row))
    // What does not open stays as it is: its key may come back.
    left.push(...rows.filter((_, i) => sealed[i] === undefined).map((row) => row.id))
    const assignments = [...written.map((column) => `${column} = new.${column}`), ...also === undefined ? [] : [also]]
    yield* sql`UPDATE ${sql(name)} SET ${sql.literal(assignments.join(", "))}, sealed_with = ${number}
      FROM json_to_recordset(${JSON.stringify(sealed.filter((row) => row !== undefined))}::json)
        AS new (${sql.literal(["id", ...written].map((column) => `${column} text`).join(", "))})
      WHERE ${sql.literal(`${name}.${id} = new.id::${idType}`)}`
    return rows.length
  }, sql.withTransaction)

  const pass = Effect.gen(function*() {
    yield* secrets.refresh
    let taken = 0
    for (const table of tables) {
      const left: Array<string> = []
      while (left.length <= maxLeft) {
        const rows = yield* slice(table, left)
        taken += rows
        if (rows < sliceSize) break
        yield* Effect.sleep(pause)
      }
    }
    if (taken > 0) {
      yield* Effect.logInfo(`Secrets of ${taken} rows are sealed under data key ${secrets.current().number}`)
    }
  })

  yield* pass.pipe(
    Effect.catchCause((cause) => Effect.logWarning("Secrets cannot be sealed again; the next pass goes on", cause)),
    Effect.repeat(Schedule.spaced(interval)),
    Effect.forkScoped
  )
})

/** Works in the background until the scope closes. Needs the tables of all stores with secrets. */
export const layer: Layer.Layer<never, DatabaseError | KeyRingError, PgClient.PgClient | KeyRing> = Layer.effectDiscard(
  make
).pipe(Layer.provide(SealedSecrets.layer))
