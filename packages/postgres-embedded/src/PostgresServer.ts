/**
 * The server process of a PostgreSQL database on disk.
 */
import { PgConnection } from "@effect/sql-pg"
import { Effect, Redacted, Schedule, type Scope } from "effect"
import { closeSync, openSync, readFileSync } from "node:fs"
import { readFile, readlink, realpath, rm } from "node:fs/promises"
import { createServer } from "node:net"
import { join } from "node:path"
import { attempt, EmbeddedPostgresError, type PostgresCluster, spawnUnder, user } from "./PostgresCluster.ts"

export const host = "127.0.0.1"
export const database = "postgres"

/** Names the advisory lock of the one owner of the database. */
const ownerLock = 7_305_117

interface RunningServer {
  readonly pid: number
  readonly port: number
}

/**
 * Starts the server, or takes over the one that a killed owner left running.
 * Starts it anew, on the same port, whenever it ends by itself. It stops with
 * the scope. Answers its port.
 */
export const keepRunning = Effect.fnUntraced(function*(cluster: PostgresCluster) {
  const holder = yield* Effect.acquireRelease(
    Effect.map(launch(cluster), (server) => ({ server })),
    ({ server }) => stop(cluster, server),
    { interruptible: true }
  )
  const restart = Effect.gen(function*() {
    yield* Effect.logError(`PostgreSQL in ${cluster.directory} has ended; it is started again`)
    holder.server = yield* start(cluster, holder.server.port).pipe(
      Effect.tapError((error) => Effect.logError(error.message)),
      Effect.retry(Schedule.spaced("1 second"))
    )
  })
  yield* Effect.suspend(() => isAlive(holder.server.pid) ? Effect.void : restart).pipe(
    Effect.repeat(Schedule.spaced("500 millis")),
    Effect.forkScoped
  )
  return holder.server.port
})

const launch = Effect.fnUntraced(function*(cluster: PostgresCluster) {
  const left = yield* leftRunning(cluster)
  if (left !== undefined) return yield* takeOver(cluster, left)
  return yield* start(cluster, yield* freePort).pipe(
    // Another server may have been faster.
    Effect.catch((error) =>
      Effect.flatMap(
        leftRunning(cluster),
        (faster): Effect.Effect<RunningServer, EmbeddedPostgresError, Scope.Scope> =>
          faster === undefined ? Effect.fail(error) : takeOver(cluster, faster)
      )
    )
  )
})

/** How old a server is that nobody is about to claim, seconds. */
const settled = 60

/** The time in which whoever has started a server claims it. */
const claimTime = "2 seconds"

/**
 * Makes this owner that of a running server. One that takes fewer connections than
 * this owner needs is started anew.
 */
const takeOver = Effect.fnUntraced(function*(cluster: PostgresCluster, server: RunningServer) {
  if ((yield* age(cluster, server.port)) < settled) yield* Effect.sleep(claimTime)
  const connection = yield* tryClaim(cluster, server.port)
  if (connection === undefined) return yield* usedByAnother(cluster)
  const { rows } = yield* Effect.orDie(connection.query("SHOW max_connections"))
  if (Number(rows[0]?.["max_connections"]) >= cluster.connections) return server
  yield* stop(cluster, server)
  return yield* start(cluster, server.port)
})

const pidFile = ({ data }: PostgresCluster) => join(data, "postmaster.pid")

const readText = (path: string): Promise<string> => readFile(path, "utf8").catch(() => "")

/** What the server that runs in the data directory, or ran there last, says of itself. */
const readPidFile = (cluster: PostgresCluster) =>
  Effect.promise(async () => {
    const [pid, , , port] = (await readText(pidFile(cluster))).split("\n").map(Number)
    return pid ? { pid, port: port ?? 0 } : undefined
  })

/** Whether a process has this number, be it one that has ended and that nobody has collected. */
const exists = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM"
  }
}

/** Whether the process runs; one that has ended and was not collected does not. */
const isAlive = (pid: number): boolean => exists(pid) && !isZombie(pid)

