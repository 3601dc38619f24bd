import { StoreError } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { Cause, Effect, Layer, References } from "effect"
import { join } from "node:path"
import { temporaryDirectory } from "../../../vitest.storages.ts"
import { Sqlite } from "../src/Sqlite.ts"

/** The path of a file in a directory of its own. */
const newFile = Effect.map(temporaryDirectory, (directory) => join(directory, "test.sqlite"))

/** Opens the file until the end of the scope. */
const open = (filename: string) => Layer.build(Layer.fresh(Sqlite.layer({ filename })))

/** A database with a table of numbers. */
const numbers = Effect.gen(function*() {
  const sql = yield* Effect.provide(Sqlite, yield* open(yield* newFile))
  sql.run("CREATE TABLE number (n INTEGER PRIMARY KEY)")
  return {
    sql,
    put: (n: number) => sql.write("test", () => sql.run("INSERT INTO number (n) VALUES (?)", [n])),
    all: sql.read("test", () => sql.all<{ readonly n: number }>("SELECT n FROM number ORDER BY n").map(({ n }) => n))
  }
})

it.live("a transaction keeps all or nothing, and a part of it that fails takes nothing with it", () =>
  Effect.gen(function*() {
    const { all, put, sql } = yield* numbers
    const refused = Effect.fail("refused" as const)
    const part = Effect.ignore(sql.within("test", Effect.andThen(put(2), refused)))
    yield* sql.within("test", Effect.all([put(1), part, Effect.ignore(put(1)), put(3)]))
    assert.strictEqual(yield* Effect.flip(sql.within("test", Effect.andThen(put(4), refused))), "refused")
    assert.instanceOf(yield* Effect.flip(put(3)), StoreError)
    assert.deepStrictEqual(yield* all, [1, 3])
    // A statement that has failed works again.
    yield* put(5)
    assert.deepStrictEqual(yield* all, [1, 3, 5])
  }).pipe(Effect.scoped))

it.live("what is written beside transactions that are undone stays, however the fibers alternate", () =>
  Effect.gen(function*() {
    const { all, put, sql } = yield* numbers
    const undone = Effect.ignore(
      sql.within("test", Effect.yieldNow.pipe(Effect.andThen(put(-1)), Effect.andThen(Effect.fail("undone"))))
    )
    // Both begin at once. The write comes later by a few steps, and the fibers alternate after a few steps.
    const cases = Array.from({ length: 200 }, (_, n) => ({ n, steps: Math.floor(n / 8), turn: 3 + n % 8 }))
    yield* Effect.forEach(cases, ({ n, steps, turn }) => {
      const late = Array.from({ length: steps }).reduce<ReturnType<typeof put>>(
        (next) => Effect.flatMap(Effect.void, () => next),
        put(n)
      )
      return Effect.all([undone, late], { concurrency: "unbounded" }).pipe(
        Effect.provideService(References.MaxOpsBeforeYield, turn)
      )
    })
    assert.deepStrictEqual(yield* all, cases.map(({ n }) => n))
  }).pipe(Effect.scoped))

it.live("a file that is not named is refused by name", () =>
  Effect.gen(function*() {
    const cause = yield* Effect.flip(Effect.sandbox(open(undefined as never)))
    assert.deepInclude(Cause.squash(cause), {
      name: "TypeError",
      message: "filename: expected the path of a file, not undefined"
    })
  }).pipe(Effect.scoped))

it.live("a file belongs to one at a time", () =>
  Effect.gen(function*() {
    const filename = yield* newFile
    const error = yield* Effect.scoped(Effect.andThen(open(filename), Effect.flip(open(filename))))
    assert.include(error.message, filename)
    assert.include(error.message, "another process uses it")
    yield* open(filename)
  }).pipe(Effect.scoped))

it.live("a file that a newer version has changed is refused", () =>
  Effect.gen(function*() {
    const filename = yield* newFile
    yield* Effect.scoped(Effect.gen(function*() {
      const sql = yield* Effect.provide(Sqlite, yield* open(filename))
      sql.run("INSERT INTO migration (number, name) VALUES (9000, 'later')")
    }))
    const error = yield* Effect.flip(open(filename))
    assert.include(error.message, "migration 9000, later")
  }).pipe(Effect.scoped))
