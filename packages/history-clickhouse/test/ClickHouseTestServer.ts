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

const users = (password: string) =>
  `<yandex>
  <profiles><default></default></profiles>
  <quotas><default></default></quotas>
  <users>
    <default>
      <password>${password}</password>
      <networks><ip>127.0.0.1</ip></networks>
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
  const writeUsers = (password: string) =>
    Effect.promise(() => writeFile(join(directory, "users.xml"), users(password)))
  yield* writeUsers("secret")
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

  const send = (body: string) =>
    Effect.promise(() => {
      const headers = { "x-clickhouse-user": "default", "x-clickhouse-key": "secret" }
      return fetch(`http://127.0.0.1:${port}`, { method: "POST", headers, body })
    })

  /** Runs a statement that returns nothing. */
  const run = (statement: string) =>
    Effect.flatMap(send(statement), (response) =>
      Effect.promise(async () => {
        if (!response.ok) throw new Error(await response.text())
      }))

  /** Sets the password and waits until it counts: the server looks at whole seconds of the file every two seconds. */
  const setPassword = (password: string) =>
    Effect.gen(function*() {
      do {
        yield* writeUsers(password)
        yield* Effect.sleep(100)
      } while ((yield* send("SELECT 1")).ok !== (password === "secret"))
    })

  return {
    /** From now on the server does not let the URL in. */
    changePassword: setPassword("other"),
    /** From now on no file can be written: the server fails as on a full disk. */
    fill: limitFiles("0"),
    kill,
    makeRoom: limitFiles("unlimited"),
    restorePassword: setPassword("secret"),
    run,
    start,
    url: Redacted.make(`http://default:secret@127.0.0.1:${port}`)
  }
})
