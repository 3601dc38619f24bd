import {
  type ActionDocument,
  Commands,
  type ConditionDocument,
  defaultProjectId,
  type Device,
  DeviceCloud,
  Devices,
  EventBus,
  leaseMillis,
  type Product,
  Projects,
  type SceneDraft,
  type SceneId,
  Scenes,
  SceneStore,
  ThingModels,
  type TriggerDocument,
  WebhookClient
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures, type SimulatedDevice, TestCloud } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Clock, Context, Effect, Fiber, Layer, Queue, Stream } from "effect"
import { TestClock } from "effect/testing"

const hot = (product: Product, params: Partial<TriggerDocument["params"]> = {}): TriggerDocument => ({
  URI: "trigger/device/property",
  params: {
    product_key: product.productKey,
    device_name: "*",
    property_id: "temperature",
    compare_type: ">",
    compare_val: "30",
    ...params
  }
})

const cron = (expression: string): TriggerDocument => ({ URI: "trigger/cron", params: { cron: expression } })

const set = ({ deviceId }: Device, items: ActionDocument["params"]["items"]): ActionDocument => ({
  URI: "action/device/property",
  params: { device_id: deviceId, items }
})

const runScene = (sceneId: string): ActionDocument => ({ URI: "action/rule", params: { scene_id: sceneId } })

let lastName = 0

const createScene = (draft: Partial<SceneDraft>) =>
  Effect.flatMap(
    Scenes,
    (scenes) => scenes.create(defaultProjectId, { name: `Scene ${++lastName}`, status: "enable", ...draft })
  )

const newScene = (draft: Partial<SceneDraft>) => Effect.map(createScene(draft), ({ scene }) => scene.sceneId)

const executionsOf = (sceneId: SceneId) =>
  Effect.flatMap(
    Scenes,
    (scenes) =>
      Effect.map(scenes.executions(defaultProjectId, sceneId, { page: 1, pageSize: 100 }), ({ items }) => items)
  )

const statusesOf = (sceneId: SceneId) =>
  Effect.map(executionsOf(sceneId), (executions) => executions.map(({ status }) => status))

/** Lets what was fired be carried out. */
const settle = Effect.repeat(TestClock.adjust("100 millis"), { times: 15 })

const received = (device: SimulatedDevice.SimulatedDevice) =>
  Effect.map(Queue.clear(device.received), (messages) => messages.map(({ params }) => params))

const lamp = Effect.gen(function*() {
  const cloud = yield* TestCloud
  const product = yield* cloud.createProduct({ validateType: "none" })
  const device = yield* cloud.createDevice(product)
  return { product, device, connected: yield* cloud.connect(device) }
})

