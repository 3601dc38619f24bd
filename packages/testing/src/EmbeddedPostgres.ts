/**
 * A real PostgreSQL that comes with npm: for tests, demonstrations, and servers
 * that have no other database.
 */
import { PgConnection } from "@effect/sql-pg"
import { Clock, Context, Effect, Layer, Redacted, type Scope } from "effect"
import { randomBytes } from "node:crypto"
import type * as PostgresAccount from "./PostgresAccount.ts"
import { EmbeddedPostgresError, open, user } from "./PostgresCluster.ts"
import { database, host, keepRunning } from "./PostgresServer.ts"

export { EmbeddedPostgresError }

export interface Options {
  /** Holds the database, its log and its password; made when missing. */
  readonly directory: string
  /** False gives up durability for speed: for tests. Default true. */
  readonly durable?: boolean
}

/** The database for as long as the scope lives. Its URL carries user and password. */
export class EmbeddedPostgres extends Context.Service<EmbeddedPostgres, {
  readonly url: Redacted.Redacted
}>()("@device-cloud/testing/EmbeddedPostgres") {
  static readonly layer = (
    options: Options
  ): Layer.Layer<EmbeddedPostgres, EmbeddedPostgresError | PostgresAccount.UnreachableForPostgres> =>
    Layer.effect(EmbeddedPostgres, make(options))
}

/** The database starts and stops in real time, also under a test clock. */
const realTime = Clock.Clock.defaultValue()

/**
 * Starts the database in `options.directory`, or takes over one that a killed
 * server left running there. It is started again when it ends by itself, and
 * ends with the scope.
 */
export const make = Effect.fnUntraced(function*(
  { directory, durable = true }: Options
): Effect.fn.Return<
  EmbeddedPostgres["Service"],
  EmbeddedPostgresError | PostgresAccount.UnreachableForPostgres,
  Scope.Scope
> {
  const cluster = yield* open({ directory, durable })
  const port = yield* keepRunning(cluster)
  return { url: Redacted.make(`postgres://${user}:${cluster.password}@${host}:${port}/${database}`) }
}, Effect.provideService(Clock.Clock, realTime))

/** A new, empty database on the server at `url`; answers its URL. */
export const createDatabase = Effect.fnUntraced(function*(url: Redacted.Redacted) {
  const name = `db_${randomBytes(8).toString("hex")}`
  yield* Effect.scoped(
    Effect.flatMap(PgConnection.make({ url }), (connection) => connection.query(`CREATE DATABASE ${name}`))
  ).pipe(Effect.mapError((cause) => new EmbeddedPostgresError({ message: "No database could be created", cause })))
  const created = new URL(Redacted.value(url))
  created.pathname = name
  return Redacted.make(created.href)
})