const isZombie = (pid: number): boolean => {
  try {
    return /^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch {
    // Not Linux.
    return false
  }
}

/**
 * Whether a process may be the server of the data directory. Another one got its
 * number after the server had ended, or nobody has collected what is left of it.
 */
const mayServe = ({ data }: PostgresCluster, pid: number) =>
  Effect.promise(async () => {
    if (!isAlive(pid)) return false
    const command = await readText(`/proc/${pid}/cmdline`)
    if (command !== "" && !command.includes("postgres")) return false
    // PostgreSQL works in its data directory. Not Linux, or the process of another account: not known.
    const directory = await readlink(`/proc/${pid}/cwd`).catch(() => undefined)
    return directory === undefined || directory === await realpath(data)
  })

const connect = ({ password }: PostgresCluster, port: number) =>
  PgConnection.make({
    host,
    port,
    username: user,
    password: Redacted.make(password),
    database,
    connectTimeout: "2 seconds",
    applicationName: "device-cloud embedded"
  })

const accepts = (cluster: PostgresCluster, port: number) =>
  Effect.scoped(Effect.flatMap(connect(cluster, port), (connection) => connection.query("SELECT 1")))

/** How long the server has been running, seconds. */
const age = (cluster: PostgresCluster, port: number) =>
  connect(cluster, port).pipe(
    Effect.flatMap((connection) =>
      connection.query("SELECT extract(epoch FROM now() - pg_postmaster_start_time())::float8 AS age")
    ),
    Effect.map(({ rows }) => Number(rows[0]?.["age"])),
    Effect.scoped,
    Effect.mapError((cause) => wentAway(cluster, cause))
  )

/** How long a process that has ended may take to be collected. */
const collectionTime = "500 millis"

/**
 * Removes the mark of a server that has ended, if its number is still taken:
 * PostgreSQL itself starts over any other mark.
 */
const forget = Effect.fnUntraced(function*(cluster: PostgresCluster, pid: number) {
  // One that has just ended makes room for the next one by itself.
  if (isZombie(pid)) yield* Effect.sleep(collectionTime)
  if (!exists(pid) || (yield* readPidFile(cluster))?.pid !== pid) return
  yield* attempt(`${pidFile(cluster)} cannot be removed`, () => rm(pidFile(cluster), { force: true }))
})

/**
 * The server that still runs in the data directory, after its owner was killed.
 * One that is about to stop or to start is waited for.
 */
const leftRunning = Effect.fnUntraced(function*(cluster: PostgresCluster) {
  const server = yield* readPidFile(cluster)
  if (server === undefined) return undefined
  if (!(yield* mayServe(cluster, server.pid))) {
    yield* forget(cluster, server.pid)
    return undefined
  }
  const answers = yield* accepts(cluster, server.port).pipe(
    Effect.as(true),
    Effect.retry({ schedule: Schedule.spaced("100 millis"), while: () => isAlive(server.pid) }),
    Effect.orElseSucceed(() => false),
    Effect.timeoutOrElse({
      duration: "15 seconds",
      orElse: () =>
        Effect.fail(
          new EmbeddedPostgresError({
            message: `Process ${server.pid} holds ${pidFile(cluster)} but does not answer as the ` +
              `database on port ${server.port}. If it is not PostgreSQL, delete that file; otherwise end it first.`
          })
        )
    })
  )
  return answers ? server : undefined
})

/** A port that nobody listens on. */
const freePort = attempt(`No free port on ${host}`, () =>
  new Promise<number>((resolve, reject) => {
    const server = createServer().once("error", reject).listen(0, host, () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  }))

/** Starts the server, waits until it accepts connections, and claims it. */
const start = Effect.fnUntraced(function*(
  cluster: PostgresCluster,
  port: number
): Effect.fn.Return<RunningServer, EmbeddedPostgresError, Scope.Scope> {
  const args = [
    "-D",
    cluster.data,
    "-p",
    String(port),
    "-c",
    `listen_addresses=${host}`,
    "-c",
    "unix_socket_directories=",
    "-c",
    `max_connections=${cluster.connections}`,
    // Filling a new segment of the log with zeros would hold up commits.
    "-c",
    "wal_init_zero=off",
    ...cluster.durable ? [] : ["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"]
  ]
  const log = openSync(cluster.log, "w", 0o600)
  const child = spawnUnder(cluster.account, cluster.programs.postgres, args, ["ignore", log, log])
  closeSync(log)
  child.unref()
  const ended = Effect.callback<never, EmbeddedPostgresError>((resume) => {
    const fail = (cause?: Error) =>
      resume(
        Effect.flatMap(
          Effect.promise(() => readText(cluster.log)),
          (log) =>
            new EmbeddedPostgresError({
              message: `PostgreSQL did not start. Its log, ${cluster.log}, ends: ${
                log.trim().split("\n").slice(-5).join("\n")
              }`,
              cause
            })
        )
      )
    child.once("error", fail)
    child.once("exit", () => fail())
  })
  const server: RunningServer = { pid: child.pid ?? 0, port }
  const connection = yield* accepts(cluster, port).pipe(
    Effect.andThen(readPidFile(cluster)),
    // The one that answers may be that of another owner, who got the same port.
    Effect.repeat({ until: (running) => running?.pid === server.pid, schedule: Schedule.spaced("25 millis") }),
    Effect.retry(Schedule.spaced("25 millis")),
    Effect.orDie,
    Effect.raceFirst(ended),
    Effect.andThen(tryClaim(cluster, port)),
    Effect.onError(() => stop(cluster, server))
  )
  // One that was faster has taken the new server over: it is not this owner's to stop.
  if (connection === undefined) return yield* usedByAnother(cluster)
  return server
})

/** Fast shutdown: open transactions are rolled back, everything committed is on disk. */
const stop = ({ directory }: PostgresCluster, { pid }: RunningServer) =>
  Effect.gen(function*() {
    if (pid === 0 || !isAlive(pid)) return
    process.kill(pid, "SIGINT")
    yield* Effect.sync(() => isAlive(pid)).pipe(
      Effect.repeat({ schedule: Schedule.spaced("20 millis"), while: (alive) => alive }),
      Effect.timeoutOption("8 seconds")
    )
  }).pipe(
    Effect.catchDefect((cause) => Effect.logWarning(`PostgreSQL in ${directory} could not be stopped`, cause))
  )

/**
 * Makes sure that no other server uses this database, for as long as the scope
 * lives. Returns the connection that does; undefined if another server uses it.
 */
const tryClaim = Effect.fnUntraced(function*(cluster: PostgresCluster, port: number) {
  const connection = yield* Effect.mapError(connect(cluster, port), (cause) => wentAway(cluster, cause))
  const { rows } = yield* Effect.orDie(
    connection.query("SELECT pg_try_advisory_lock($1::bigint) AS claimed", [String(ownerLock)])
  )
  return rows[0]?.["claimed"] === true ? connection : undefined
})

const wentAway = ({ directory }: PostgresCluster, cause: unknown) =>
  new EmbeddedPostgresError({ message: `The database in ${directory} went away`, cause })

const usedByAnother = ({ directory }: PostgresCluster) =>
  new EmbeddedPostgresError({
    message: `Another server uses ${directory}. Stop it, or give this one a directory of its own.`
  })
