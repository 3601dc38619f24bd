import { defaultProjectId, Devices, Upgrades, UpgradeTasks } from "@device-cloud/core"
import { type SimulatedDevice, TestCloud } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Clock, Effect, Queue } from "effect"
import { TestClock } from "effect/testing"
import { lamp } from "./SceneFixtures.ts"
import { createTask } from "./UpgradeFixtures.ts"

/** The time of the day so many minutes from now, by the clocks of UTC. */
const clockIn = (minutes: number) =>
  Effect.map(Clock.currentTimeMillis, (now) => new Date(now + minutes * 60_000).toISOString().slice(11, 16))

const all = { page: 1, pageSize: 10 }

/** How often the device was told since the last call. */
const told = (device: SimulatedDevice.SimulatedDevice) =>
  Effect.map(
    Queue.clear(device.received),
    (messages) => messages.filter(({ method }) => method === "thing.ota.upgrade").length
  )

const reasonOf = (deviceId: Parameters<Upgrades["Service"]["diagnose"]>[1]) =>
  Effect.flatMap(
    Upgrades,
    (upgrades) => Effect.map(upgrades.diagnose(defaultProjectId, deviceId), ({ reason }) => reason)
  )

it.layer(TestCloud.layer, { excludeTestServices: true })("windows of upgrades", (it) => {
  it.effect("a device is told when its window opens", () =>
    Effect.gen(function*() {
      const { connected, device, product } = yield* lamp
      const startWindow = { start: yield* clockIn(30), end: yield* clockIn(90) }
      yield* createTask(product, { startWindow })
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* reasonOf(device.deviceId), "window-closed")
      // It says which version it runs, and asks.
      yield* connected.send("thing.ota.inform", { version: "1.0.0" })
      assert.deepStrictEqual((yield* connected.send("thing.ota.firmware.get", {})).data, {})
      yield* TestClock.adjust("28 minutes")
      assert.strictEqual(yield* told(connected), 0)
      yield* TestClock.adjust("3 minutes")
      assert.strictEqual(yield* told(connected), 1)
      assert.strictEqual(yield* reasonOf(device.deviceId), "upgrading")
    }))

  it.effect("a device that comes while its window is closed waits for the next one", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const { connected, device, product } = yield* lamp
      yield* connected.disconnect
      const startWindow = { start: yield* clockIn(-1), end: yield* clockIn(10) }
      const opened = yield* Clock.currentTimeMillis
      const taskId = yield* createTask(product, { startWindow })
      yield* TestClock.adjust("20 minutes")
      const back = yield* cloud.connect(device)
      yield* back.send("thing.ota.inform", { version: "1.0.0" })
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* told(back), 0)
      const { items: [waiting] } = yield* (yield* UpgradeTasks).records(defaultProjectId, taskId, {}, all)
      const dueAt = waiting!.record.dueAt!
      // On the next day, to the minute; a second for the only device that waits.
      assert.isAtLeast(dueAt, opened + 86_400_000 - 120_000)
      assert.isAtMost(dueAt, opened + 86_400_000)
    }))

  it.effect("the window is that of the device, if it keeps its time zone", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const { connected, device, product } = yield* lamp
      const there = yield* cloud.createDevice(product)
      const odd = yield* cloud.createDevice(product)
      const [connectedThere, connectedOdd] = [yield* cloud.connect(there), yield* cloud.connect(odd)]
      yield* (yield* Devices).setTags(defaultProjectId, there.deviceId, { time_zone: "Asia/Kolkata" })
      yield* (yield* Devices).setTags(defaultProjectId, odd.deviceId, { time_zone: "Mars" })
      // The clocks of Kolkata show the time now.
      const startWindow = { start: yield* clockIn(5.5 * 60 - 1), end: yield* clockIn(6 * 60) }
      yield* createTask(product, { startWindow })
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(
        [yield* told(connected), yield* told(connectedThere), yield* told(connectedOdd)],
        [0, 1, 0]
      )
      assert.strictEqual(yield* reasonOf(device.deviceId), "window-closed")
      // A user may start it at any time.
      const { assignment } = yield* (yield* Upgrades).diagnose(defaultProjectId, device.deviceId)
      yield* (yield* Upgrades).start(defaultProjectId, device.deviceId, assignment!.task.taskId)
      assert.strictEqual(yield* told(connected), 1)
    }))
})
