/**
 * A real `clickhouse-server`, which tests start, kill and start again.
 */
import { Effect, Redacted } from "effect"
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { environment, program } from "../../../vitest.installed.ts"
import { freePort } from "../../../vitest.ports.ts"

export const { isInstalled, named } = program("clickhouse-server")

const config = (directory: string, port: number) =>
  `<yandex>
  <logger><level>error</level><console>1</console></logger>
  <listen_host>127.0.0.1</listen_host>
  <http_port>${port}</http_port>
  <path>${directory}/</path>
  <tmp_path>${directory}/tmp/</tmp_path>
  <mark_cache_size>67108864</mark_cache_size>
  <users_config>users.xml</users_config>
  <default_profile>default</default_profile>
  <default_database>default</default_database>
</yandex>`

interface Account {
  readonly password?: string
  /** From where it may connect. */
  readonly ip?: string
  /** How many statements it may run in an hour; 0: as many as it likes. */
  readonly queries?: number
}

const users = ({ ip = "127.0.0.1", password = "secret", queries = 0 }: Account) =>
  `<yandex>
  <profiles><default></default></profiles>
  <quotas>
    <default><interval><duration>3600</duration><queries>${queries}</queries></interval></default>
  </quotas>
  <users>
    <default>
      <password>${password}</password>
      <networks><ip>${ip}</ip></networks>
      <profile>default</profile>
      <quota>default</quota>
    </default>
  </users>
</yandex>`

/** A server that is not running yet, with a directory of its own. */
export const make = Effect.gen(function*() {
  const directory = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-clickhouse-"))),
    (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
  )
  const port = yield* freePort
  const configFile = join(directory, "config.xml")
  yield* Effect.promise(() => writeFile(configFile, config(directory, port)))
  const writeUsers = (account: Account) => Effect.promise(() => writeFile(join(directory, "users.xml"), users(account)))
  yield* writeUsers({})
  let child: ChildProcess | undefined

  const kill = Effect.callback<void>((resume) => {
    if (child === undefined) return resume(Effect.void)
    child.once("exit", () => resume(Effect.void))
    child.kill("SIGKILL")
    child = undefined
  })
  yield* Effect.addFinalizer(() => kill)

  const start = Effect.gen(function*() {
    // A file that may not grow is an error of a write, as on a full disk; otherwise it would end the process.
    const command = `trap '' XFSZ; exec clickhouse-server '--config-file=${configFile}'`
    child = spawn("sh", ["-c", command], { env: environment, stdio: "ignore" })
    const isListening = Effect.promise(() => fetch(`http://127.0.0.1:${port}/ping`).then(({ ok }) => ok, () => false))
    while (!(yield* isListening)) yield* Effect.sleep(20)
  })

  const limitFiles = (bytes: "0" | "unlimited") =>
    Effect.sync(() => {
      const { status } = spawnSync("prlimit", [`--pid=${child!.pid}`, `--fsize=${bytes}:unlimited`], {
        env: environment
      })
      if (status !== 0) throw new Error("prlimit has failed")
    })

  const send = (body: string, database: string) =>
    Effect.promise(() => {
      const headers = { "x-clickhouse-user": "default", "x-clickhouse-key": "secret" }
      return fetch(`http://127.0.0.1:${port}/?database=${database}`, { method: "POST", headers, body })
    })

  /** Runs a statement that returns nothing. */
  const run = (statement: string, database = "default") =>
    Effect.flatMap(send(statement, database), (response) =>
      Effect.promise(async () => {
        if (!response.ok) throw new Error(await response.text())
      }))

  /** Changes the user and waits until it counts: the server looks at whole seconds of the file every two seconds. */
  const setUser = (account: Account, isAdmitted: boolean) =>
    Effect.gen(function*() {
      do {
        yield* writeUsers(account)
        yield* Effect.sleep(100)
      } while ((yield* send("SELECT 1", "default")).ok !== isAdmitted)
    })

  return {
    /** From now on the user may do what it could in the beginning. */
    admit: setUser({}, true),
    /** From now on the server does not let the URL in. */
    changePassword: setUser({ password: "other" }, false),
    dropDatabase: run("DROP DATABASE default", "system"),
    /** From now on the user has run more statements than it may in this hour. */
    exhaust: setUser({ queries: 1 }, false),
    /** From now on the server lets nobody in from here. */
    exclude: setUser({ ip: "192.0.2.1" }, false),
    /** From now on no file can be written: the server fails as on a full disk. */
    fill: limitFiles("0"),
    kill,
    makeDatabase: run("CREATE DATABASE default", "system"),
    makeRoom: limitFiles("unlimited"),
    run,
    start,
    url: Redacted.make(`http://default:secret@127.0.0.1:${port}`)
  }
})
