import {
  type ConditionDraft,
  defaultProjectId,
  Devices,
  Scenes,
  SceneStore,
  type TriggerDraft
} from "@device-cloud/core"
import { Fixtures, SimulatedDevice, TestCloud } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { cloudWith } from "./FaultyCloud.ts"
import {
  createScene,
  cron,
  executionsOf,
  hot,
  lamp,
  newScene,
  received,
  set,
  settle,
  statusesOf
} from "./SceneFixtures.ts"

it.layer(TestCloud.layer, { excludeTestServices: true })("what fires a scene", (it) => {
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

  it.effect("a value of a device whose clock is ahead fires a scene", () =>
    Effect.gen(function*() {
      const { connected, product } = yield* lamp
      const sceneId = yield* newScene({ triggers: [hot(product)] })
      const time = (yield* Clock.currentTimeMillis) + 60_000
      yield* connected.postProperties({ temperature: { value: 40, time } })
      yield* settle
      assert.deepStrictEqual(
        (yield* executionsOf(sceneId)).map(({ verdict }) => verdict!.triggers[0]!.value),
        [40]
      )
    }))

  it.effect("values of several properties that come again in a message are changes with what was before each", () =>
    Effect.gen(function*() {
      const { connected, product } = yield* lamp
      const sceneId = yield* newScene({ triggers: [hot(product)] })
      const [first, second, third] = [{ time: 1 }, { time: 2 }, { time: 3 }]
      yield* connected.send("thing.event.property.batch.post", {
        properties: {
          fan: [{ value: 1, ...first }, { value: 1, ...second }, { value: 2, ...third }],
          temperature: [{ value: 10, ...first }, { value: 40, ...second }, { value: 45, ...third }]
        }
      })
      yield* settle
      const changes = (yield* executionsOf(sceneId)).map(({ event }) =>
        event._tag === "PropertiesChanged" ? event.properties : undefined
      )
      assert.deepStrictEqual(changes.toReversed(), [
        { fan: { value: 2, ...third, previous: 1 }, temperature: { value: 40, ...second, previous: 10 } },
        { temperature: { value: 45, ...third, previous: 40 } }
      ])
    }))

  it.effect("an event fires a scene, with a comparison of one of its outputs", () =>
    Effect.gen(function*() {
      const { connected, product } = yield* lamp
      const trigger = (params: object): TriggerDraft => ({
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
      const trigger = (status: "online" | "offline" | "*"): TriggerDraft => ({
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
      const conditions: ReadonlyArray<ConditionDraft> = [
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

  it.effect("a status that lasts fires a scene once; one that ends before its time does not", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const { device, product, ...first } = yield* lamp
      const lasting = (status: "online" | "offline", minutes: number): TriggerDraft => ({
        URI: "trigger/device/status",
        params: { product_key: product.productKey, device_name: "*", status, status_duration: minutes }
      })
      const offline = yield* newScene({ triggers: [lasting("offline", 10), lasting("offline", 30)] })
      const online = yield* newScene({ triggers: [lasting("online", 5)] })
      yield* first.connected.disconnect
      yield* TestClock.adjust("9 minutes")
      const again = yield* cloud.connect(device)
      yield* TestClock.adjust("4 minutes")
      assert.deepStrictEqual([yield* statusesOf(offline), yield* statusesOf(online)], [[], []])
      // It is online for 5 minutes, and then offline for 10 and for 30.
      yield* TestClock.adjust("2 minutes")
      yield* settle
      assert.deepStrictEqual(yield* statusesOf(online), ["succeeded"])
      yield* again.disconnect
      yield* TestClock.adjust("11 minutes")
      yield* settle
      const [execution, ...others] = yield* executionsOf(offline)
      assert.deepStrictEqual(others, [])
      assert.deepStrictEqual(execution!.verdict!.triggers.map(({ verdict }) => verdict), ["holds", "fails"])
      assert.strictEqual(
        execution!.verdict!.triggers[0]!.reason,
        "The device was offline for 10 minutes; wanted: offline for 10 minutes"
      )
      yield* TestClock.adjust("1 hour")
      yield* settle
      assert.deepStrictEqual(yield* statusesOf(offline), ["succeeded", "succeeded"])
      assert.deepStrictEqual(yield* statusesOf(online), ["succeeded"])
      const explained = yield* (yield* Scenes).explain(defaultProjectId, online, {
        _tag: "Status",
        productKey: product.productKey,
        deviceName: device.deviceName,
        status: "online",
        minutes: 5
      })
      assert.isTrue(explained.fires)
    }))

  it.effect("for one change of a status, twenty triggers wait at most, and the twenty-first scene says so", () =>
    Effect.gen(function*() {
      const { connected, product } = yield* lamp
      const lasting = (minutes: number): TriggerDraft => ({
        URI: "trigger/device/status",
        params: { product_key: product.productKey, device_name: "*", status: "offline", status_duration: minutes }
      })
      const first = yield* newScene({ triggers: Array.from({ length: 10 }, (_, i) => lasting(i + 1)) })
      const second = yield* newScene({ triggers: Array.from({ length: 10 }, (_, i) => lasting(i + 1)) })
      yield* TestClock.adjust("1 second")
      const { scene: { sceneId }, warnings } = yield* createScene({ triggers: [lasting(1)] })
      assert.deepStrictEqual(warnings, [
        `20 triggers wait already for ${product.productKey}/* to stay offline; those of newer scenes do not fire`
      ])
      yield* connected.disconnect
      yield* TestClock.adjust("90 seconds")
      yield* settle
      assert.deepStrictEqual(
        [yield* statusesOf(first), yield* statusesOf(second), yield* statusesOf(sceneId)],
        [["succeeded"], ["succeeded"], []]
      )
    }))

  it.effect("a status that lasts needs to be named, and its device enabled", () =>
    Effect.gen(function*() {
      const { connected, device, product } = yield* lamp
      const lasting = (status: string): TriggerDraft => ({
        URI: "trigger/device/status",
        params: { product_key: product.productKey, device_name: device.deviceName, status, status_duration: 1 }
      })
      const refused = yield* Effect.flip(newScene({ triggers: [lasting("*")] }))
      assert.strictEqual(
        refused._tag === "InvalidInput" && refused.issues[0].path.join("."),
        "triggers.0.params.status"
      )
      const sceneId = yield* newScene({ triggers: [lasting("offline")] })
      yield* connected.disconnect
      yield* (yield* Devices).disable(defaultProjectId, device.deviceId)
      yield* TestClock.adjust("2 minutes")
      yield* settle
      assert.deepStrictEqual(yield* statusesOf(sceneId), [])
    }))

  it.effect("a window of time is looked at by the clocks of its zone", () =>
    Effect.gen(function*() {
      const at = yield* Clock.currentTimeMillis
      const clock = (shift: number) => new Date(at + shift * 60_000).toISOString().slice(11, 16)
      const window = (from: number, to: number, params: ConditionDraft["params"] = {}): ConditionDraft => ({
        URI: "condition/time/window",
        params: { start: clock(from), end: clock(to), ...params }
      })
      const verdictOf = (condition: ConditionDraft) =>
        Effect.gen(function*() {
          const sceneId = yield* newScene({ conditions: [condition] })
          yield* (yield* Scenes).run(defaultProjectId, sceneId)
          yield* settle
          return (yield* executionsOf(sceneId))[0]!.verdict!.conditions[0]!.verdict
        })
      const tomorrow = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"][(new Date(at).getUTCDay() + 1) % 7]!
      // Kolkata is 5:30 ahead of UTC, so its clocks show the time of the second window now.
      assert.deepStrictEqual(
        yield* Effect.forEach([
          window(-60, 60),
          window(300, 360, { time_zone: "Asia/Kolkata" }),
          window(-60, 60, { time_zone: "Asia/Kolkata" }),
          window(-1, 60, { days: [tomorrow] })
        ], verdictOf),
        ["holds", "holds", "fails", "fails"]
      )
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

  it.effect("a timer fires at the times of its own zone", () =>
    Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      const soon = new Date(now + 60_000)
      // Kolkata is 5:30 ahead of UTC.
      const there = new Date(soon.getTime() + 330 * 60_000)
      const at = `${there.getUTCSeconds()} ${there.getUTCMinutes()} ${there.getUTCHours()} * * *`
      const kolkata = yield* newScene({ triggers: [cron(at, { time_zone: "Asia/Kolkata" })] })
      const utc = yield* newScene({ triggers: [cron(at)] })
      yield* TestClock.adjust("90 seconds")
      yield* settle
      const [execution] = yield* executionsOf(kolkata)
      assert.strictEqual(execution?.verdict?.triggers[0]?.reason, "It was time in Asia/Kolkata")
      assert.strictEqual((yield* executionsOf(utc)).length, 0)
      yield* (yield* Scenes).remove(defaultProjectId, kolkata)
      yield* (yield* Scenes).remove(defaultProjectId, utc)
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
})

it.effect("a change of a scene counts after ten seconds where nobody has told of it", () =>
  Effect.gen(function*() {
    const store = yield* SceneStore
    const product = yield* Fixtures.createProduct({ validateType: "none" })
    const connected = yield* SimulatedDevice.connect(yield* Fixtures.createDevice(product))
    const sceneId = yield* newScene({ status: "disable", triggers: [hot(product)] })
    yield* connected.postProperties({ temperature: 31 })
    // A node that ends, or a request that breaks off, has stored it and told nobody.
    const [disabled] = yield* store.find([sceneId])
    yield* store.update({ ...disabled!, status: "enable", revision: disabled!.revision + 1 }, [])
    yield* TestClock.adjust("10 seconds")
    yield* connected.postProperties({ temperature: 32 })
    yield* settle
    assert.deepStrictEqual(yield* statusesOf(sceneId), ["succeeded"])
  }).pipe(Effect.provide(cloudWith())))
