import { AuditLog, defaultProjectId, DeviceCloud, ProductKey, Products } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StoragePg from "@device-cloud/storage-pg"
import { Fixtures, TestKeyRing } from "@device-cloud/testing"
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer } from "effect"
import { newDatabase } from "../../../vitest.storages.ts"

/** A cloud, and a connection of its own to its database. */
const cloud = Effect.gen(function*() {
  const url = yield* newDatabase
  const services = yield* Layer.build(
    DeviceCloud.layer.pipe(
      Layer.provide(StoragePg.layer({ url })),
      Layer.provide(TestKeyRing.layer),
      Layer.provide(PlatformNode.layer)
    )
  )
  const sql = Context.get(yield* Layer.build(PgClient.layer({ url })), PgClient.PgClient)
  const audit = Context.get(services, AuditLog)
  const products = Context.get(services, Products)
  const subject = (action: string) => ({
    projectId: defaultProjectId,
    keyId: "key",
    keyName: "Key",
    action,
    resource: { kind: "", id: "" },
    address: "",
    requestId: ""
  })
  return {
    sql,
    products,
    carryOut: <A, E>(action: string, run: Effect.Effect<A, E>) =>
      Effect.exit(audit.carryOut(subject(action), run, (exit) => Exit.isSuccess(exit) ? 0 : undefined)),
    entries: (action: string) => audit.read(defaultProjectId, { action }, { limit: 10 }),
    count: Effect.map(products.list(defaultProjectId, { page: 1, pageSize: 1 }), ({ total }) => total)
  }
})

it.live("a change whose entry cannot be stored does not happen", () =>
  Effect.gen(function*() {
    const { carryOut, count, entries, products, sql } = yield* cloud
    yield* sql`ALTER TABLE audit_entry ADD CONSTRAINT broken CHECK (action <> 'create')`
    const create = products.create(defaultProjectId, Fixtures.productDraft())
    assert.isTrue(Exit.isFailure(yield* carryOut("create", create)))
    assert.deepStrictEqual([yield* count, yield* entries("create")], [0, []])
    yield* sql`ALTER TABLE audit_entry DROP CONSTRAINT broken`
    assert.isTrue(Exit.isSuccess(yield* carryOut("create", create)))
    assert.deepStrictEqual([yield* count, (yield* entries("create")).length], [1, 1])
  }).pipe(Effect.scoped))

it.live("an entry whose change cannot be committed is not stored", () =>
  Effect.gen(function*() {
    const { carryOut, count, entries, products, sql } = yield* cloud
    // Fails when the transaction commits, after the entry was stored in it.
    yield* sql`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END'`
    yield* sql`CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON product DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION refuse()`
    const create = products.create(defaultProjectId, Fixtures.productDraft())
    assert.isTrue(Exit.isFailure(yield* carryOut("create", create)))
    assert.deepStrictEqual([yield* count, yield* entries("create")], [0, []])
  }).pipe(Effect.scoped))

it.live("a connection that is lost between a change and its entry leaves neither", () =>
  Effect.gen(function*() {
    const { carryOut, count, entries, products, sql } = yield* cloud
    yield* sql`CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql
      AS 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END'`
    yield* sql`CREATE TRIGGER cut BEFORE INSERT ON audit_entry FOR EACH ROW EXECUTE FUNCTION cut()`
    const create = products.create(defaultProjectId, Fixtures.productDraft())
    assert.isTrue(Exit.isFailure(yield* carryOut("create", create)))
    yield* sql`DROP TRIGGER cut ON audit_entry`
    assert.deepStrictEqual([yield* count, yield* entries("create")], [0, []])
  }).pipe(Effect.scoped))

it.live("a later step that fails leaves the entry of the first write, which stands", () =>
  Effect.gen(function*() {
    const { carryOut, count, entries, products } = yield* cloud
    const both = Effect.andThen(
      products.create(defaultProjectId, Fixtures.productDraft()),
      products.remove(defaultProjectId, ProductKey.make("nothing"))
    )
    assert.isTrue(Exit.isFailure(yield* carryOut("both", both)))
    assert.deepStrictEqual([yield* count, (yield* entries("both")).map(({ result }) => result)], [1, [0]])
  }).pipe(Effect.scoped))

it.live("the database refuses to change entries, and to delete those of the last day", () =>
  Effect.gen(function*() {
    const { carryOut, entries, products, sql } = yield* cloud
    yield* carryOut("create", products.create(defaultProjectId, Fixtures.productDraft()))
    const kept = yield* entries("create")
    assert.strictEqual(kept.length, 1)
    for (
      const statement of [
        sql`UPDATE audit_entry SET result = 1`,
        sql`DELETE FROM audit_entry`,
        sql`TRUNCATE audit_entry`
      ]
    ) {
      assert.isTrue(Exit.isFailure(yield* Effect.exit(statement)))
    }
    assert.deepStrictEqual(yield* entries("create"), kept)
    yield* sql`INSERT INTO audit_entry (at, project_id, key_id, key_name, action, resource_kind, resource_id, address,
        result, request_id)
      SELECT at - interval '25 hours', project_id, key_id, key_name, 'old', resource_kind, resource_id, address,
        result, request_id FROM audit_entry`
    yield* sql`DELETE FROM audit_entry WHERE action = 'old'`
    assert.deepStrictEqual([yield* entries("old"), yield* entries("create")], [[], kept])
  }).pipe(Effect.scoped))