it.layer(TestCloud.layer, { excludeTestServices: true })("scenes", (it) => {
  it.effect("a report that changes a property fires a scene, whose actions run in order", () =>
    Effect.gen(function*() {
      const { connected, device, product } = yield* lamp
      const target = yield* lamp
      const sceneId = yield* newScene({
        triggers: [hot(product)],
        actions: [set(target.device, { fan: 1 }), set(target.device, { fan: 2 })]
      })
      yield* connected.postProperties({ temperature: 29 })
      yield* connected.postProperties({ temperature: 31 })
      // The same value again is no change.
      yield* connected.postProperties({ temperature: 31 })
      yield* settle
      assert.deepStrictEqual(yield* received(target.connected), [{ fan: 1 }, { fan: 2 }])
      const [execution, ...others] = yield* executionsOf(sceneId)
      assert.deepStrictEqual(others, [])
      assert.strictEqual(execution!.status, "succeeded")
      assert.deepInclude(execution!.verdict!.triggers[0], {
        verdict: "holds",
        value: 31,
        previous: 29,
        source: "report",
        reason: "temperature is 31; wanted: > 30"
      })
      assert.deepStrictEqual(
        execution!.outcomes.map(({ attempts, status }) => [status, attempts]),
        [["succeeded", 1], ["succeeded", 1]]
      )
      assert.strictEqual(
        execution!.event._tag === "PropertiesChanged" && execution!.event.device.deviceId,
        device.deviceId
      )
    }))

  it.effect("several values of one property in a message are a change each", () =>
    Effect.gen(function*() {
      const { connected, product } = yield* lamp
      const sceneId = yield* newScene({ triggers: [hot(product)] })
      yield* connected.send("thing.event.property.batch.post", {
        properties: { temperature: [{ value: 10, time: 1 }, { value: 40, time: 2 }, { value: 20, time: 3 }] }
      })
      // Older than what is stored.
      yield* connected.postProperties({ temperature: { value: 50, time: 1 } })
      yield* settle
      assert.deepStrictEqual(
        (yield* executionsOf(sceneId)).map(({ verdict }) => verdict!.triggers[0]!.value),
        [40]
      )
    }))

  it.effect("an event fires a scene, with a comparison of one of its outputs", () =>
    Effect.gen(function*() {
      const { connected, product } = yield* lamp
      const trigger = (params: object): TriggerDocument => ({
        URI: "trigger/device/event",
        params: { product_key: product.productKey, device_name: "*", ...params }
      })
      const any = yield* newScene({ triggers: [trigger({ event_id: "*" })] })
      const alarm = yield* newScene({
        triggers: [trigger({ event_id: "alarm", property_id: "level", compare_type: "in", compare_val: "2,3" })]
      })
      yield* connected.send("thing.event.alarm.post", { level: 1 })
      yield* connected.send("thing.event.alarm.post", { level: 3 })
      yield* connected.send("thing.event.alarm.post", { value: { level: 3 }, time: 1 })
      yield* connected.send("thing.event.other.post", {})
      yield* settle
      assert.strictEqual((yield* statusesOf(any)).length, 4)
      assert.strictEqual((yield* statusesOf(alarm)).length, 2)
    }))

  it.effect("a change of status fires a scene", () =>
    Effect.gen(function*() {
      const { connected, product } = yield* lamp
      const trigger = (status: "online" | "offline" | "*"): TriggerDocument => ({
        URI: "trigger/device/status",
        params: { product_key: product.productKey, device_name: "*", status }
      })
      const offline = yield* newScene({ triggers: [trigger("offline")] })
      const any = yield* newScene({ triggers: [trigger("*"), trigger("offline")] })
      yield* connected.disconnect
      yield* settle
      yield* (yield* TestCloud).connect(connected.device)
      yield* settle
      assert.strictEqual((yield* statusesOf(offline)).length, 1)
      assert.strictEqual((yield* statusesOf(any)).length, 2)
    }))

  it.effect("all conditions must hold; what was found is said", () =>
    Effect.gen(function*() {
      const { connected, product } = yield* lamp
      const window = yield* lamp
      const conditions: ReadonlyArray<ConditionDocument> = [
        {
          URI: "condition/device/property",
          params: {
            product_key: window.product.productKey,
            device_name: window.device.deviceName,
            property_id: "open",
            compare_type: "==",
            compare_val: "0"
          }
        },
        {
          URI: "condition/device/status",
          params: { product_key: product.productKey, device_name: "*", status: "online" }
        }
      ]
      const sceneId = yield* newScene({ triggers: [hot(product)], conditions })
      yield* connected.postProperties({ temperature: 31 })
      yield* settle
      yield* window.connected.postProperties({ open: 1 })
      yield* connected.postProperties({ temperature: 32 })
      yield* settle
      yield* window.connected.postProperties({ open: 0 })
      yield* connected.postProperties({ temperature: 33 })
      yield* settle
      const executions = (yield* executionsOf(sceneId)).toReversed()
      assert.deepStrictEqual(executions.map(({ status }) => status), ["not_met", "not_met", "succeeded"])
      assert.deepStrictEqual(executions.map(({ verdict }) => verdict!.conditions[0]!.reason), [
        "The device has not reported open",
        "open is 1; wanted: == 0",
        "open is 0; wanted: == 0"
      ])
      assert.deepInclude(executions[2]!.verdict!.conditions[1], { verdict: "holds", value: "online", source: "status" })
    }))

  it.effect("a status lasts for so many minutes", () =>
    Effect.gen(function*() {
      const { connected, device, product } = yield* lamp
      const sceneId = yield* newScene({
        triggers: [cron("0 * * * * *")],
        conditions: [{
          URI: "condition/device/status",
          params: {
            product_key: product.productKey,
            device_name: device.deviceName,
            status: "offline",
            status_duration: 10
          }
        }]
      })
      yield* TestClock.adjust("90 seconds")
      yield* connected.disconnect
      for (let minute = 0; minute < 11; minute++) {
        yield* TestClock.adjust("1 minute")
      }
      const statuses = yield* statusesOf(sceneId)
      assert.strictEqual(statuses.filter((status) => status === "succeeded").length, 1, statuses.join())
      assert.strictEqual(statuses[0], "succeeded")
      yield* (yield* Scenes).remove(defaultProjectId, sceneId)
    }))

  it.effect("a timer fires at its times, in five or six fields", () =>
    Effect.gen(function*() {
      const every = yield* newScene({ triggers: [cron("*/10 * * * * *")] })
      const five = yield* newScene({ triggers: [cron("* * * * *")] })
      yield* TestClock.adjust("60 seconds")
      yield* settle
      const times = (yield* executionsOf(every)).map(({ event }) => new Date(event.at).getUTCSeconds())
      assert.deepStrictEqual(times.toSorted((a, b) => a - b), [0, 10, 20, 30, 40, 50])
      assert.strictEqual((yield* executionsOf(five)).length, 1)
      yield* (yield* Scenes).remove(defaultProjectId, every)
      yield* (yield* Scenes).remove(defaultProjectId, five)
    }))

  it.effect("enabling, disabling, changing and deleting count at once", () =>
    Effect.gen(function*() {
      const scenes = yield* Scenes
      const { connected, product } = yield* lamp
      const draft = { name: "Switched", status: "disable" as const, triggers: [hot(product)] }
      const sceneId = yield* newScene(draft)
      yield* connected.postProperties({ temperature: 31 })
      yield* scenes.setStatus(defaultProjectId, sceneId, "enable")
      yield* connected.postProperties({ temperature: 32 })
      yield* settle
      assert.strictEqual((yield* executionsOf(sceneId)).length, 1)
      yield* scenes.update(defaultProjectId, sceneId, {
        ...draft,
        status: "enable",
        triggers: [hot(product, { compare_val: "100" })]
      })
      yield* connected.postProperties({ temperature: 33 })
      yield* connected.postProperties({ temperature: 101 })
      yield* settle
      assert.strictEqual((yield* executionsOf(sceneId)).length, 2)
      yield* connected.postProperties({ temperature: 102 })
      // What was fired before it was disabled and not carried out is not carried out any more.
      yield* scenes.setStatus(defaultProjectId, sceneId, "disable")
      yield* connected.postProperties({ temperature: 103 })
      yield* settle
      assert.isAtMost((yield* executionsOf(sceneId)).length, 3)
      yield* scenes.remove(defaultProjectId, sceneId)
      assert.strictEqual((yield* Effect.flip(executionsOf(sceneId)))._tag, "SceneNotFound")
    }))

  it.effect("a scene runs by hand, also when it is disabled, whatever its conditions are", () =>
    Effect.gen(function*() {
      const { connected, device, product } = yield* lamp
      const sceneId = yield* newScene({
        status: "disable",
        conditions: [{
          URI: "condition/device/property",
          params: { product_key: product.productKey, device_name: device.deviceName, property_id: "never" }
        }],
        actions: [set(device, { fan: 1 })]
      })
      const executionId = yield* (yield* Scenes).run(defaultProjectId, sceneId)
      yield* settle
      assert.deepStrictEqual(yield* received(connected), [{ fan: 1 }])
      const [execution] = yield* executionsOf(sceneId)
      assert.deepInclude(execution, { executionId, status: "succeeded", reason: "It was run by hand" })
    }))

  it.effect("a scene runs another one if that is enabled and its conditions hold", () =>
    Effect.gen(function*() {
      const { connected, device, product } = yield* lamp
      const ofFirst: ConditionDocument = {
        URI: "condition/device/property",
        params: {
          product_key: product.productKey,
          device_name: "*",
          property_id: "temperature",
          compare_type: ">",
          compare_val: "40"
        }
      }
      const second = yield* newScene({ conditions: [ofFirst], actions: [set(device, { fan: 2 })] })
      const disabled = yield* newScene({ status: "disable", actions: [set(device, { fan: 3 })] })
      const first = yield* newScene({ triggers: [hot(product)], actions: [runScene(second), runScene(disabled)] })
      yield* connected.postProperties({ temperature: 35 })
      yield* settle
      yield* connected.postProperties({ temperature: 45 })
      yield* settle
      assert.deepStrictEqual(yield* received(connected), [{ fan: 2 }])
      assert.deepStrictEqual(yield* statusesOf(second), ["succeeded", "not_met"])
      assert.deepStrictEqual(
        (yield* executionsOf(first))[0]!.outcomes.map(({ status }) => status),
        ["succeeded", "skipped"]
      )
    }))

  it.effect("circles and long chains of scenes stop as loops", () =>
    Effect.gen(function*() {
      const scenes = yield* Scenes
      const first = yield* newScene({ name: "First" })
      const second = yield* newScene({ name: "Second", actions: [runScene(first)] })
      const { warnings } = yield* scenes.update(defaultProjectId, first, {
        name: "First",
        status: "enable",
        actions: [runScene(second)]
      })
      assert.deepStrictEqual(warnings, [
        "The scene may fire itself: First (action/rule) → Second (action/rule) → First"
      ])
      yield* scenes.run(defaultProjectId, first)
      yield* settle
      assert.deepStrictEqual(yield* statusesOf(first), ["succeeded"])
      assert.deepStrictEqual(yield* statusesOf(second), ["loop"])

      let next = yield* newScene({})
      const chain = [next]
      for (let i = 1; i < 10; i++) chain.unshift(next = yield* newScene({ actions: [runScene(next)] }))
      yield* scenes.run(defaultProjectId, next)
      yield* settle
      const statuses = yield* Effect.forEach(chain, statusesOf)
      assert.deepStrictEqual(statuses.flat(), [...Array.from({ length: 7 }, () => "succeeded"), "loop"])
    }))

  it.effect("a scene that fires itself through a device is paused, and says so", () =>
    Effect.gen(function*() {
      const scenes = yield* Scenes
      const { connected, device, product } = yield* lamp
      const { scene: { sceneId }, warnings } = yield* createScene({
        name: "Flip",
        triggers: [hot(product, { property_id: "power", compare_type: "", compare_val: "" })],
        actions: [set(device, { power: 1 })]
      })
      assert.deepStrictEqual(warnings, [`The scene may fire itself: Flip (${device.deviceName} power) → Flip`])
      const events = yield* (yield* EventBus).since()
      // The device reports another value whenever it is told one.
      let value = 0
      yield* Effect.forkScoped(
        Stream.runForEach(Stream.fromQueue(connected.received), (command) =>
          Effect.andThen(connected.answer(command, 200), connected.postProperties({ power: ++value })))
      )
      yield* connected.postProperties({ power: 0 })
      yield* Effect.repeat(TestClock.adjust("10 millis"), { times: 600 })
      const { pausedUntil } = yield* scenes.get(defaultProjectId, sceneId)
      assert.isNotNull(pausedUntil)
      assert.isAtMost(value, 101)
      const [latest] = yield* executionsOf(sceneId)
      assert.deepInclude(latest, {
        status: "paused",
        reason: "It has run 100 times in 10 seconds, and is paused for 60"
      })
      const paused = yield* events.pipe(
        Stream.filter((published) =>
          published !== "gap" && published.event._tag === "SceneExecuted" && published.event.status === "paused"
        ),
        Stream.take(1),
        Stream.runCollect,
        Effect.forkScoped
      )
      assert.strictEqual((yield* Fiber.join(paused)).length, 1)
      yield* connected.postProperties({ power: -1 })
      yield* settle
      assert.isAtMost(value, 101)
      yield* TestClock.adjust("61 seconds")
      const before = value
      yield* connected.postProperties({ power: -2 })
      yield* settle
      assert.isAbove(value, before)
      yield* scenes.remove(defaultProjectId, sceneId)
    }))

  it.effect("what is disabled or deleted is skipped and reported", () =>
    Effect.gen(function*() {
      const devices = yield* Devices
      const { connected, product } = yield* lamp
      const [gone, disabled] = [yield* lamp, yield* lamp]
      const condition = (of: typeof gone): ConditionDocument => ({
        URI: "condition/device/status",
        params: { product_key: of.product.productKey, device_name: of.device.deviceName, status: "online" }
      })
      const sceneId = yield* newScene({
        triggers: [hot(product)],
        conditions: [condition(gone), condition(disabled)],
        actions: [set(gone.device, { fan: 1 }), set(disabled.device, { fan: 1 })]
      })
      yield* devices.remove(defaultProjectId, gone.device.deviceId)
      yield* devices.disable(defaultProjectId, disabled.device.deviceId)
      yield* connected.postProperties({ temperature: 31 })
      yield* settle
      const [execution] = yield* executionsOf(sceneId)
      assert.deepStrictEqual(execution!.verdict!.conditions.map(({ verdict }) => verdict), ["skipped", "skipped"])
      assert.deepStrictEqual(execution!.outcomes.map(({ detail, status }) => [status, detail]), [
        ["skipped", `Device ${gone.device.deviceId} does not exist`],
        ["skipped", `Device ${disabled.device.deviceId} is disabled`]
      ])
    }))

  it.effect("a service is called; values are checked against the model when it is made and when it runs", () =>
    Effect.gen(function*() {
      const models = yield* ThingModels
      const { connected, device, product } = yield* lamp
      yield* models.importFrom(
        defaultProjectId,
        product.productKey,
        "metadata",
        JSON.stringify({
          properties: [{ id: "level", name: "Level", accessMode: "rw", dataType: { type: "int", min: 0, max: 9 } }],
          services: [{
            id: "reset",
            name: "Reset",
            callType: "async",
            inputData: [{ id: "delay", name: "Delay", dataType: { type: "int", min: 0, max: 60 } }],
            outputData: []
          }]
        })
      )
      const call = (items: ActionDocument["params"]["items"]): ActionDocument => ({
        URI: "action/device/service",
        params: { device_id: device.deviceId, service_id: "reset", items }
      })
      const refused = yield* Effect.flip(createScene({ actions: [call({ delay: 99 }), set(device, { level: 10 })] }))
      assert.deepStrictEqual(
        refused._tag === "InvalidInput" && refused.issues.map(({ path }) => path.join(".")),
        ["actions.0.params.items", "actions.1.params.items.level"]
      )
      const sceneId = yield* newScene({ actions: [call({ delay: 5 }), set(device, { level: 9 })] })
      yield* models.clear(defaultProjectId, product.productKey)
      yield* models.importFrom(
        defaultProjectId,
        product.productKey,
        "metadata",
        JSON.stringify({
          properties: [{ id: "level", name: "Level", accessMode: "r", dataType: { type: "int" } }]
        })
      )
      yield* (yield* Scenes).run(defaultProjectId, sceneId)
      yield* settle
      const [execution] = yield* executionsOf(sceneId)
      assert.strictEqual(execution!.status, "failed")
      assert.deepStrictEqual(execution!.outcomes.map(({ status }) => status), ["failed", "failed"])
      assert.deepStrictEqual(yield* received(connected), [])
    }))

  it.effect("explains what an event would do, without doing it", () =>
    Effect.gen(function*() {
      const scenes = yield* Scenes
      const { connected, device, product } = yield* lamp
      const sceneId = yield* newScene({ triggers: [hot(product)], actions: [set(device, { fan: 1 })] })
      const { deviceName, productKey } = device
      const explain = (temperature: number) =>
        scenes.explain(defaultProjectId, sceneId, {
          _tag: "Property",
          productKey,
          deviceName,
          properties: { temperature }
        })
      yield* connected.postProperties({ temperature: 31 })
      yield* settle
      yield* received(connected)
      assert.deepInclude(yield* explain(32), { fires: true })
      const same = yield* explain(31)
      assert.deepStrictEqual([same.fires, same.triggers[0]!.reason], [
        false,
        "The report has not changed this property"
      ])
      assert.strictEqual((yield* explain(20)).triggers[0]!.reason, "temperature is 20; wanted: > 30")
      yield* scenes.setStatus(defaultProjectId, sceneId, "disable")
      assert.deepInclude(yield* explain(32), { fires: false, reason: "The scene is disabled" })
      yield* settle
      assert.deepStrictEqual(yield* received(connected), [])
      assert.strictEqual((yield* executionsOf(sceneId)).length, 1)
    }))

  it.effect("the latest hundred executions are kept", () =>
    Effect.gen(function*() {
      const scenes = yield* Scenes
      const sceneId = yield* newScene({})
      for (let i = 0; i < 130; i++) yield* scenes.run(defaultProjectId, sceneId)
      yield* TestClock.adjust("20 seconds")
      yield* scenes.run(defaultProjectId, sceneId)
      yield* settle
      const { items, total } = yield* scenes.executions(defaultProjectId, sceneId, { page: 2, pageSize: 60 })
      assert.deepStrictEqual([items.length, total], [40, 100])
    }))
})

/** A cloud on storage that outlives it. */
const cloudOn = (stores: Context.Context<DeviceCloud.Stores>) =>
  DeviceCloud.layer.pipe(Layer.provide(Layer.succeedContext(stores)), Layer.provide(PlatformNode.layer))

it.effect("what a node has claimed and not finished is done by the next one, once", () =>
  Effect.gen(function*() {
    const stores = yield* Layer.build(StorageMemory.layer)
    const [store, now] = [Context.get(stores, SceneStore), yield* Clock.currentTimeMillis]
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
      Layer.provide(Layer.mergeAll(PlatformNode.layer, silent))
    )
    yield* Effect.gen(function*() {
      const [store, scenes, projects] = [yield* SceneStore, yield* Scenes, yield* Projects]
      const actions: ReadonlyArray<ActionDocument> = [{
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
