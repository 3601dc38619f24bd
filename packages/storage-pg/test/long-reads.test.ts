import {
  AccessKeyStore,
  AuditStore,
  ConfigurationStore,
  DeviceId,
  DeviceStore,
  ExecutionStore,
  HistoryStore,
  JobStore,
  MeshStore,
  OtaStore,
  ProductKey,
  ProductStore,
  ProjectId,
  ProjectStore,
  SceneId,
  ThingModelStore
} from "@device-cloud/core"
import * as StoragePg from "@device-cloud/storage-pg"
import { TestKeyRing } from "@device-cloud/testing"
import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { blockedStatements, newDatabase } from "../../../vitest.storages.ts"

const projectId = ProjectId.make("none")
const productKey = ProductKey.make("none")
const page = { page: 1, pageSize: 10 }

/** Reads of many rows, each with a table that it waits for. */
const reads = [
  [
    "the history of a device",
    "history_segment",
    Effect.flatMap(
      HistoryStore,
      (store) => store.samples(DeviceId.make("d"), "p", { start: 0, end: 8.64e15, limit: 10, order: "asc" })
    )
  ],
  ["the products", "product", Effect.flatMap(ProductStore, (store) => store.list(projectId, page))],
  ["the projects", "project", Effect.flatMap(ProjectStore, (store) => store.list(page))],
  ["the access keys", "access_key", Effect.flatMap(AccessKeyStore, (store) => store.list(projectId, page))],
  ["the audit log", "audit_entry", Effect.flatMap(AuditStore, (store) => store.read(projectId, {}, { limit: 10 }))],
  ["the firmware", "firmware", Effect.flatMap(OtaStore, (store) => store.listFirmwares(projectId, {}, page))],
  [
    "the upgrade tasks",
    "ota_task",
    Effect.flatMap(OtaStore, (store) => store.listTasks(projectId, { firmwareId: 1 }, page))
  ],
  [
    "the devices of an upgrade task",
    "ota_record",
    Effect.flatMap(OtaStore, (store) => store.records(1, { rejected: "offline" }, page))
  ],
  [
    "the batches of a product",
    "device_batch",
    Effect.flatMap(DeviceStore, (store) => store.listBatches(projectId, productKey, page))
  ],
  ["the jobs", "job", Effect.flatMap(JobStore, (store) => store.list(projectId, page))],
  ["the tasks of a job", "job_task", Effect.flatMap(JobStore, (store) => store.tasks(1, undefined, page))],
  ["a job, with the counts of its tasks", "job_task", Effect.flatMap(JobStore, (store) => store.get(projectId, 1))],
  ["the jobs under way", "job_task", Effect.flatMap(JobStore, (store) => store.countUnderWay(projectId))],
  ["the mesh networks", "mesh_network", Effect.flatMap(MeshStore, (store) => store.list(projectId, page))],
  ["the nodes of a mesh network", "mesh_node", Effect.flatMap(MeshStore, (store) => store.nodes(1, page))],
  [
    "the configurations of a product",
    "configuration",
    Effect.flatMap(ConfigurationStore, (store) => store.versions({ productKey }))
  ],
  [
    "what devices know of their configuration",
    "configuration_progress",
    Effect.flatMap(ConfigurationStore, (store) => store.progress(productKey, page))
  ],
  [
    "the executions of a scene",
    "scene_execution",
    Effect.flatMap(ExecutionStore, (store) => store.executions(SceneId.make("s"), page))
  ]
] as const

const database = Layer.unwrap(
  Effect.map(
    newDatabase,
    (url) => Layer.merge(StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer)), PgClient.layer({ url }))
  )
)

layer(database, { excludeTestServices: true })("lists on PostgreSQL", (it) => {
  it.effect.each(reads)(
    "reads of many rows that take long do not hold up short statements: %s",
    ([, table, read]) =>
      Effect.gen(function*() {
        const models = yield* ThingModelStore
        const other = yield* PgClient.PgClient
        const [isLocked, mayGo] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const lock = yield* other`LOCK TABLE ${other(table)} IN ACCESS EXCLUSIVE MODE`.pipe(
          Effect.andThen(Deferred.succeed(isLocked, undefined)),
          Effect.andThen(Deferred.await(mayGo)),
          other.withTransaction,
          Effect.forkChild
        )
        yield* Deferred.await(isLocked)
        // More than all connections of short statements carry together.
        const waiting = yield* Effect.forkChild(
          Effect.all(
            Array.from({ length: 500 }, (): Effect.Effect<unknown, unknown, Effect.Services<typeof read>> => read),
            {
              concurrency: "unbounded"
            }
          )
        )
        yield* Effect.repeat(blockedStatements(other), { until: (count) => count > 0 })
        assert.strictEqual((yield* models.latest(productKey))._tag, "None")
        assert.isUndefined(waiting.pollUnsafe())
        yield* Deferred.succeed(mayGo, undefined)
        yield* Fiber.join(lock)
        assert.lengthOf(yield* Fiber.join(waiting), 500)
      })
  )
})
