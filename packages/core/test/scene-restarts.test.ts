import {
  type ActionDraft,
  Commands,
  defaultProjectId,
  DeviceCloud,
  ExecutionStore,
  leaseMillis,
  type ProjectId,
  Projects,
  ProjectStore,
  Scenes,
  WebhookClient,
  WebhookKeyStore,
  WebhookLimits,
  type WebhookRequest,
  WebhookSigning
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures, SimulatedDevice } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Clock, Context, Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { cloudOn, cron, hot, newScene, runScene, set, settle, statusesOf } from "./SceneFixtures.ts"

it.effect("what a node has claimed and not finished is done by the next one, once", () =>
  Effect.gen(function*() {
    const stores = yield* Layer.build(StorageMemory.layer)
    const [store, now] = [Context.get(stores, ExecutionStore), yield* Clock.currentTimeMillis]
    const origin = "execution-1.0"
    // The node ends when the device has been told, and before that is noted.
    const { device, sceneId } = yield* Effect.gen(function*() {
      const device = yield* Fixtures.createDevice(yield* Fixtures.createProduct({ validateType: "none" }))
      const sceneId = yield* newScene({ actions: [set(device, { fan: 1 }), set(device, { fan: 2 })] })
      yield* (yield* Commands).setProperties(defaultProjectId, device.deviceId, { fan: 1 }, { origin })
      return { device, sceneId }
    }).pipe(Effect.provide(cloudOn(stores)))
    yield* store.enqueue([{
      executionId: "execution-1",
      sceneId,
      projectId: defaultProjectId,
      at: now,
      event: { _tag: "RunByHand", at: now },
      chain: []
    }])
    const claimed = yield* store.claim({ now, again: now + leaseMillis, limit: 10, except: [] })
    assert.strictEqual(claimed.length, 1)

    yield* Effect.gen(function*() {
      const ledger = Effect.flatMap(Commands, (commands) =>
        Effect.map(
          commands.list(defaultProjectId, device.deviceId, { page: 1, pageSize: 10 }),
          ({ items }) => items.map(({ params }) => params).toReversed()
        ))
      yield* settle
      assert.deepStrictEqual(yield* ledger, [{ fan: 1 }])
      yield* TestClock.adjust(leaseMillis)
      yield* settle
      assert.deepStrictEqual(yield* ledger, [{ fan: 1 }, { fan: 2 }])
      assert.deepStrictEqual(yield* statusesOf(sceneId), ["succeeded"])
      // The first node wakes up too late.
      assert.deepStrictEqual(yield* store.save(claimed, 0), [false])
    }).pipe(Effect.provide(cloudOn(stores)))
  }))

it.effect("a project whose webhooks get no answer leaves room for others", () =>
  Effect.gen(function*() {
    const stores = yield* Layer.build(StorageMemory.layer)
    const silent = Layer.succeed(WebhookClient, { refuse: () => undefined, send: () => Effect.never })
    const cloud = DeviceCloud.layer.pipe(
      Layer.provide(Layer.succeedContext(stores)),
      Layer.provide(Layer.mergeAll(PlatformNode.layer, silent)),
      // Nothing is put off: they all hold their places.
      Layer.provide(Layer.succeed(WebhookLimits, { rate: 10_000, burst: 10_000, atOnce: 10_000 }))
    )
    yield* Effect.gen(function*() {
      const [store, scenes, projects] = [yield* ExecutionStore, yield* Scenes, yield* Projects]
      const actions: ReadonlyArray<ActionDraft> = [{
        URI: "action/webhook",
        params: { URL: "https://example.com/", method: "POST" }
      }]
      const at = yield* Clock.currentTimeMillis
      for (const name of ["Silent", "As silent"]) {
        const projectId = (yield* projects.create({ name })).id
        const { scene: { sceneId } } = yield* scenes.create(projectId, { name, status: "enable", actions })
        yield* store.enqueue(Array.from({ length: 600 }, (_, number) => ({
          executionId: `${projectId}${number}`,
          sceneId,
          projectId,
          at,
          event: { _tag: "RunByHand", at },
          chain: []
        })))
      }
      yield* settle
      const sceneId = yield* newScene({ actions: [runScene(yield* newScene({}))] })
      yield* scenes.run(defaultProjectId, sceneId)
      yield* settle
      assert.deepStrictEqual(yield* statusesOf(sceneId), ["succeeded"])
    }).pipe(Effect.provide(cloud), Effect.provide(stores))
  }))

it.effect("a delay and a status that lasts go on after a restart", () =>
  Effect.gen(function*() {
    const stores = yield* Layer.build(StorageMemory.layer)
    const { delayed, lasting } = yield* Effect.gen(function*() {
      const product = yield* Fixtures.createProduct({ validateType: "none" })
      const device = yield* Fixtures.createDevice(product)
      const connected = yield* SimulatedDevice.connect(device)
      const lasting = yield* newScene({
        triggers: [{
          URI: "trigger/device/status",
          params: { product_key: product.productKey, device_name: "*", status: "offline", status_duration: 10 }
        }]
      })
      const delayed = yield* newScene({
        actions: [{ URI: "action/delay", params: { seconds: 600 } }, set(device, { fan: 1 })]
      })
      yield* connected.disconnect
      yield* (yield* Scenes).run(defaultProjectId, delayed)
      yield* settle
      assert.deepStrictEqual(yield* statusesOf(delayed), ["running"])
      return { delayed, lasting }
    }).pipe(Effect.scoped, Effect.provide(Layer.merge(cloudOn(stores), PlatformNode.layer)))
    yield* TestClock.adjust("1 hour")
    yield* Effect.gen(function*() {
      yield* settle
      assert.deepStrictEqual(yield* statusesOf(lasting), ["succeeded"])
      assert.deepStrictEqual(yield* statusesOf(delayed), ["succeeded"])
    }).pipe(Effect.provide(cloudOn(stores)))
  }))

