/**
 * Seals the secrets in rows (docs/decisions/0057-sealed-secrets.md).
 *
 * All secrets of a row are sealed under one data key, whose number is the row's
 * `sealed_with`; 0: they are plain, from a time before secrets were sealed. The
 * newest data key seals; `SecretResealing` moves older rows to it.
 */
import { type DataKey, KeyRing, KeyRingError, type SealedDataKey } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { type DatabaseError, databaseError } from "./PgErrors.ts"

export class SealedSecrets extends Context.Service<SealedSecrets, {
  /** Returns the data key that seals now. A row that it seals has its number as `sealed_with`. */
  readonly current: () => NumberedKey
  /**
   * Returns a secret of a row whose keys are `ready`; undefined if it does not open,
   * and the log says so. `place` names table, row and column; a sealed text opens
   * in its own place only.
   */
  readonly tryOpen: (sealedWith: number, text: string, place: string) => string | undefined
  /** The same; a secret that does not open is the empty text, which no check accepts. */
  readonly open: (sealedWith: number, text: string, place: string) => string
  /** Reads the data keys of rows that were sealed by another node in the meantime, then returns the rows. */
  readonly ready: <Row extends SealedRow>(
    rows: ReadonlyArray<Row>
  ) => Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError>
  /**
   * The same for rows whose secrets are handed out or sealed again, which empty texts
   * must not be: fails if this server cannot open a data key.
   */
  readonly readyOrFail: <Row extends SealedRow>(
    rows: ReadonlyArray<Row>
  ) => Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError | KeyRingError>
  /** Returns a text by which rows are found whose secret is known. It stays when keys are rotated. */
  readonly fingerprint: (secret: string) => string
  /** Reads the data keys again: the newest of them seals from now on. */
  readonly refresh: Effect.Effect<void, SqlError.SqlError>
}>()("@device-cloud/storage-pg/SealedSecrets") {
  /**
   * Opens all data keys, and makes the first one of a new database. Makes a new
   * one when the master key is new. Fails if a data key does not open.
   */
  static readonly layer: Layer.Layer<SealedSecrets, DatabaseError | KeyRingError, PgClient.PgClient | KeyRing> = Layer
    .effect(SealedSecrets, Effect.suspend(() => make))
}

export interface NumberedKey {
  readonly number: number
  readonly key: DataKey
}

/** A row with secrets of its own, or of its product, or both. */
export interface SealedRow {
  readonly sealed_with?: number
  readonly product__sealed_with?: number
}

interface KeyRow {
  readonly number: number
  /** The master key under which the data key was made. */
  readonly made_under: string
  /** The master key under which it is sealed now. */
  readonly master_key: string
  readonly sealed: string
}

/** Opened secrets that are kept, so that a row that is read often is opened once. */
const capacity = 20_000

const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const ring = yield* KeyRing
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const keys = new Map<number, DataKey>()
  const opened = new Map<string, { readonly place: string; readonly text: string }>()
  let newest: NumberedKey | undefined
  let oldest: DataKey | undefined

  const rows = sql<KeyRow>`SELECT number, made_under, master_key, sealed FROM data_key ORDER BY number`

  const take = Effect.fnUntraced(function*(found: ReadonlyArray<KeyRow>) {
    for (const { master_key: masterKeyId, number, sealed } of found) {
      const key = keys.get(number) ?? (yield* ring.open({ masterKeyId, sealed }))
      keys.set(number, key)
      oldest ??= key
      newest = { number, key }
    }
  })

  /**
   * Stores the next data key, and those before under the current master key. Servers
   * that start at the same time take turns. Returns whether the data keys were still `found`.
   */
  const replace = (found: ReadonlyArray<KeyRow>, resealed: ReadonlyArray<SealedDataKey>, made: SealedDataKey) =>
    Effect.gen(function*() {
      yield* sql`LOCK TABLE data_key IN SHARE ROW EXCLUSIVE MODE`
      if ((yield* rows).length !== found.length) return false
      for (const [i, { masterKeyId, sealed }] of resealed.entries()) {
        yield* sql`UPDATE data_key SET sealed = ${sealed}, master_key = ${masterKeyId}
          WHERE number = ${found[i]!.number}`
      }
      yield* sql`INSERT INTO data_key (number, made_under, master_key, sealed, created_at)
        VALUES (${(found.at(-1)?.number ?? 0) + 1}, ${made.masterKeyId}, ${made.masterKeyId}, ${made.sealed}, now())`
      return true
    }).pipe(sql.withTransaction)

  /** Returns whether the data keys are those that serve; false: another server has made one meanwhile. */
  const settle = Effect.gen(function*() {
    const found = yield* rows
    // Before the ring is asked for its master key, which it might make: what is there must open.
    yield* take(found)
    const master = yield* ring.masterKeyId
    // A server with an older configuration does not go back to a key that was replaced.
    if (found.some(({ made_under }) => made_under === master)) return true
    // Before the table is locked: a ring that does not answer must not hold up other servers.
    const resealed = yield* Effect.forEach(
      found,
      ({ master_key: masterKeyId, sealed }) => ring.reseal({ masterKeyId, sealed })
    )
    const { sealed } = yield* ring.generate
    if (!(yield* replace(found, resealed, sealed))) return false
    yield* take(yield* rows)
    return true
  })

  yield* settle.pipe(
    Effect.repeat({ until: (isSettled) => isSettled }),
    Effect.mapError((error) => error instanceof KeyRingError ? error : databaseError(error))
  )

  const takeAll = Effect.flatMap(rows, take)

  const refresh = takeAll.pipe(
    Effect.catchTag(
      "KeyRingError",
      (error) => Effect.logError("A new data key does not open here: give this server the new master key, too", error)
    )
  )

  const tryOpen = (sealedWith: number, text: string, place: string): string | undefined => {
    if (sealedWith === 0) return text
    const known = opened.get(text)
    if (known !== undefined && known.place === place) return known.text
    const plain = keys.get(sealedWith)?.open(text, place)
    if (plain === undefined) {
      run(
        Effect.logError(`The secret of ${place} does not open: data key ${sealedWith} did not seal it for this place`)
      )
      return undefined
    }
    opened.set(text, { place, text: plain })
    if (opened.size > capacity) opened.delete(opened.keys().next().value!)
    return plain
  }

  const isKnown = (number: number | undefined) => number === undefined || number === 0 || keys.has(number)

  const after = <E>(reading: Effect.Effect<void, E>) => <Row extends SealedRow>(read: ReadonlyArray<Row>) =>
    read.every((row) => isKnown(row.sealed_with) && isKnown(row.product__sealed_with))
      ? Effect.succeed(read)
      : Effect.as(reading, read)

  return SealedSecrets.of({
    current: () => newest!,
    tryOpen,
    open: (sealedWith, text, place) => tryOpen(sealedWith, text, place) ?? "",
    ready: after(refresh),
    readyOrFail: after(takeAll),
    fingerprint: (secret) => oldest!.fingerprint(secret),
    refresh
  })
})
