import {
  defaultProjectId,
  DeviceCloud,
  DeviceId,
  FeedReaderStore,
  History,
  type HistoryAddition,
  HistoryApart,
  HistoryFromFeed,
  HistoryStore
} from "@device-cloud/core"
import * as HistoryClickHouse from "@device-cloud/history-clickhouse"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { eventually, Fixtures, SimulatedDevice } from "@device-cloud/testing"
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Logger, Redacted, Scope } from "effect"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { storages } from "../../../vitest.storages.ts"
import * as ClickHouseTestServer from "./ClickHouseTestServer.ts"

const cloud = (storage: Layer.Layer<DeviceCloud.Stores, unknown>) =>
  DeviceCloud.layer.pipe(
    Layer.provideMerge(storage),
    Layer.provideMerge(PlatformNode.layer),
    Layer.provide(Logger.layer([]))
  )

const connect = Effect.gen(function*() {
  const product = yield* Fixtures.createProduct({ validateType: "none" })
  const { device, postProperties } = yield* SimulatedDevice.connect(yield* Fixtures.createDevice(product))
  return { deviceId: device.deviceId, report: (a: number) => postProperties({ a }) }
})

const values = (deviceId: DeviceId) =>
  History.use((history) =>
    Effect.map(
      history.properties(defaultProjectId, deviceId, "a", { start: 0, end: 8.64e15, limit: 1000, order: "asc" }),
      (samples) => samples.map(({ value }) => value)
    )
  )

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i)