it.effect("a webhook of a project that is deleted meanwhile is not sent, and makes no key", () =>
  Effect.gen(function*() {
    const stores = yield* Layer.build(StorageMemory.layer)
    const [keys, projects] = [Context.get(stores, WebhookKeyStore), Context.get(stores, ProjectStore)]
    const asked: Array<ProjectId> = []
    // Another node deletes the project just before.
    const deleting = WebhookKeyStore.of({
      ...keys,
      get: (projectId) => {
        asked.push(projectId)
        return Effect.andThen(projects.remove(projectId), keys.get(projectId))
      }
    })
    const sent: Array<WebhookRequest> = []
    const receiver = Layer.succeed(WebhookClient, {
      refuse: () => undefined,
      send: (request) =>
        Effect.sync(() => {
          sent.push(request)
          return { status: 204, body: "" }
        })
    })
    const cloud = DeviceCloud.layer.pipe(
      Layer.provide(Layer.succeedContext(Context.add(stores, WebhookKeyStore, deleting))),
      Layer.provide(Layer.mergeAll(PlatformNode.layer, receiver))
    )
    yield* Effect.gen(function*() {
      const [scenes, signing] = [yield* Scenes, yield* WebhookSigning]
      const { id } = yield* (yield* Projects).create({ name: "Other" })
      const actions: ReadonlyArray<ActionDraft> = [{
        URI: "action/webhook",
        params: { URL: "https://example.com", method: "POST" }
      }]
      const { scene } = yield* scenes.create(id, { name: "Other", status: "enable", actions })
      yield* scenes.run(id, scene.sceneId)
      yield* settle
      assert.deepStrictEqual(asked, [id])
      assert.isEmpty(sent)
      for (const asks of [signing.keys, signing.rotate]) {
        assert.strictEqual((yield* Effect.flip(asks(id)))._tag, "ProjectNotFound")
      }
      assert.isTrue(Option.isNone(yield* keys.get(id)))
    }).pipe(Effect.provide(cloud))
  }))

it.effect("the body of a webhook is what its template makes of the event", () =>
  Effect.gen(function*() {
    const stores = yield* Layer.build(StorageMemory.layer)
    const sent: Array<WebhookRequest> = []
    const client = Layer.succeed(WebhookClient, {
      refuse: () => undefined,
      send: (request) =>
        Effect.sync(() => {
          sent.push(request)
          return { status: 200, body: "" }
        })
    })
    const cloud = DeviceCloud.layer.pipe(
      Layer.provide(Layer.succeedContext(stores)),
      Layer.provide(Layer.mergeAll(PlatformNode.layer, client))
    )
    yield* Effect.gen(function*() {
      const product = yield* Fixtures.createProduct({ validateType: "none" })
      const device = yield* Fixtures.createDevice(product)
      const connected = yield* SimulatedDevice.connect(device)
      const webhook = (body: string): ActionDraft => ({
        URI: "action/webhook",
        params: { URL: "https://example.com/", method: "POST", body }
      })
      const template = "{\"subject\":\"{{device_name}}: {{data.note}}\",\"celsius\":{{data.temperature}}}"
      const long = `[${Array.from({ length: 100 }, () => "{{data}}").join(",")}]`
      const sceneId = yield* newScene({ triggers: [hot(product)], actions: [webhook(template), webhook(long)] })
      yield* connected.postProperties({ temperature: 31, note: "\"hot\"\n", more: "x".repeat(3000) })
      yield* settle
      assert.deepStrictEqual(sent.map(({ body }) => JSON.parse(body)), [
        { subject: `${device.deviceName}: "hot"\n`, celsius: 31 }
      ])
      assert.deepStrictEqual(yield* statusesOf(sceneId), ["failed"])
      yield* (yield* Scenes).run(defaultProjectId, sceneId)
      yield* settle
      assert.deepStrictEqual(JSON.parse(sent[1]!.body), { subject: ": ", celsius: null })
    }).pipe(Effect.scoped, Effect.provide(Layer.merge(cloud, PlatformNode.layer)), Effect.provide(stores))
  }))

it.effect("times that pass while no node is there are not made up for", () =>
  Effect.gen(function*() {
    const stores = yield* Layer.build(StorageMemory.layer)
    const sceneId = yield* newScene({ triggers: [cron("*/20 * * * * *")] }).pipe(Effect.provide(cloudOn(stores)))
    yield* TestClock.adjust("1 hour")
    yield* TestClock.adjust("15 seconds")
    yield* Effect.gen(function*() {
      yield* settle
      assert.deepStrictEqual(yield* statusesOf(sceneId), [])
      yield* TestClock.adjust("20 seconds")
      yield* settle
      assert.deepStrictEqual(yield* statusesOf(sceneId), ["succeeded"])
    }).pipe(Effect.provide(cloudOn(stores)))
  }))

it.effect("a cron trigger whose time a clock which was ahead has set comes at its next time, and not twice", () =>
  Effect.gen(function*() {
    const stores = yield* Layer.build(StorageMemory.layer)
    const right = yield* Clock.currentTimeMillis
    yield* TestClock.adjust("1 day")
    const sceneId = yield* newScene({ triggers: [cron("0 * * * * *")] }).pipe(Effect.provide(cloudOn(stores)))
    yield* TestClock.setTime(right)
    yield* Effect.gen(function*() {
      for (let second = 0; second < 180; second++) yield* TestClock.adjust("1 second")
      yield* settle
      assert.deepStrictEqual(yield* statusesOf(sceneId), ["succeeded", "succeeded"])
    }).pipe(Effect.provide(cloudOn(stores)))
  }))
