import {
  type ActionDraft,
  type ConditionDraft,
  defaultProjectId,
  Devices,
  Products,
  type SceneDraft,
  Scenes,
  ThingModels
} from "@device-cloud/core"
import { CloudState, TestCloud } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import {
  createScene,
  executionsOf,
  hot,
  lamp,
  newScene,
  received,
  runScene,
  set,
  settle,
  statusesOf
} from "./SceneFixtures.ts"

it.layer(TestCloud.layer, { excludeTestServices: true })("what a scene does", (it) => {
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
      const ofFirst: ConditionDraft = {
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
      const events = yield* CloudState.follow(defaultProjectId)
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
        reason: "It has run 100 times in 10 seconds, and is paused for 60 seconds"
      })
      const paused = yield* events.pipe(
        Stream.filter((published) =>
          published._tag === "SceneExecuted" && published.status === "paused"
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
      const condition = (of: typeof gone): ConditionDraft => ({
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
          properties: [
            { id: "level", name: "Level", accessMode: "rw", dataType: { type: "int", min: 0, max: 9 } },
            {
              id: "place",
              name: "Place",
              accessMode: "rw",
              dataType: {
                type: "struct",
                specs: [{ id: "floor", name: "Floor", dataType: { type: "int", min: 0, max: 9 } }]
              }
            }
          ],
          services: [{
            id: "reset",
            name: "Reset",
            callType: "async",
            inputData: [{ id: "delay", name: "Delay", dataType: { type: "int", min: 0, max: 60 } }],
            outputData: []
          }]
        })
      )
      const call = (items: ActionDraft["params"]["items"]): ActionDraft => ({
        URI: "action/device/service",
        params: { device_id: device.deviceId, service_id: "reset", items }
      })
      const refused = yield* Effect.flip(createScene({
        actions: [call({ delay: 99 }), set(device, { level: 10, "a/b": 1, place: { floor: 10 } })]
      }))
      assert.deepStrictEqual(
        refused._tag === "InvalidInput" &&
          refused.issues.map(({ message, path }) => `${path.slice(3).join(" ")}: ${message}`),
        [
          "items delay: expected a whole number from 0 to 60",
          "items level: expected a whole number from 0 to 9",
          "items a/b: the thing model has no such property",
          "items place floor: expected a whole number from 0 to 9"
        ]
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

  it.effect("a delay puts off the actions after it", () =>
    Effect.gen(function*() {
      const { connected, device } = yield* lamp
      const delay = (seconds: number): ActionDraft => ({ URI: "action/delay", params: { seconds } })
      const refused = yield* Effect.flip(createScene({ actions: [delay(43_200), delay(1), delay(0)] }))
      assert.deepStrictEqual(
        refused._tag === "InvalidInput" && refused.issues.map(({ path }) => path.join(".")),
        ["actions.2.params.seconds"]
      )
      const tooLong = yield* Effect.flip(createScene({ actions: [delay(43_200), set(device, {}), delay(1)] }))
      assert.strictEqual(tooLong._tag, "InvalidInput")
      const sceneId = yield* newScene({
        actions: [set(device, { fan: 1 }), delay(30), set(device, { fan: 2 }), delay(60), set(device, { fan: 3 })]
      })
      yield* (yield* Scenes).run(defaultProjectId, sceneId)
      yield* settle
      assert.deepStrictEqual(yield* received(connected), [{ fan: 1 }])
      assert.deepStrictEqual(yield* statusesOf(sceneId), ["running"])
      yield* TestClock.adjust("27 seconds")
      assert.deepStrictEqual(yield* received(connected), [])
      yield* TestClock.adjust("4 seconds")
      yield* settle
      assert.deepStrictEqual(yield* received(connected), [{ fan: 2 }])
      yield* TestClock.adjust("61 seconds")
      yield* settle
      assert.deepStrictEqual(yield* received(connected), [{ fan: 3 }])
      assert.deepStrictEqual(yield* statusesOf(sceneId), ["succeeded"])
    }))

  it.effect("a scene whose product is gone can be renamed, disabled and repaired", () =>
    Effect.gen(function*() {
      const scenes = yield* Scenes
      const [gone, other] = [yield* lamp, yield* lamp]
      const draft = {
        name: "Before",
        status: "enable" as const,
        triggers: [hot(gone.product), { URI: "trigger/cron" as const, params: { cron: "0 0 7 1 1 *" } }],
        actions: [set(gone.device, { fan: 1 })]
      }
      const sceneId = yield* newScene(draft)
      yield* (yield* Devices).remove(defaultProjectId, gone.device.deviceId)
      yield* (yield* Products).remove(defaultProjectId, gone.product.productKey)
      const update = (changes: Partial<SceneDraft>) =>
        scenes.update(defaultProjectId, sceneId, { ...draft, ...changes })
      const { scene, warnings } = yield* update({ name: "After", status: "disable" })
      assert.deepStrictEqual([scene.name, scene.status, warnings], ["After", "disable", [
        `triggers.0.params.product_key: Expected a product of the project; there is no ${gone.product.productKey}`,
        `actions.0.params.device_id: Expected a device of the project; there is no ${gone.device.deviceId}`
      ]])
      // What is new has to fit.
      const refused = yield* Effect.flip(update({ actions: [set(gone.device, { fan: 2 })] }))
      assert.deepStrictEqual(
        refused._tag === "InvalidInput" && refused.issues.map(({ path }) => path.join(".")),
        ["actions.0.params.device_id"]
      )
      const repaired = yield* update({ triggers: [hot(other.product)], actions: [set(other.device, { fan: 1 })] })
      assert.deepStrictEqual(repaired.warnings, [])
      yield* other.connected.postProperties({ temperature: 31 })
      yield* settle
      assert.deepStrictEqual(yield* statusesOf(sceneId), ["succeeded"])
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

it.effect("a scene that ran too often by a clock that was ahead runs by the right one", () =>
  Effect.gen(function*() {
    const { connected, product } = yield* lamp
    const sceneId = yield* newScene({ triggers: [hot(product)], actions: [] })
    const right = yield* Clock.currentTimeMillis
    yield* TestClock.setTime(right + 3_600_000)
    for (let i = 0; i < 101; i++) {
      yield* connected.postProperties({ temperature: 45 + i % 2 })
      yield* TestClock.adjust("10 millis")
    }
    yield* settle
    assert.strictEqual((yield* executionsOf(sceneId))[0]!.status, "paused")
    yield* TestClock.setTime(right)
    yield* connected.postProperties({ temperature: 47 })
    yield* settle
    assert.strictEqual((yield* executionsOf(sceneId))[0]!.status, "succeeded")
  }).pipe(Effect.provide(TestCloud.layer)))
