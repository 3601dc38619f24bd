import {
  type DeviceFilter,
  DeviceId,
  DeviceName,
  type DeviceStatus,
  DeviceStore,
  type NewDevice,
  type Product,
  ProductKey,
  ProductStore
} from "@device-cloud/core"
import * as StoragePg from "@device-cloud/storage-pg"
import { TestKeyRing } from "@device-cloud/testing"
import { insertDevice } from "@device-cloud/testing/contracts"
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer, Option, Random } from "effect"
import { newDatabase } from "../../../vitest.storages.ts"

const epoch = Date.UTC(2026, 0, 1)
let names = 0

const newDevice = (): NewDevice => ({
  deviceId: DeviceId.make(`device-${++names}`),
  deviceName: DeviceName.make(`name-${names % 3}-${names}`),
  deviceSecret: "0123456789abcdef0123456789abcdef",
  nickname: names % 5 === 0 ? `nick-${names}` : "",
  batchId: 0,
  cloudGateway: null,
  createdAt: epoch
})

interface Row {
  readonly device_id: string
  readonly product_key: string
  readonly device_name: string
  readonly nickname: string
  readonly status: string
  readonly enabled: boolean
}

const fits = (row: Row, { enabled, keyword, productKey, status }: DeviceFilter) =>
  (productKey === undefined || row.product_key === productKey) && (status === undefined || row.status === status) &&
  (enabled === undefined || row.enabled === enabled) &&
  (keyword === undefined || row.device_name.startsWith(keyword) || row.nickname.startsWith(keyword))

it.live("pages and totals of devices are those of a plain list, whatever was created, changed and deleted", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const sql = Context.get(yield* Layer.build(PgClient.layer({ url })), PgClient.PgClient)
    yield* Effect.gen(function*() {
      const store = yield* DeviceStore
      yield* insertDevice
      const { product } = yield* insertDevice
      const { projectId } = product
      const other = yield* Effect.flatMap(
        ProductStore,
        (products) => products.insert({ ...product, productKey: ProductKey.make("other") })
      )
      assert(other !== "no-project")
      const products: ReadonlyArray<Product> = [product, other]
      const batches: Array<readonly [Product, number]> = []

      const pick = <A>(items: ReadonlyArray<A>) =>
        Effect.map(Random.nextIntBetween(0, items.length), (i) => items[Math.min(i, items.length - 1)]!)
      const some = sql`device_id IN (SELECT device_id FROM device ORDER BY random() LIMIT 9)`
      /** As if many devices had come and gone. */
      const comeAndGone = sql`SELECT setval('device_id_seq', nextval('device_id_seq') + 9000)`
      // Whatever chance deletes, devices are left far apart.
      for (const deviceId of ["kept-1", "kept-2", "kept-3"].map((id) => DeviceId.make(id))) {
        yield* store.insertMany(projectId, product.productKey, [{ ...newDevice(), deviceId }])
        yield* Effect.repeat(comeAndGone, { times: 1 })
      }
      const changes: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
        Effect.flatMap(
          pick(products),
          ({ productKey }) => store.insertMany(projectId, productKey, Array.from({ length: 12 }, newDevice))
        ),
        Effect.flatMap(pick(products), (of) =>
          Effect.map(
            store.insertBatch(
              projectId,
              of.productKey,
              { description: "", createdAt: epoch },
              Array.from({ length: 30 }, newDevice)
            ),
            (batch) => batches.push([of, Option.getOrThrow(batch).batchId])
          )),
        Effect.suspend(() => {
          const [batch] = batches.splice(0, 1)
          return batch === undefined ? Effect.void : store.removeBatch(projectId, batch[0].productKey, batch[1])
        }),
        sql`UPDATE device SET status = 'online' WHERE ${some}`,
        sql`UPDATE device SET status = 'offline' WHERE ${some}`,
        sql`UPDATE device SET enabled = NOT enabled WHERE ${some}`,
        sql`UPDATE device SET nickname = 'another' WHERE ${some}`,
        sql`DELETE FROM device WHERE ${some} AND device_id NOT LIKE 'kept-%'`,
        comeAndGone
      ]
      const filters: ReadonlyArray<DeviceFilter> = [undefined, ...products, { productKey: ProductKey.make("missing") }]
        .flatMap((of) =>
          ([undefined, "online", "offline", "unactive"] as ReadonlyArray<DeviceStatus | undefined>).flatMap((status) =>
            [undefined, true, false].flatMap((enabled) =>
              [undefined, "name-1"].map((keyword) => ({ productKey: of?.productKey, status, enabled, keyword }))
            )
          )
        )

      for (let round = 0; round < 8; round++) {
        for (let i = 0; i < 12; i++) yield* Effect.flatten(pick(changes))
        const rows = yield* sql<Row>`SELECT * FROM device WHERE project_id = ${projectId} ORDER BY id DESC`
        for (let i = 0; i < 25; i++) {
          const filter = yield* pick(filters)
          const expected = rows.filter((row) => fits(row, filter)).map(({ device_id }) => device_id)
          const pageSize = yield* Random.nextIntBetween(1, 20)
          const page = yield* Random.nextIntBetween(1, Math.ceil(expected.length / pageSize) + 1)
          const { items, total } = yield* store.list(projectId, filter, { page, pageSize })
          assert.strictEqual(total, expected.length)
          assert.deepStrictEqual(
            items.map(({ device }) => String(device.deviceId)),
            expected.slice((page - 1) * pageSize, page * pageSize)
          )
        }
      }
      const [counted] = yield* sql`SELECT count(DISTINCT block) > 2 AS spread FROM device_count WHERE devices > 0`
      assert.deepStrictEqual(counted, { spread: true })
    }).pipe(Effect.provide(Layer.fresh(StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer)))), Effect.scoped)
  }).pipe(Effect.scoped))

it.live("a search that finds very many says that there are more, and its pages lead to the end", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const sql = Context.get(yield* Layer.build(PgClient.layer({ url })), PgClient.PgClient)
    yield* Effect.gen(function*() {
      const store = yield* DeviceStore
      const { device: { projectId }, product: { productKey } } = yield* insertDevice
      yield* sql`INSERT INTO device
          (device_id, project_id, product_key, device_name, device_secret, nickname, batch_id, created_at, updated_at)
        SELECT 'many-' || i, ${projectId}, ${productKey}, 'many-' || i, '', '', 0, now(), now()
        FROM generate_series(1, 10150) AS i`
      const totals = (filter: DeviceFilter) =>
        Effect.forEach(
          [1, 100, 101, 102, 103],
          (page) =>
            Effect.map(
              store.list(projectId, filter, { page, pageSize: 100 }),
              ({ items, total }) => [total, items.length]
            )
        )
      assert.deepStrictEqual(yield* totals({ keyword: "many-" }), [
        [10_001, 100],
        [10_001, 100],
        [10_101, 100],
        [10_150, 50],
        [10_150, 0]
      ])
      assert.deepStrictEqual(yield* totals({}), [[10_151, 100], [10_151, 100], [10_151, 100], [10_151, 51], [
        10_151,
        0
      ]])
    }).pipe(Effect.provide(Layer.fresh(StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer)))), Effect.scoped)
  }).pipe(Effect.scoped))
