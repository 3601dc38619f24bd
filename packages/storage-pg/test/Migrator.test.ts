/**
 * Which databases a version brings up to date, and which it refuses.
 */
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { newEmptyDatabase } from "../../../vitest.storages.ts"
import { migrate } from "../src/Migrator.ts"
import { statements } from "../src/migrations/statements.ts"

const table = (name: string) => statements([`CREATE TABLE ${name} (id int)`])

const first = { "0001_a": table("a") }
const third = { ...first, "0003_c": table("c") }
const all = { ...third, "0002_b": table("b") }

/** Runs on an empty database, each run on a client of its own. */
const onDatabase = Effect.gen(function*() {
  const url = yield* newEmptyDatabase
  const client = Layer.build(Layer.fresh(PgClient.layer({ url })))
  const sql = yield* Effect.provide(PgClient.PgClient, yield* client)
  return {
    sql,
    run: (...args: Parameters<typeof migrate>) =>
      Effect.scoped(Effect.flatMap(client, (context) => Effect.provide(migrate(...args), context))),
    tables: Effect.map(
      sql<{ readonly name: string }>`SELECT relname AS name FROM pg_class
        WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND length(relname) = 1 ORDER BY 1`,
      (rows) => rows.map(({ name }) => name).join("")
    )
  }
})

it.live("migrations that the database lacks run, wherever they stand in the order, and once", () =>
  Effect.gen(function*() {
    const { run, tables } = yield* onDatabase
    yield* run(third)
    assert.strictEqual(yield* tables, "ac")
    yield* run(all)
    yield* run(all)
    assert.strictEqual(yield* tables, "abc")
  }).pipe(Effect.scoped))

it.live("processes that start together run each migration once", () =>
  Effect.gen(function*() {
    const { run, tables } = yield* onDatabase
    yield* Effect.forEach(Array.from({ length: 6 }), () => run(all), { concurrency: "unbounded", discard: true })
    assert.strictEqual(yield* tables, "abc")
  }).pipe(Effect.scoped))

it.live("a migration that fails takes the others with it, and is named", () =>
  Effect.gen(function*() {
    const { run, tables } = yield* onDatabase
    const { message } = yield* Effect.flip(run({ ...all, "0004_d": table("c") }))
    assert.match(message, /migration 0004_d: .*"c" already exists/)
    assert.strictEqual(yield* tables, "")
    yield* run(all)
    assert.strictEqual(yield* tables, "abc")
  }).pipe(Effect.scoped))

it.live("an earlier version runs beside a newer one, until the newer one needs the database for itself", () =>
  Effect.gen(function*() {
    const { run } = yield* onDatabase
    yield* run(all)
    yield* run(first)
    yield* run(all, ["0002_b"])
    yield* run(third, ["0003_c"])
    const { message } = yield* Effect.flip(run(first))
    assert.match(message, /newer version has changed it \(migration 3\), and this one knows migrations up to 1/)
  }).pipe(Effect.scoped))

it.live("the database of another program is refused", () =>
  Effect.gen(function*() {
    const { run, tables } = yield* onDatabase
    yield* run(first)
    const { message } = yield* Effect.flip(run({ "0001_x": table("x"), "0002_b": table("b") }))
    assert.match(message, /its migration 1 is "a", and here it is "x"/)
    assert.strictEqual(yield* tables, "a")
  }).pipe(Effect.scoped))

it.live("a deadlock with a server that works meanwhile ends neither", () =>
  Effect.gen(function*() {
    const { run, sql } = yield* onDatabase
    yield* run(all)
    const isWaiting = Effect.map(
      sql<{ readonly waiting: boolean }>`SELECT EXISTS (
        SELECT FROM pg_locks WHERE NOT granted AND relation = 'b'::regclass
      ) AS waiting`,
      ([row]) => row!.waiting
    )
    const migrating = yield* sql.withTransaction(Effect.gen(function*() {
      // It is the other side that notices.
      yield* sql`SET LOCAL deadlock_timeout = '10min'`
      yield* sql`INSERT INTO b VALUES (1)`
      const fiber = yield* Effect.forkChild(run({
        ...all,
        "0004_d": statements(["ALTER TABLE a ADD more int", "ALTER TABLE b ADD more int"])
      }))
      yield* Effect.repeat(isWaiting, { until: (waiting) => waiting })
      yield* sql`INSERT INTO a VALUES (1)`
      return fiber
    }))
    yield* Fiber.join(migrating)
    assert.deepStrictEqual(yield* sql`SELECT a.more, b.more AS other FROM a, b`, [{ more: null, other: null }])
  }).pipe(Effect.scoped))