it.live.each([[502, {}], [302, { location: "/login" }]] as const)(
  "what a proxy in front of ClickHouse answers with %i can be repeated",
  ([status, headers]) =>
    Effect.gen(function*() {
      const proxy = yield* Effect.acquireRelease(
        Effect.callback<Server>((resume) => {
          const server = createServer((request, response) => {
            request.resume().on("end", () =>
              request.url === "/login" ? response.end("Sign in") : response.writeHead(status, headers).end("<html>"))
          })
          server.listen(0, "127.0.0.1", () =>
            resume(Effect.succeed(server)))
        }),
        (server) =>
          Effect.sync(() => {
            server.close()
            server.closeAllConnections()
          })
      )
      const url = Redacted.make(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`)
      const history = yield* Effect.provide(HistoryStore, yield* Layer.build(HistoryClickHouse.layer({ url })))
      const samples = [{ propertyId: "a", time: 0, value: 1 }]
      const error = yield* Effect.flip(history.append([{ deviceId: DeviceId.make("device"), samples, events: [] }]))
      assert.isTrue(error.retryable)
      assert.include(String(error.cause), String(status))
    }).pipe(Effect.scoped)
)

describe.skipIf(!ClickHouseTestServer.isInstalled)(ClickHouseTestServer.named("ClickHouse beside the storage"), () => {
  it.live("has the history of a report before the device has its reply, as HistoryApart writes it", () =>
    Effect.gen(function*() {
      const server = yield* ClickHouseTestServer.make
      yield* server.start
      const storage = HistoryApart.layer.pipe(
        Layer.provideMerge(HistoryClickHouse.layer(server)),
        Layer.provideMerge(StorageMemory.layer)
      )
      yield* Effect.gen(function*() {
        const { deviceId, report } = yield* connect
        yield* report(0)
        assert.deepStrictEqual(yield* values(deviceId), [0])
      }).pipe(Effect.provide(cloud(storage)))
    }))

  it.live.each(
    [
      ["its disk was full", "fill", "makeRoom", [0, 1]],
      ["its password was another one", "changePassword", "admit", [0, 1]],
      ["its address was not admitted", "exclude", "admit", [0, 1]],
      ["its quota was used up", "exhaust", "admit", [0, 1]],
      ["its database was made anew", "dropDatabase", "makeDatabase", [1]]
    ] as const
  )(
    "has the values of a report that came while %s, as HistoryApart waits",
    ([, refuse, admit, expected]) =>
      Effect.gen(function*() {
        const server = yield* ClickHouseTestServer.make
        yield* server.start
        const refused = yield* Deferred.make<void>()
        const watched = Layer.effect(
          HistoryStore,
          Effect.map(HistoryStore, (store) => ({
            ...store,
            append: (additions: ReadonlyArray<HistoryAddition>) =>
              Effect.tapError(store.append(additions), () => Deferred.succeed(refused, undefined))
          }))
        )
        const storage = HistoryApart.layer.pipe(
          Layer.provideMerge(watched),
          Layer.provideMerge(HistoryClickHouse.layer(server)),
          Layer.provideMerge(StorageMemory.layer)
        )
        yield* Effect.gen(function*() {
          const { deviceId, report } = yield* connect
          yield* report(0)
          yield* server[refuse]
          const reporting = yield* Effect.forkScoped(report(1))
          yield* Deferred.await(refused)
          yield* server[admit]
          yield* Fiber.join(reporting)
          assert.deepStrictEqual(yield* values(deviceId), [...expected])
        }).pipe(Effect.provide(cloud(storage)))
      })
  )

  it.live.each(storages)(
    "has every value once though it comes late and is killed: the feed of %s",
    ([, stores]) =>
      Effect.gen(function*() {
        const server = yield* ClickHouseTestServer.make
        const storage = HistoryFromFeed.layer.pipe(
          Layer.provideMerge(HistoryClickHouse.layer(server)),
          Layer.provideMerge(stores)
        )
        yield* Effect.gen(function*() {
          const { deviceId, report } = yield* connect
          for (const value of upTo(100)) yield* report(value)
          yield* server.start
          yield* eventually(values(deviceId), { until: (found) => found.length === 100 })
          const reporting = yield* Effect.forkScoped(Effect.forEach(upTo(300), (i) => report(100 + i)))
          for (const reported of [150, 250]) {
            yield* eventually(values(deviceId), { until: (found) => found.length > reported })
            yield* server.kill
            yield* server.start
          }
          yield* Fiber.join(reporting)
          const found = yield* eventually(values(deviceId), { until: (found) => found.length >= 400 })
          assert.deepStrictEqual(found, upTo(400))
        }).pipe(Effect.provide(cloud(storage)))
      })
  )

  it.live("goes on in a database whose tables are gone", () =>
    Effect.gen(function*() {
      const server = yield* ClickHouseTestServer.make
      yield* server.start
      const storage = HistoryFromFeed.layer.pipe(
        Layer.provideMerge(HistoryClickHouse.layer(server)),
        Layer.provideMerge(StorageMemory.layer)
      )
      yield* Effect.gen(function*() {
        const { deviceId, report } = yield* connect
        yield* report(0)
        yield* eventually(values(deviceId), { until: (found) => found.length === 1 })
        yield* server.run("DROP TABLE device_history")
        yield* server.run("DROP TABLE device_history_removed")
        yield* report(1)
        const found = yield* eventually(Effect.orElseSucceed(values(deviceId), () => []), {
          until: (found) => found.length > 0
        })
        assert.deepStrictEqual(found, [1])
      }).pipe(Effect.provide(cloud(storage)))
    }))

  it.live("has every value once when the node dies between append and its place", () =>
    Effect.gen(function*() {
      const server = yield* ClickHouseTestServer.make
      yield* server.start
      const stores = yield* Layer.build(StorageMemory.layer)
      const readers = Context.get(stores, FeedReaderStore)
      const node = (readers: FeedReaderStore["Service"]) =>
        cloud(HistoryFromFeed.layer.pipe(
          Layer.provideMerge(HistoryClickHouse.layer(server)),
          Layer.provideMerge(Layer.succeedContext(Context.add(stores, FeedReaderStore, readers)))
        ))
      const dying = yield* Scope.fork(yield* Effect.scope)
      let isDying = false
      const first = yield* Layer.buildWithScope(
        node({ ...readers, advance: (options) => isDying ? Effect.never : readers.advance(options) }),
        dying
      )
      const { deviceId } = yield* Effect.gen(function*() {
        const device = yield* connect
        isDying = true
        for (const value of upTo(50)) yield* device.report(value)
        yield* eventually(values(device.deviceId), { until: (found) => found.length > 0 })
        return device
      }).pipe(Effect.provide(first))
      yield* Scope.close(dying, Exit.void)
      yield* Effect.gen(function*() {
        const { deviceId: other, report } = yield* connect
        yield* report(0)
        yield* eventually(values(other), { until: (found) => found.length === 1 })
        assert.deepStrictEqual(yield* values(deviceId), upTo(50))
      }).pipe(Effect.provide(node(readers)))
    }))
})
