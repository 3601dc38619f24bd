import {
  BulkCommands,
  Commands,
  defaultProjectId,
  type Device,
  DeviceGroups,
  deviceIdentity,
  Devices,
  maxWaiting
} from "@device-cloud/core"
import { Fixtures, SimulatedDevice, TestCloud } from "@device-cloud/testing"
import { assert, layer } from "@effect/vitest"
import { Effect, Queue } from "effect"
import { TestClock } from "effect/testing"

const create = (deviceIds: ReadonlyArray<Device["deviceId"]>, params = { power: 1 }) =>
  Effect.flatMap(BulkCommands, (bulks) => bulks.create(defaultProjectId, { deviceIds, params }))

const countsOf = (bulkId: number) =>
  Effect.flatMap(BulkCommands, (bulks) => Effect.map(bulks.get(defaultProjectId, bulkId), ({ counts }) => counts))

const idsOf = (devices: ReadonlyArray<Device>) => devices.map(({ deviceId }) => deviceId)

const second = TestClock.adjust("1 second")

layer(TestCloud.layer)("bulk commands", (it) => {
  it.effect("ask so many devices of each in a second, whoever came first", () =>
    Effect.gen(function*() {
      const devices = yield* Fixtures.createDevices(260)
      const [large, small] = [yield* create(idsOf(devices)), yield* create(idsOf(devices.slice(0, 2)))]
      yield* second
      assert.deepStrictEqual(yield* countsOf(large.bulkId), { queued: 250, pending: 10 })
      assert.deepStrictEqual(yield* countsOf(small.bulkId), { queued: 2 })
      yield* second
      assert.deepStrictEqual(yield* countsOf(large.bulkId), { queued: 260 })
    }))

  it.effect("say of each device how its command has ended, or why it has none", () =>
    Effect.gen(function*() {
      const bulks = yield* BulkCommands
      const product = yield* Fixtures.createProductWithModel()
      const [answers, refuses, full, other] = [
        yield* Fixtures.createDevice(product),
        yield* Fixtures.createDevice(product),
        yield* Fixtures.createDevice(product),
        yield* Fixtures.createDevice()
      ]
      const [one, two] = [yield* SimulatedDevice.connect(answers), yield* SimulatedDevice.connect(refuses)]
      const commands = yield* Commands
      for (let i = 0; i < maxWaiting; i++) {
        yield* commands.setProperties(defaultProjectId, full.deviceId, { level: i % 10 })
      }
      const bulk = yield* create(idsOf([answers, refuses, full, other]), { power: 7 })
      yield* second
      const states = Effect.map(
        bulks.devices(defaultProjectId, bulk.bulkId, undefined, { page: 1, pageSize: 10 }),
        ({ items }) => items.map(({ code, reason, state }) => [state, code, reason])
      )
      // The product of the first three admits 0 and 1 only; the other one has no model.
      const refused = (yield* states).slice(0, 3)
      for (const [state, code, reason] of refused) {
        assert.deepStrictEqual([state, code], ["failed", null])
        assert.include(String(reason), "power")
      }
      const right = yield* create(idsOf([answers, refuses, full, other]))
      yield* second
      yield* one.answer(yield* Queue.take(one.received), 200)
      yield* two.answer(yield* Queue.take(two.received), 6200)
      yield* TestClock.adjust("10 millis")
      const after = Effect.map(
        bulks.devices(defaultProjectId, right.bulkId, undefined, { page: 1, pageSize: 10 }),
        ({ items }) => items.map(({ code, reason, state }) => [state, code, reason])
      )
      const [first, next, third, last] = yield* after
      assert.deepStrictEqual(first, ["succeeded", 200, ""])
      assert.deepStrictEqual([next![0], next![1]], ["failed", 6200])
      assert.deepStrictEqual([third![0], third![1]], ["failed", null])
      assert.isNotEmpty(third![2])
      assert.deepStrictEqual(last, ["queued", null, ""])
    }))

  it.effect("that are cancelled cancel what is queued, and nothing that devices have got", () =>
    Effect.gen(function*() {
      const bulks = yield* BulkCommands
      const [online, offline, late] = yield* Fixtures.createDevices(3)
      const device = yield* SimulatedDevice.connect(online!)
      const bulk = yield* create(idsOf([online!, offline!, late!]))
      yield* second
      yield* bulks.cancel(defaultProjectId, bulk.bulkId)
      yield* second
      yield* second
      assert.deepStrictEqual(yield* countsOf(bulk.bulkId), { acked: 1, cancelled: 2 })
      yield* device.answer(yield* Queue.take(device.received), 200)
      yield* TestClock.adjust("10 millis")
      assert.deepStrictEqual(yield* countsOf(bulk.bulkId), { succeeded: 1, cancelled: 2 })
      const back = yield* SimulatedDevice.connect(late!)
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual([...yield* Queue.clear(back.received)].filter(({ method }) => method.endsWith("set")), [])
    }))

  it.effect("to a group ask the devices that were in it, not those that come later", () =>
    Effect.gen(function*() {
      const groups = yield* DeviceGroups
      const product = yield* Fixtures.createProduct()
      const [one, two] = yield* Fixtures.createDevices(2, product)
      const { productKey } = product
      const group = yield* groups.create(defaultProjectId, { name: "All", query: { productKey, tags: { room: "a" } } })
      const devices = yield* Devices
      yield* devices.setTags(defaultProjectId, one!.deviceId, { room: "a" })
      const { bulkId, total } = yield* (yield* BulkCommands).create(defaultProjectId, {
        groupId: group.groupId,
        params: { power: 1 }
      })
      yield* devices.setTags(defaultProjectId, two!.deviceId, { room: "a" })
      yield* second
      assert.strictEqual(total, 1)
      assert.deepStrictEqual(yield* countsOf(bulkId), { queued: 1 })
      const waiting = yield* (yield* Commands).pull(
        deviceIdentity(yield* devices.get(defaultProjectId, { deviceId: two!.deviceId }))
      )
      assert.deepStrictEqual(waiting, [])
      yield* groups.remove(defaultProjectId, group.groupId)
      const unfit = yield* Effect.flip(
        (yield* BulkCommands).create(defaultProjectId, { groupId: group.groupId, params: { power: 1 } })
      )
      assert.strictEqual(unfit._tag, "DeviceGroupNotFound")
    }))
})
