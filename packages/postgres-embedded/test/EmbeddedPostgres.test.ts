import { EmbeddedPostgres } from "@device-cloud/postgres-embedded"
import { eventually } from "@device-cloud/testing"
import { PgConnection } from "@effect/sql-pg"
import { assert, it, layer } from "@effect/vitest"
import { Context, Effect, Layer, type Redacted, Result } from "effect"
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { existsSync, readFileSync } from "node:fs"
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { mayMount, smallDisk } from "../../../vitest.disks.ts"

const temporaryDirectory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-postgres-"))),
  (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
)

const query = (url: Redacted.Redacted, text: string) =>
  Effect.scoped(Effect.flatMap(PgConnection.make({ url }), (connection) => connection.query(text)))

const processId = (directory: string) =>
  Effect.map(
    Effect.promise(() => readFile(join(directory, "data", "postmaster.pid"), "utf8")),
    (text) => Number.parseInt(text)
  )

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Waits until nothing is left of the process. */
const untilEnded = (pid: number) => eventually(Effect.sync(() => isAlive(pid)), { until: (alive) => !alive })

/** The number of a process that has ended and that its parent never collects. */
const zombie = Effect.acquireRelease(
  Effect.promise(async () => {
    const parent = spawn("sh", ["-c", "sleep 0.2 & echo $!; exec sleep 1000"], { stdio: ["ignore", "pipe", "ignore"] })
    const [pid] = await once(parent.stdout, "data")
    return { parent, pid: Number(pid) }
  }),
  ({ parent }) => Effect.sync(() => void parent.kill("SIGKILL"))
)

const isZombie = (pid: number) => readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ")

/** Has a database, which is not running. */
class Directory extends Context.Service<Directory, string>()("test/Directory") {
  static readonly layer = Layer.effect(
    Directory,
    Effect.tap(temporaryDirectory, (directory) => Effect.scoped(EmbeddedPostgres.make({ directory })))
  )
}

it.live.runIf(mayMount)("says that the disk is read-only", () =>
  Effect.gen(function*() {
    const disk = yield* smallDisk(1)
    assert.strictEqual(spawnSync("mount", ["-o", "remount,ro", disk]).status, 0)
    for (const directory of [join(disk, "postgres"), join(disk, "data", "postgres")]) {
      const error = yield* Effect.flip(EmbeddedPostgres.make({ directory }))
      assert.strictEqual(error._tag, "EmbeddedPostgresError")
      assert.include(String(error.cause), "read-only")
    }
  }))

it.live("starts over an interrupted installation and over the mark of a process that is gone", () =>
  Effect.gen(function*() {
    const directory = yield* temporaryDirectory
    yield* Effect.promise(async () => {
      await mkdir(join(directory, "unfinished-x", "data"), { recursive: true })
      await writeFile(join(directory, "unfinished-x", "data", "PG_VERSION"), "18")
    })
    yield* Effect.scoped(EmbeddedPostgres.make({ directory }))
    // The process of this test is no PostgreSQL.
    const mark = [process.pid, join(directory, "data"), 1, 5432, "", "127.0.0.1", "", "ready"].join("\n")
    yield* Effect.promise(() => writeFile(join(directory, "data", "postmaster.pid"), mark))
    const { url } = yield* EmbeddedPostgres.make({ directory })
    assert.strictEqual((yield* query(url, "SELECT 1 AS one")).rows.length, 1)
  }))

it.live("serves one of several that start at the same time in an empty directory, and tells the others", () =>
  Effect.gen(function*() {
    const directory = yield* temporaryDirectory
    const results = yield* Effect.all(
      Array.from({ length: 5 }, () => Effect.result(EmbeddedPostgres.make({ directory }))),
      { concurrency: "unbounded" }
    )
    const running = results.filter(Result.isSuccess)
    assert.strictEqual(running.length, 1)
    assert.strictEqual((yield* query(running[0]!.success.url, "SELECT 1 AS one")).rows.length, 1)
    for (const { failure } of results.filter(Result.isFailure)) assert.include(failure.message, "Another server uses")
  }))

