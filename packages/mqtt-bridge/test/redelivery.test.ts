/**
 * Messages that the broker delivers again, in a cloud whose history follows the feed.
 */
import { DeviceCloud, HistoryFromFeed, HistoryStore, StoreError } from "@device-cloud/core"
import { BrokerLink, MqttBridge, type ShareHandler } from "@device-cloud/mqtt-bridge"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Layer, Logger } from "effect"

const away = new StoreError({ operation: "HistoryStore.samples", retryable: true, cause: "away" })

it.live.each<readonly [string, Effect.Effect<never, StoreError>]>([
  ["is away", Effect.fail(away)],
  ["says nothing", Effect.never]
])("a message that comes again does not wait for a history that %s", ([, samples]) =>
  Effect.gen(function*() {
    const opened = yield* Deferred.make<ShareHandler>()
    const replies: Array<string> = []
    const link = Layer.succeed(BrokerLink, {
      serve: (open) => Effect.flatMap(open(0), (handler) => Deferred.succeed(opened, handler)),
      isCarrying: () => true,
      nodes: () => 1,
      publish: () => Effect.succeed(true),
      send: (topic) => void replies.push(topic),
      disconnect: () => Effect.void
    })
    const history = Layer.effect(
      HistoryStore,
      Effect.map(HistoryStore, (store) => ({ ...store, samples: () => samples }))
    )
    const storage = HistoryFromFeed.layer.pipe(Layer.provideMerge(history), Layer.provideMerge(StorageMemory.layer))
    const cloud = MqttBridge.layer.pipe(
      Layer.provide(link),
      Layer.provideMerge(DeviceCloud.layer),
      Layer.provideMerge(storage),
      Layer.provideMerge(PlatformNode.layer),
      Layer.provide(Logger.layer([]))
    )
    yield* Effect.gen(function*() {
      const product = yield* Fixtures.createProduct({ validateType: "none" })
      const { deviceName } = yield* Fixtures.createDevice(product)
      const topic = `/sys/${product.productKey}/${deviceName}/thing/event/property/post`
      const settled = yield* Deferred.make<void>()
      const { message } = yield* Deferred.await(opened)
      message({
        topic,
        payload: Buffer.from(JSON.stringify({ id: "1", params: { a: { value: 1, time: 1 } } })),
        takenAt: undefined,
        isRedelivered: true,
        settle: () => Deferred.doneUnsafe(settled, Exit.void)
      })
      yield* Deferred.await(settled)
      assert.deepStrictEqual(replies, [`${topic}_reply`])
    }).pipe(Effect.provide(cloud))
  }))
