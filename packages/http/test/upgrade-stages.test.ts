import { defaultProjectId, DeviceId, deviceIdentity, Devices, Upgrades } from "@device-cloud/core"
import { call, createProduct, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { storages } from "../../../vitest.storages.ts"
import {
  createTask,
  devicesOf,
  firmwareBody,
  newFirmware,
  say,
  statusesOf,
  taskOf,
  type TestDevice
} from "./UpgradeRequests.ts"

const prepare = Effect.fnUntraced(function*(count: number, body: object, firmware: object = {}) {
  const { product_key } = yield* createProduct()
  const devices = yield* devicesOf(product_key, count)
  const firmwareId = yield* newFirmware(product_key, firmware)
  const taskId = (yield* createTask(firmwareId, { scope_mode: 0, ...body })).body.data.task_id as number
  return { devices, firmwareId, productKey: product_key as string, taskId }
})

/** Which of the devices are given the firmware when they ask, by their places. */
const givenTo = Effect.fnUntraced(function*(devices: ReadonlyArray<TestDevice>) {
  const given: Array<number> = []
  for (const [place, device] of devices.entries()) {
    if ("url" in (yield* say(device, "firmware.get", {})).data) given.push(place)
  }
  return given
})

const openStage = (taskId: number, stage: unknown) =>
  Effect.map(call("PUT", `/ota/upgrade-tasks/${taskId}/stage`, { body: { stage } }), ({ body }) => body.code)

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`upgrades in stages on ${name}`, (it) => {
    it.effect("each stage waits until somebody opens it", () =>
      Effect.gen(function*() {
        const { devices, firmwareId, taskId } = yield* prepare(5, { stages: [10, 50] })
        assert.deepInclude(yield* taskOf(firmwareId, taskId), {
          stages: [10, 50, 100],
          stage: 1,
          stage_success_percent: 0
        })
        assert.deepStrictEqual(yield* givenTo(devices), [0])
        const held = devices[4]!
        assert.notProperty((yield* call("GET", `/things/${held.device_id}/upgrade`)).body.data, "url")
        const { message, reason } = (yield* call("GET", `/things/${held.device_id}/upgrade-diagnosis`)).body.data
        assert.deepStrictEqual([reason, message], [
          "awaiting-stage",
          `Task ${taskId} to version 1.1.0 is at stage 1 of 3; the device is of a later one`
        ])
        const started = yield* call("POST", `/things/${held.device_id}/upgrade`, { body: { task_id: taskId } })
        assert.strictEqual(started.body.code, 40900)
        // A device that reports progress of something else does not begin.
        yield* say(held, "progress", { step: 10 })
        assert.deepStrictEqual((yield* statusesOf(taskId)).get(held.device_id), [1, 0])

        assert.deepStrictEqual(
          yield* Effect.forEach([3, 0, 12, "2", 1.5], (stage) => openStage(taskId, stage)),
          [40900, 40001, 40001, 40001, 40001]
        )
        assert.deepStrictEqual(yield* Effect.forEach([2, 2], (stage) => openStage(taskId, stage)), [0, 0])
        assert.deepStrictEqual(yield* givenTo(devices), [0, 1, 2])
        // Of several that go on at the same moment, one does; the stage opens once.
        const codes = yield* Effect.all(Array.from({ length: 3 }, () => openStage(taskId, 3)), {
          concurrency: "unbounded"
        })
        assert.deepStrictEqual(codes, [0, 0, 0])
        assert.strictEqual((yield* taskOf(firmwareId, taskId)).stage, 3)
        assert.deepStrictEqual(yield* givenTo(devices), [0, 1, 2, 3, 4])
        assert.strictEqual(yield* openStage(taskId, 4), 40900)
        yield* call("PUT", `/ota/upgrade-tasks/${taskId}/status`)
        assert.strictEqual(yield* openStage(taskId, 3), 40900)
        assert.strictEqual(yield* openStage(0x7fffffff, 2), 40405)
      }))

    it.effect("a stage opens by itself when enough devices have succeeded", () =>
      Effect.gen(function*() {
        const body = { stages: [20, 30, 80], stage_success_percent: 50 }
        const { devices, firmwareId, taskId } = yield* prepare(5, body)
        const succeed = (place: number) => say(devices[place]!, "inform", { version: "1.1.0" })
        assert.deepStrictEqual(yield* givenTo(devices), [0])
        yield* succeed(0)
        // One of two is half of the second stage, too.
        assert.strictEqual((yield* taskOf(firmwareId, taskId)).stage, 3)
        assert.deepStrictEqual(yield* givenTo(devices), [1, 2, 3])
        yield* say(devices[1]!, "progress", { step: -1, desc: "bad flash" })
        assert.strictEqual((yield* taskOf(firmwareId, taskId)).stage, 3)
        yield* succeed(2)
        assert.strictEqual((yield* taskOf(firmwareId, taskId)).stage, 4)
        yield* succeed(3)
        yield* succeed(4)
        assert.deepInclude(yield* taskOf(firmwareId, taskId), {
          status: 2,
          summary: { pending: 0, upgrading: 0, succeeded: 4, failed: 1, cancelled: 0 }
        })
      }))

    it.effect("a stage of a task that needs confirmation needs both", () =>
      Effect.gen(function*() {
        const { devices, taskId } = yield* prepare(2, { stages: [50], need_app_confirm: true })
        yield* openStage(taskId, 2)
        assert.deepStrictEqual(yield* givenTo(devices), [])
        yield* call("PUT", `/ota/upgrade-tasks/${taskId}/confirmation`)
        assert.deepStrictEqual(yield* givenTo(devices), [0, 1])
      }))

    it.effect.each<readonly [object, string]>([
      [{ stages: [0] }, "stages[0]"],
      [{ stages: [50, 100] }, "stages[1]"],
      [{ stages: [50, 50] }, "stages"],
      [{ stages: [60, 50] }, "stages"],
      [{ stages: Array.from({ length: 11 }, (_, i) => i + 1) }, "stages"],
      [{ stage_success_percent: 50 }, "stage_success_percent"],
      [{ start_window: { start: "1:00", end: "05:00" } }, "start_window.start"],
      [{ start_window: { start: "01:00" } }, "start_window.end"],
      [{ start_window: { start: "01:00", end: "05:00", days: ["Monday"] } }, "start_window.days[0]"],
      [{ time_zone: "Mars" }, "time_zone"],
      [{ stages: [50], stage_success_percent: 0 }, "stage_success_percent"]
    ])("refuses a task with %j", ([fields, field]) =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const firmwareId = yield* newFirmware(product_key)
        const { body } = yield* createTask(firmwareId, { scope_mode: 0, ...fields })
        assert.deepStrictEqual([body.code, Object.keys(body.data.issues)], [40001, [field]])
      }))

    it.effect("a task shows its window, and hands nothing out while it is closed", () =>
      Effect.gen(function*() {
        const clockIn = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString().slice(11, 16)
        const window = { start: clockIn(2), end: clockIn(4) }
        const { devices: [device, there], firmwareId, taskId } = yield* prepare(2, { start_window: window })
        const days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
        assert.deepStrictEqual((yield* taskOf(firmwareId, taskId)).start_window, { ...window, days, time_zone: "UTC" })
        yield* call("PUT", `/things/${there!.device_id}/tags`, { body: { tags: { time_zone: "Etc/GMT-3" } } })
        // Three hours ahead of UTC.
        assert.deepStrictEqual(yield* givenTo([device!, there!]), [1])
        const { message, reason } = (yield* call("GET", `/things/${device!.device_id}/upgrade-diagnosis`)).body.data
        assert.strictEqual(reason, "window-closed")
        assert.match(message, /may begin from \d{4}-.*:00\.000Z on$/)
      }))

    it.effect("devices with an older version join a dynamic task later", () =>
      Effect.gen(function*() {
        const { devices: [first], firmwareId, productKey, taskId } = yield* prepare(1, { dynamic: true })
        assert.deepInclude(yield* taskOf(firmwareId, taskId), { dynamic: true, upgrade_type: 1, status: 0 })
        const [old, rolledBack, newer, odd] = (yield* devicesOf(productKey, 4)) as [
          TestDevice,
          TestDevice,
          TestDevice,
          TestDevice
        ]
        assert.deepStrictEqual(yield* givenTo([old]), [])
        yield* say(old, "inform", { version: "1.0.9" })
        yield* say(rolledBack, "inform", { version: "1.1.0" })
        yield* say(newer, "inform", { version: "1.10.0" })
        yield* say(odd, "inform", { version: "v1" })
        yield* say(odd, "inform", { version: "1.0.0", module: "MCU" })
        assert.deepStrictEqual(yield* givenTo([old, rolledBack, newer, odd]), [0])
        yield* say(rolledBack, "inform", { version: "1.1.0-rc.1" })
        assert.deepStrictEqual(yield* givenTo([rolledBack]), [0])
        for (const device of [first!, old, rolledBack]) yield* say(device, "inform", { version: "1.1.0" })
        // It waits for more of them.
        assert.deepInclude(yield* taskOf(firmwareId, taskId), {
          status: 1,
          summary: { pending: 0, upgrading: 0, succeeded: 3, failed: 0, cancelled: 0 }
        })
        yield* call("PUT", `/ota/upgrade-tasks/${taskId}/status`)
        const [late] = (yield* devicesOf(productKey, 1)) as [TestDevice]
        yield* say(late, "inform", { version: "1.0.0" })
        assert.deepStrictEqual(yield* givenTo([late]), [])
        const named = yield* createTask(firmwareId, { scope_mode: 1, device_ids: [late.device_id], dynamic: true })
        assert.deepStrictEqual(Object.keys(named.body.data.issues), ["dynamic"])
      }))

    it.effect("what a device has said before it joins a dynamic task is not about the task", () =>
      Effect.gen(function*() {
        const { devices: [first], productKey, taskId } = yield* prepare(1, { dynamic: true })
        const [rolledBack, failed, upgraded] = (yield* devicesOf(productKey, 3)) as [TestDevice, TestDevice, TestDevice]
        const devices = yield* Devices
        const identityOf = (device: TestDevice) =>
          Effect.map(
            devices.get(defaultProjectId, { deviceId: DeviceId.make(device.device_id) }),
            deviceIdentity
          )
        const said = { module: "default", protocol: undefined, at: yield* Clock.currentTimeMillis } as const
        const versions = Effect.fnUntraced(function*(device: TestDevice, ...versions: ReadonlyArray<string>) {
          const identity = yield* identityOf(device)
          return versions.map((version) => ({ _tag: "Inform" as const, device: identity, version, ...said }))
        })
        const failure = {
          _tag: "Progress" as const,
          device: yield* identityOf(failed),
          step: -1,
          description: "bad flash",
          ...said
        }
        // All of it is in one batch.
        yield* (yield* Upgrades).report([
          ...yield* versions(first!, "1.1.0", "1.0.0"),
          ...yield* versions(rolledBack, "1.1.0", "1.0.0"),
          failure,
          ...yield* versions(failed, "1.0.0"),
          ...yield* versions(upgraded, "1.0.0", "1.1.0")
        ])
        assert.deepStrictEqual(
          yield* statusesOf(taskId),
          new Map([
            [first!.device_id, [3, 100]],
            [rolledBack.device_id, [1, 0]],
            [failed.device_id, [1, 0]],
            [upgraded.device_id, [3, 100]]
          ])
        )
      }))

    it.effect("a report that ends an upgrade takes the device into the next dynamic task", () =>
      Effect.gen(function*() {
        const { devices: [device], productKey, taskId } = yield* prepare(1, { dynamic: true })
        const nextFirmware = yield* newFirmware(productKey, { version: "1.2.0" })
        const next = (yield* createTask(nextFirmware, { scope_mode: 0, dynamic: true })).body.data.task_id as number
        const idOf = device!.device_id
        assert.deepStrictEqual(yield* statusesOf(next), new Map())
        yield* say(device!, "inform", { version: "1.1.0" })
        assert.deepStrictEqual(yield* statusesOf(taskId), new Map([[idOf, [3, 100]]]))
        assert.deepStrictEqual(yield* statusesOf(next), new Map([[idOf, [1, 0]]]))
        assert.deepStrictEqual(yield* givenTo([device!]), [0])
        yield* say(device!, "inform", { version: "1.2.0" })
        assert.deepStrictEqual(yield* statusesOf(next), new Map([[idOf, [3, 100]]]))
      }))

    it.effect("a firmware with a SHA-256 is checked by it", () =>
      Effect.gen(function*() {
        const sha256 = "AB".repeat(32)
        const { devices: [device] } = yield* prepare(1, {}, { sha256 })
        const { data } = yield* say(device!, "firmware.get", {})
        assert.deepInclude(data, { md5: firmwareBody.hash, sign: sha256.toLowerCase(), signMethod: "SHA256" })
        const info = (yield* call("GET", `/things/${device!.device_id}/upgrade`)).body.data
        assert.deepInclude(info, { sign: firmwareBody.hash, sign_method: "md5" })
      }))
  })
}
