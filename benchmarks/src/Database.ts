/**
 * The PostgreSQL of benchmarks and drills, and what may happen to it.
 */
import { EmbeddedPostgres } from "@device-cloud/postgres-embedded"
import { PgConnection } from "@effect/sql-pg"
import { Effect, Exit, Redacted, Scope } from "effect"
import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { withDirectory } from "./Processes.ts"

/** A statement and its parameters. */
export type Query = (text: string, parameters?: ReadonlyArray<string | number>) => Promise<ReadonlyArray<Row>>
type Row = Readonly<Record<string, unknown>>

export interface Database {
  readonly url: string
  readonly query: Query
  /** Opens a connection that stays open until it is closed. */
  readonly connect: () => Promise<{ readonly query: Query; readonly close: () => Promise<void> }>
  /** `kill -9` of all its processes. It is started again. */
  readonly kill: () => Promise<void>
  /** Its processes stand still until `thaw`. */
  readonly freeze: () => Promise<void>
  readonly thaw: () => Promise<void>
}

/** The process that listens, and its children. */
const processesOf = async (directory: string): Promise<ReadonlyArray<number>> => {
  const [parent = 0] = (await readFile(join(directory, "data", "postmaster.pid"), "utf8")).split("\n").map(Number)
  const processes = [parent]
  for (const name of await readdir("/proc")) {
    const stat = /^\d+$/.test(name) ? await readFile(`/proc/${name}/stat`, "utf8").catch(() => "") : ""
    if (Number(/\) \w (\d+)/.exec(stat)?.[1]) === parent) processes.push(Number(name))
  }
  return processes
}

/** By this name the database knows the connections of {@link Database}. */
const applicationName = "benchmark"

/** Ends the connections of the nodes. */
export const endOthers = (query: Query): Promise<unknown> =>
  query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> $1",
    [applicationName]
  )

const connectTo = async (url: string) => {
  const scope = Scope.makeUnsafe()
  const connection = await Effect.runPromise(
    Scope.provide(PgConnection.make({ url: Redacted.make(url), applicationName }), scope)
  )
  const query: Query = async (text, parameters = []) =>
    (await Effect.runPromise(connection.query(text, [...parameters]))).rows
  return { query, close: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

/** Runs `use` on a database in an empty directory that syncs to the disk as in production. */
export const withDatabaseIn = async <A>(directory: string, use: (database: Database) => Promise<A>): Promise<A> => {
  const scope = Scope.makeUnsafe()
  const signal = async (name: NodeJS.Signals) => {
    for (const pid of await processesOf(directory)) {
      try {
        process.kill(pid, name)
      } catch {
        // It has ended meanwhile.
      }
    }
  }
  try {
    const server = await Effect.runPromise(Scope.provide(EmbeddedPostgres.make({ directory }), scope))
    const url = Redacted.value(server.url)
    return await use({
      url,
      connect: () => connectTo(url),
      query: async (text, parameters) => {
        const { close, query } = await connectTo(url)
        try {
          return await query(text, parameters)
        } finally {
          await close()
        }
      },
      kill: () => signal("SIGKILL"),
      freeze: () => signal("SIGSTOP"),
      thaw: () => signal("SIGCONT")
    })
  } finally {
    await Effect.runPromise(Scope.close(scope, Exit.void))
  }
}

/** Runs `use` on a new database, which is removed. */
export const withDatabase = <A>(use: (url: string, query: Query) => Promise<A>): Promise<A> =>
  withDirectory((directory) => withDatabaseIn(directory, ({ query, url }) => use(url, query)))