layer(Directory.layer, { excludeTestServices: true })("a database", (it) => {
  it.effect("keeps its data, ends with its scope, and starts again", () =>
    Effect.gen(function*() {
      const directory = yield* Directory
      const first = yield* Effect.scoped(Effect.gen(function*() {
        const { url } = yield* EmbeddedPostgres.make({ directory })
        yield* query(url, "CREATE TABLE kept AS SELECT 1 AS value")
        return yield* processId(directory)
      }))
      yield* untilEnded(first)
      const { url } = yield* EmbeddedPostgres.make({ directory })
      const { rows } = yield* query(url, "SELECT value FROM kept")
      assert.deepStrictEqual(rows, [{ value: 1 }])
    }))

  it.effect("comes back at the same address when its process is killed", () =>
    Effect.gen(function*() {
      const directory = yield* Directory
      const { url } = yield* EmbeddedPostgres.make({ directory })
      yield* query(url, "CREATE TABLE stayed AS SELECT 1 AS value")
      const pid = yield* processId(directory)
      process.kill(pid, "SIGKILL")
      const { rows } = yield* eventually(query(url, "SELECT value FROM stayed"), { interval: "50 millis" })
      assert.deepStrictEqual(rows, [{ value: 1 }])
      assert.notStrictEqual(yield* processId(directory), pid)
      const error = yield* Effect.flip(EmbeddedPostgres.make({ directory }))
      assert.include(error.message, "Another server uses")
    }))

  it.effect("belongs to one owner at a time, and a refused one leaves it running", () =>
    Effect.gen(function*() {
      const directory = yield* Directory
      const { url } = yield* EmbeddedPostgres.make({ directory })
      const error = yield* Effect.flip(Effect.scoped(EmbeddedPostgres.make({ directory })))
      assert.include(error.message, "Another server uses")
      assert.strictEqual((yield* query(url, "SELECT 1 AS one")).rows.length, 1)
    }))

  it.effect.runIf(existsSync("/proc/self/stat"))(
    "starts when nobody has collected the process that was killed",
    () =>
      Effect.gen(function*() {
        const directory = yield* Directory
        const { pid } = yield* zombie
        yield* eventually(Effect.sync(() => isZombie(pid)), { until: (ended) => ended })
        const mark = [pid, join(directory, "data"), 1, 5432, "", "127.0.0.1", "", "ready"].join("\n")
        yield* Effect.promise(() => writeFile(join(directory, "data", "postmaster.pid"), mark))
        const { url } = yield* EmbeddedPostgres.make({ directory })
        assert.strictEqual((yield* query(url, "SELECT 1 AS one")).rows.length, 1)
      })
  )

  it.effect("starts when the number of the process that was killed belongs to another PostgreSQL", () =>
    Effect.gen(function*() {
      const [directory, other] = [yield* Directory, yield* temporaryDirectory]
      const { url: url2 } = yield* EmbeddedPostgres.make({ directory: other, connections: 30 })
      const mark = yield* Effect.promise(() => readFile(join(other, "data", "postmaster.pid"), "utf8"))
      yield* Effect.promise(() => writeFile(join(directory, "data", "postmaster.pid"), mark))
      const { url } = yield* EmbeddedPostgres.make({ directory })
      const limits = yield* Effect.forEach([url, url2], (each) => query(each, "SHOW max_connections"))
      assert.deepStrictEqual(limits.map(({ rows }) => rows), [[{ max_connections: "100" }], [{
        max_connections: "30"
      }]])
    }))

  it.effect("says what to do when the password of a database is lost", () =>
    Effect.gen(function*() {
      const directory = yield* Directory
      const passwordFile = join(directory, "data", "device_cloud_password")
      yield* Effect.promise(() => rename(passwordFile, join(directory, "elsewhere")))
      const error = yield* Effect.flip(EmbeddedPostgres.make({ directory }))
      assert.include(error.message, `${passwordFile} cannot be read`)
      assert.strictEqual(existsSync(join(directory, "data", "PG_VERSION")), true)
    }))
})
