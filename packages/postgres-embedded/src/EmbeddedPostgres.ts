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

/** Where the database lives, and how safely. */
export interface Options {
  /** Holds the database, its log and its password. Made if it is missing. One server at a time uses it. */
  readonly directory: string
  /** False gives up durability for speed: for tests. Default true. */
  readonly durable?: boolean
  /** Connections that it takes at once. Default: 100. */
  readonly connections?: number
}

/** A running database. */
export class EmbeddedPostgres extends Context.Service<EmbeddedPostgres, {
  /** `postgres://…`, with user and password. It stays the same when the database is started again. */
  readonly url: Redacted.Redacted
}>()("@device-cloud/postgres-embedded/EmbeddedPostgres") {
  /** The database of {@link make}, for as long as the layer lives. */
  static readonly layer = (
    options: Options
  ): Layer.Layer<EmbeddedPostgres, EmbeddedPostgresError | PostgresAccount.UnreachableForPostgres> =>
    Layer.effect(EmbeddedPostgres, make(options))
}

/** The database starts and stops in real time, also under a test clock. */
const realTime = Clock.Clock.defaultValue()

/**
 * Starts the database in `options.directory`, or takes over one that a killed
 * server left running there. If the database ends by itself, it is started
 * again; it ends with the scope. Fails with `EmbeddedPostgresError` if it does
 * not start or another server uses the directory, and with
 * `UnreachableForPostgres` if the account that PostgreSQL runs as cannot enter
 * the directory (as root, PostgreSQL runs as another account).
 */
export const make = Effect.fnUntraced(function*(
  { connections = 100, directory, durable = true }: Options
): Effect.fn.Return<
  EmbeddedPostgres["Service"],
  EmbeddedPostgresError | PostgresAccount.UnreachableForPostgres,
  Scope.Scope
> {
  const cluster = yield* open({ connections, directory, durable })
  const port = yield* keepRunning(cluster)
  return { url: Redacted.make(`postgres://${user}:${cluster.password}@${host}:${port}/${database}`) }
}, Effect.provideService(Clock.Clock, realTime))

/**
 * Creates a database on the server at `url`, and returns its URL. It is empty, or a
 * copy of the database at the URL `template`, which nobody may be connected to. It is
 * not removed. Fails with `EmbeddedPostgresError`.
 */
export const createDatabase = Effect.fnUntraced(function*(url: Redacted.Redacted, template?: Redacted.Redacted) {
  const name = `db_${randomBytes(8).toString("hex")}`
  // To copy its files takes half of the time that it takes to copy what is in them.
  const copied = template === undefined
    ? ""
    : ` TEMPLATE "${new URL(Redacted.value(template)).pathname.slice(1)}" STRATEGY file_copy`
  yield* Effect.scoped(
    Effect.flatMap(PgConnection.make({ url }), (connection) => connection.query(`CREATE DATABASE ${name}${copied}`))
  ).pipe(Effect.mapError((cause) => new EmbeddedPostgresError({ message: "No database could be created", cause })))
  const created = new URL(Redacted.value(url))
  created.pathname = name
  return Redacted.make(created.href)
})
