/**
 * Seals the secrets in rows (docs/decisions/0057-sealed-secrets.md).
 *
 * A sealed text begins with the number of the data key that sealed it. When the
 * master key is new, the layer makes a new data key and seals all rows under it.
 */
import { type DataKey, KeyRing, type KeyRingError, type PreviousSecret, type StoreError } from "@device-cloud/core"
import { Context, Effect, Layer } from "effect"
import { Sqlite } from "./Sqlite.ts"
import { type DatabaseError, databaseError } from "./SqliteErrors.ts"

export class Secrets extends Context.Service<Secrets, {
  /** Seals a secret of a row. It opens for the same table, row and column only. */
  readonly seal: (secret: string, place: Place) => string
  /** Opens it. A secret that does not open is the empty text, which no check accepts. */
  readonly open: (sealed: string, place: Place) => string
  /** Returns a text by which rows are found whose secret is known. It stays when keys are replaced. */
  readonly fingerprint: (secret: string) => string
}>()("@device-cloud/storage-sqlite/Secrets") {
  /** Fails if a data key does not open. */
  static readonly layer: Layer.Layer<Secrets, DatabaseError | KeyRingError, Sqlite | KeyRing> = Layer.effect(
    Secrets,
    Effect.suspend(() => make).pipe(
      Effect.catchTag("StoreError", (error) => Effect.fail(databaseError(error)))
    )
  )
}

/** Where a secret is kept: the table, the row's value of {@link SealedTable.row}, the column. */
export type Place = readonly [table: string, row: string, column: string]

interface SealedTable {
  readonly table: string
  /** The expression that names a row in the places of its secrets. */
  readonly row: string
  readonly columns: ReadonlyArray<string>
}

/** All columns with secrets. */
const sealedTables: ReadonlyArray<SealedTable> = [
  { table: "product", row: "product_key", columns: ["product_secret", "previous_secret"] },
  { table: "device", row: "device_id", columns: ["device_secret", "previous_secret", "cloud_gateway_password"] },
  { table: "webhook_key", row: "project_id", columns: ["current", "previous"] },
  { table: "certificate_authority", row: "authority_id", columns: ["private_key"] },
  { table: "mesh_network", row: "project_id || ' ' || fingerprint", columns: ["network_key", "app_key"] }
]

interface KeyRow {
  readonly number: number
  /** The master key under which it is sealed. */
  readonly master_key: string
  readonly sealed: string
}

/** The secret before the current one, of a row of `device` or `product`. */
export const previousSecretOf = (
  { open }: Secrets["Service"],
  row: { readonly previous_secret: string | null; readonly previous_secret_until: number | null },
  [table, id]: readonly ["device" | "product", string]
): PreviousSecret | null =>
  row.previous_secret === null || row.previous_secret_until === null
    ? null
    : { secret: open(row.previous_secret, [table, id, "previous_secret"]), until: row.previous_secret_until }

const make: Effect.Effect<Secrets["Service"], StoreError | KeyRingError, Sqlite | KeyRing> = Effect.gen(function*() {
  const sql = yield* Sqlite
  const ring = yield* KeyRing
  const keys = new Map<number, DataKey>()
  const found = yield* sql.read(
    "Secrets.open",
    () => sql.all<KeyRow>("SELECT number, master_key, sealed FROM data_key ORDER BY number")
  )
  // Before the ring is asked for its master key, which it might make: what is there must open.
  for (const { master_key: masterKeyId, number, sealed } of found) {
    keys.set(number, yield* ring.open({ masterKeyId, sealed }))
  }
  let newest = found.at(-1)?.number ?? 0

  const tryOpen = (sealed: string, place: Place) => {
    const end = sealed.indexOf(":")
    return keys.get(Number(sealed.slice(0, end)))?.open(sealed.slice(end + 1), place.join(" "))
  }

  const seal = (secret: string, place: Place) => `${newest}:${keys.get(newest)!.seal(secret, place.join(" "))}`

  const resealColumn = ({ row, table }: SealedTable, column: string) => {
    const rows = sql.all<{ readonly number: number; readonly row: string; readonly sealed: string }>(
      `SELECT rowid AS number, ${row} AS row, ${column} AS sealed FROM ${table} WHERE ${column} IS NOT NULL`
    )
    for (const { number, row, sealed } of rows) {
      const place: Place = [table, row, column]
      const secret = tryOpen(sealed, place)
      // What does not open stays as it is: its row may be mended.
      if (secret === undefined) continue
      sql.run(`UPDATE ${table} SET ${column} = ? WHERE rowid = ?`, [seal(secret, place), number])
    }
  }

  const master = yield* ring.masterKeyId
  if (found.at(-1)?.master_key !== master) {
    const moved = yield* Effect.forEach(
      found,
      ({ master_key: masterKeyId, number, sealed }) =>
        Effect.map(ring.reseal({ masterKeyId, sealed }), (resealed) => ({ number, ...resealed }))
    )
    const { key, sealed } = yield* ring.generate
    yield* sql.write("Secrets.seal", () => {
      for (const { masterKeyId, number, sealed } of moved) {
        sql.run("UPDATE data_key SET master_key = ?, sealed = ? WHERE number = ?", [masterKeyId, sealed, number])
      }
      newest++
      keys.set(newest, key)
      sql.run("INSERT INTO data_key (number, master_key, sealed) VALUES (?, ?, ?)", [
        newest,
        sealed.masterKeyId,
        sealed.sealed
      ])
      for (const table of sealedTables) for (const column of table.columns) resealColumn(table, column)
    })
  }
  const oldest = keys.get(found[0]?.number ?? newest)!

  return Secrets.of({
    seal,
    open: (sealed, place) => tryOpen(sealed, place) ?? "",
    fingerprint: (secret) => oldest.fingerprint(secret)
  })
})
