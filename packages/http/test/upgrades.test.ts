import type { ProductKey } from "@device-cloud/core"
import { DeviceCloudClient } from "@device-cloud/http"
import { eventually } from "@device-cloud/testing"
import { call, createProduct, ownerKey, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { HttpServer } from "effect/http"
import { everyStorage } from "../../../vitest.storages.ts"
import {
  createFirmware,
  createTask,
  devicesOf,
  firmwareBody,
  ids,
  newFirmware,
  recordsOf,
  say,
  statusesOf,
  taskOf,
  type TestDevice
} from "./UpgradeRequests.ts"

for (const [name, storage] of everyStorage) {
  layer(testApi(storage), { excludeTestServices: true })(`upgrades on ${name}`, (it) => {
    it.effect("a task goes through its states with its devices", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const devices = yield* devicesOf(product_key, 4)
        const [asks, fails, silent, current] = devices as [TestDevice, TestDevice, TestDevice, TestDevice]
        yield* say(current, "inform", { version: "1.1.0" })
        yield* say(asks, "inform", { version: "1.0.0", module: "default" })
        const firmwareId = yield* newFirmware(product_key)
        assert.deepStrictEqual((yield* call("GET", `/things/${asks.device_id}/upgrade`)).body.data, {})
        const { task_id } = (yield* createTask(firmwareId, { scope_mode: 0 })).body.data as { readonly task_id: number }
        assert.strictEqual((yield* call("GET", `/ota/firmwares/${firmwareId}`)).body.data.ongoing, true)
        assert.deepStrictEqual(
          [...(yield* statusesOf(task_id)).keys()].toSorted(),
          ids([asks, fails, silent]).toSorted()
        )
        assert.deepInclude(yield* taskOf(firmwareId, task_id), {
          status: 0,
          scope_mode: 0,
          upgrade_type: 1,
          upgrade_policy: 0,
          summary: { pending: 3, upgrading: 0, succeeded: 0, failed: 0, cancelled: 0 }
        })
        assert.deepStrictEqual((yield* call("GET", `/things/${asks.device_id}/upgrade`)).body.data, {
          size: 432_945,
          sign: firmwareBody.hash,
          sign_method: "md5",
          version: "1.1.0",
          url: firmwareBody.oss_path,
          module: "default",
          task_id,
          description: "Faster",
          need_app_confirm: false,
          is_app_confirmed: false
        })
        const jobs = (yield* call("GET", "/things/upgrade", { body: { device_ids: ids(devices) } })).body.data
        assert.deepStrictEqual(Object.keys(jobs.things_upgrade_job).toSorted(), ids([asks, fails, silent]).toSorted())
        const one = (yield* call("GET", `/things/upgrade?device_ids=${asks.device_id}`)).body.data
        assert.deepStrictEqual(Object.keys(one.things_upgrade_job), [asks.device_id])

        const given = yield* say(asks, "firmware.get", {})
        assert.deepInclude(given.data, { url: firmwareBody.oss_path, md5: firmwareBody.hash, signMethod: "Md5" })
        assert.deepStrictEqual((yield* statusesOf(task_id)).get(asks.device_id), [2, 0])
        assert.strictEqual((yield* taskOf(firmwareId, task_id)).status, 1)
        yield* say(asks, "progress", { step: "40", desc: "downloading" })
        assert.deepStrictEqual((yield* call("GET", `/things/${asks.device_id}/upgrade-step`)).body.data, { step: 40 })
        yield* say(asks, "progress", { step: "100", desc: "" })
        // A hundred percent are not success.
        assert.deepStrictEqual((yield* statusesOf(task_id)).get(asks.device_id), [2, 100])
        yield* say(asks, "inform", { version: "1.1.0" })
        assert.deepStrictEqual((yield* statusesOf(task_id)).get(asks.device_id), [3, 100])
        assert.deepStrictEqual((yield* call("GET", `/things/${asks.device_id}/version`)).body.data, {
          version: "1.1.0"
        })
        const { device_info } = (yield* call("GET", `/things/${asks.device_id}/detail`)).body.data
        assert.strictEqual(device_info.firmware_version, "1.1.0")
        yield* say(fails, "progress", { step: -3, desc: "bad checksum" })
        assert.deepStrictEqual((yield* statusesOf(task_id)).get(fails.device_id), [4, -1])
        const why = (yield* call("GET", `/things/${fails.device_id}/upgrade-diagnosis`)).body.data
        assert.deepInclude(why, { reason: "failed", task_id, target_version: "1.1.0" })
        assert.include(why.message, "bad checksum")
        assert.strictEqual((yield* call("DELETE", `/ota/firmwares/${firmwareId}`)).body.code, 40900)
        const cancel = (body?: object) =>
          call("PUT", `/ota/upgrade-tasks/${task_id}/things/${silent.device_id}/status`, { body })
        assert.strictEqual((yield* cancel({ action: "stop" })).body.code, 40001)
        assert.deepStrictEqual((yield* cancel({ action: "cancel" })).body.data, {})
        assert.strictEqual((yield* cancel()).body.code, 40900)
        assert.deepInclude(yield* taskOf(firmwareId, task_id), {
          status: 2,
          summary: { pending: 0, upgrading: 0, succeeded: 1, failed: 1, cancelled: 1 }
        })
        assert.strictEqual((yield* call("PUT", `/ota/upgrade-tasks/${task_id}/status`)).body.code, 40900)
        assert.strictEqual((yield* call("DELETE", `/ota/firmwares/${firmwareId}`)).body.code, 0)
        assert.strictEqual((yield* call("GET", `/ota/upgrade-tasks/${task_id}`)).body.code, 40405)
      }))

    it.effect("nothing happens before it is confirmed, of the task or of a device", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const [first, second] = (yield* devicesOf(product_key, 2)) as [TestDevice, TestDevice]
        const firmwareId = yield* newFirmware(product_key)
        const { task_id } = (yield* createTask(firmwareId, {
          scope_mode: 1,
          device_ids: ids([first, second]),
          need_app_confirm: true
        })).body.data
        const info = (device: TestDevice) =>
          Effect.map(call("GET", `/things/${device.device_id}/upgrade`), ({ body }) => body.data)
        const before = yield* info(first)
        assert.deepInclude(before, { need_app_confirm: true, is_app_confirmed: false, task_id })
        assert.notProperty(before, "url")
        assert.deepStrictEqual((yield* say(first, "firmware.get", {})).data, {})
        assert.strictEqual(
          (yield* call("POST", `/things/${first.device_id}/upgrade`, { body: { task_id } })).body.code,
          40900
        )
        const confirmation = `/ota/upgrade-tasks/${task_id}/things/${first.device_id}/confirmation`
        assert.deepStrictEqual((yield* call("PUT", confirmation)).body.data, {})
        assert.deepInclude(yield* info(first), { is_app_confirmed: true, url: firmwareBody.oss_path })
        assert.notProperty(yield* info(second), "url")
        assert.deepInclude((yield* say(first, "firmware.get", {})).data, { version: "1.1.0" })
        yield* call("PUT", `/ota/upgrade-tasks/${task_id}/confirmation`)
        assert.deepInclude(yield* info(second), { is_app_confirmed: true, url: firmwareBody.oss_path })
        assert.strictEqual((yield* taskOf(firmwareId, task_id)).is_app_confirmed, true)
        const unneeded = yield* newFirmware(product_key, { module: "MCU" })
        const free = (yield* createTask(unneeded, { scope_mode: 0 })).body.data.task_id
        assert.strictEqual((yield* call("PUT", `/ota/upgrade-tasks/${free}/confirmation`)).body.code, 40900)
      }))

    it.effect("a firmware is verified on a few devices first", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const devices = yield* devicesOf(product_key, 3)
        const firmwareId = yield* newFirmware(product_key)
        const path = `/ota/firmwares/${firmwareId}/verify-task`
        const statusOf = Effect.map(call("GET", `/ota/firmwares/${firmwareId}`), ({ body }) => body.data.status)
        assert.deepStrictEqual((yield* call("GET", path)).body.data.task_id, 0)
        const verify = (device_ids: ReadonlyArray<string>) => call("POST", path, { body: { device_ids } })
        assert.deepStrictEqual(
          (yield* verify(ids(devices).slice(0, 2))).body.data.toSorted(),
          ids(devices).slice(0, 2).toSorted()
        )
        assert.strictEqual(yield* statusOf, 1)
        assert.strictEqual((yield* verify(ids(devices).slice(2))).body.code, 40900)
        assert.strictEqual((yield* createTask(firmwareId, { scope_mode: 0 })).body.code, 40900)
        const { results, task_id, total } = (yield* call("GET", path)).body.data
        assert.deepStrictEqual([total, results.length], [2, 2])
        const decide = (result: unknown) => call("PUT", `/ota/verify-tasks/${task_id}`, { body: { result } })
        assert.strictEqual((yield* decide("yes")).body.code, 40001)
        assert.deepStrictEqual((yield* decide(false)).body.data, {})
        assert.strictEqual(yield* statusOf, 3)
        assert.strictEqual((yield* decide(true)).body.code, 40900)
        assert.strictEqual((yield* createTask(firmwareId, { scope_mode: 0 })).body.code, 40900)
        yield* verify(ids(devices))
        const again = (yield* call("GET", path)).body.data.task_id
        assert.deepStrictEqual((yield* call("DELETE", `/ota/tasks/${again}`)).body.data, {})
        assert.strictEqual(yield* statusOf, 4)
        yield* verify(ids(devices))
        yield* call("PUT", `/ota/verify-tasks/${(yield* call("GET", path)).body.data.task_id}`, {
          body: { result: true }
        })
        assert.strictEqual(yield* statusOf, 2)
        assert.strictEqual((yield* createTask(firmwareId, { scope_mode: 0 })).body.code, 0)
      }))

    it.effect("refuses tasks that cannot be, and stores nothing of them", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const stranger = (yield* devicesOf((yield* createProduct()).product_key, 1))[0]!
        const devices = yield* devicesOf(product_key, 2)
        const [device] = ids(devices)
        const firmwareId = yield* newFirmware(product_key)
        const named = (device_ids: unknown, fields: object = {}) =>
          createTask(firmwareId, { scope_mode: 1, device_ids, ...fields })
        const refusals = yield* Effect.all([
          named([]),
          named([device, device]),
          named([device, "unknown"]),
          named([device, stranger.device_id]),
          named(undefined),
          named([device], { timeout: -1 }),
          named([device], { scope_mode: 2 }),
          named([device], { maximum_per_minute: 0 }),
          call("POST", `/ota/firmwares/${firmwareId}/verify-task`, {
            body: { device_ids: Array.from({ length: 11 }, String) }
          })
        ])
        const fields = [
          "device_ids",
          "device_ids",
          "device_ids",
          "device_ids",
          "device_ids",
          "timeout",
          "scope_mode",
          "maximum_per_minute",
          "device_ids"
        ]
        assert.deepStrictEqual(
          refusals.map(({ body }) => [body.code, Object.keys(body.data.issues)[0]]),
          fields.map((field) => [40001, field])
        )
        assert.strictEqual((yield* createTask(999_999, { scope_mode: 0 })).body.code, 40404)
        const { task_id } = (yield* named([device])).body.data
        const busy = yield* named([device])
        assert.deepStrictEqual([busy.status, busy.body.code], [409, 40903])
        // By scope, it is left out.
        const rest = (yield* createTask(firmwareId, { scope_mode: 0 })).body.data.task_id
        assert.deepStrictEqual([...(yield* statusesOf(rest)).keys()], [devices[1]!.device_id])
        assert.strictEqual((yield* recordsOf(task_id)).total, 1)
        assert.strictEqual((yield* recordsOf(task_id, "?rejected_thing_status=unactive")).total, 0)
        for (const step of ["101", 1.5, "x", null]) {
          assert.deepInclude(yield* say(devices[0]!, "progress", { step }), { code: 40001 })
        }
        assert.deepStrictEqual((yield* statusesOf(task_id)).get(device!), [1, 0])
      }))

    it.effect("a device that takes too long has failed, or tries again", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const [device] = (yield* devicesOf(product_key, 1)) as [TestDevice]
        const firmwareId = yield* newFirmware(product_key)
        const { task_id } = (yield* createTask(firmwareId, { scope_mode: 0, timeout: 1 })).body.data
        yield* say(device, "firmware.get", {})
        yield* eventually(statusesOf(task_id), { until: (statuses) => statuses.get(device.device_id)![0] === 4 })
        const why = (yield* call("GET", `/things/${device.device_id}/upgrade-diagnosis`)).body.data
        assert.strictEqual(why.reason, "timed-out")
        assert.strictEqual((yield* taskOf(firmwareId, task_id)).status, 3)
        const retried =
          (yield* createTask(firmwareId, { scope_mode: 0, retry_count: 1, retry_interval: 3600 })).body.data
        yield* say(device, "progress", { step: -2, desc: "network" })
        assert.deepStrictEqual((yield* statusesOf(retried.task_id)).get(device.device_id), [1, 0])
        const later = (yield* call("GET", `/things/${device.device_id}/upgrade-diagnosis`)).body.data
        assert.strictEqual(later.reason, "retry-later")
        yield* say(device, "progress", { step: -2, desc: "network" })
        assert.deepStrictEqual((yield* statusesOf(retried.task_id)).get(device.device_id), [4, -1])
      }))

    it.effect("a device that is deleted ends its part, which stays as history", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const [device] = (yield* devicesOf(product_key, 1)) as [TestDevice]
        const firmwareId = yield* newFirmware(product_key)
        const { task_id } = (yield* createTask(firmwareId, { scope_mode: 0 })).body.data
        yield* call("DELETE", `/things/${device.device_id}`)
        const { results } = yield* recordsOf(task_id)
        assert.deepInclude(results[0], { device_id: device.device_id, device_name: device.device_name, status: 5 })
        assert.strictEqual((yield* taskOf(firmwareId, task_id)).status, 3)
      }))

    it.effect("a task that is cancelled lets those finish that have begun", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const devices = yield* devicesOf(product_key, 2)
        const [begun, waiting] = devices as [TestDevice, TestDevice]
        const firmwareId = yield* newFirmware(product_key)
        const { task_id } = (yield* createTask(firmwareId, { scope_mode: 0 })).body.data
        yield* say(begun, "firmware.get", {})
        assert.deepStrictEqual((yield* call("PUT", `/ota/upgrade-tasks/${task_id}/status`, { body: {} })).body.data, {})
        assert.deepStrictEqual(
          [...(yield* statusesOf(task_id))].toSorted(),
          [
            [begun.device_id, [2, 0]],
            [waiting.device_id, [5, 0]]
          ].toSorted() as never
        )
        yield* say(begun, "inform", { version: "1.1.0" })
        assert.deepInclude(yield* taskOf(firmwareId, task_id), {
          status: 4,
          summary: { pending: 0, upgrading: 0, succeeded: 1, failed: 0, cancelled: 1 }
        })
      }))

    it.effect("refuses what is not there, or not of this firmware", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const [device] = (yield* devicesOf(product_key, 1)) as [TestDevice]
        const [stranger] = (yield* devicesOf((yield* createProduct()).product_key, 1)) as [TestDevice]
        const firmwareId = yield* newFirmware(product_key)
        const unknown = 999_999_999
        const device_ids = [device.device_id]
        const { task_id } = (yield* createTask(firmwareId, { scope_mode: 0 })).body.data
        const answers: ReadonlyArray<readonly [number, ReturnType<typeof call>]> = [
          [40404, call("GET", `/ota/firmwares/${unknown}`)],
          [40404, call("DELETE", `/ota/firmwares/${unknown}`)],
          [40404, call("GET", `/ota/firmwares/${unknown}/verify-task`)],
          [40404, call("POST", `/ota/firmwares/${unknown}/verify-task`, { body: { device_ids } })],
          [40404, call("GET", `/ota/firmwares/${unknown}/upgrade-tasks`)],
          [40404, createTask(unknown, { scope_mode: 0 })],
          [40405, call("GET", `/ota/upgrade-tasks/${unknown}`)],
          [40405, call("DELETE", `/ota/tasks/${unknown}`)],
          [40405, call("PUT", `/ota/verify-tasks/${unknown}`, { body: { result: true } })],
          [40405, call("PUT", `/ota/verify-tasks/${task_id}`, { body: { result: true } })],
          [40405, call("PUT", `/ota/upgrade-tasks/${unknown}/status`)],
          [40405, call("PUT", `/ota/upgrade-tasks/${unknown}/confirmation`)],
          [40405, call("PUT", `/ota/upgrade-tasks/${task_id}/things/${stranger.device_id}/status`)],
          [40405, call("PUT", `/ota/upgrade-tasks/${task_id}/things/${stranger.device_id}/confirmation`)],
          [40405, call("POST", `/things/${stranger.device_id}/upgrade`, { body: { task_id } })],
          [40405, call("GET", `/things/${stranger.device_id}/upgrade-step?task_id=${task_id}`)],
          [40402, call("GET", "/things/unknown/upgrade")],
          [40402, call("POST", "/things/unknown/upgrade", { body: { task_id } })],
          [40402, call("GET", "/things/unknown/upgrade-step")],
          [40402, call("GET", "/things/unknown/version")],
          [
            40001,
            call("POST", `/ota/firmwares/${firmwareId}/verify-task`, {
              body: { device_ids: [stranger.device_id] }
            })
          ],
          [40903, call("POST", `/ota/firmwares/${firmwareId}/verify-task`, { body: { device_ids } })],
          [40900, createTask(firmwareId, { scope_mode: 0, download_protocol: "mqtt" })],
          [40001, createTask(firmwareId, { scope_mode: 0, download_protocol: "ftp" })]
        ]
        for (const [code, answer] of answers) {
          const { body } = yield* answer
          assert.strictEqual(body.code, code, JSON.stringify(body))
        }
        // Nothing has begun, and what a stranger says of it changes nothing.
        assert.strictEqual((yield* call("GET", `/ota/firmwares/${firmwareId}`)).body.data.status, 0)
        yield* say(stranger, "progress", { step: 50 })
        yield* say(device, "progress", { step: 50, module: "constructor" })
        assert.deepStrictEqual((yield* statusesOf(task_id)).get(device.device_id), [1, 0])
        for (const version of ["x".repeat(33), "x".repeat(128)]) {
          assert.strictEqual((yield* say(device, "inform", { version })).code, 0)
          assert.deepStrictEqual((yield* call("GET", `/things/${device.device_id}/version`)).body.data, { version })
        }
        assert.strictEqual((yield* say(device, "inform", { version: "x".repeat(129) })).code, 40001)
      }))

    it.effect("of tasks that want a device at the same moment, one gets it", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const devices = yield* devicesOf(product_key, 3)
        const firmwareId = yield* newFirmware(product_key)
        const body = { scope_mode: 1, device_ids: ids(devices) }
        const answers = yield* Effect.forEach(Array.from({ length: 6 }), () => createTask(firmwareId, body), {
          concurrency: "unbounded"
        })
        assert.deepStrictEqual(answers.map(({ body }) => body.code).toSorted(), [0, ...Array<number>(5).fill(40903)])
      }))

    it.effect("a cancellation and the device's success at the same moment agree on who was first", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const devices = yield* devicesOf(product_key, 8)
        const firmwareId = yield* newFirmware(product_key)
        const { task_id } = (yield* createTask(firmwareId, { scope_mode: 0 })).body.data
        const codes = yield* Effect.forEach(devices, (device) =>
          Effect.map(
            Effect.all([
              call("PUT", `/ota/upgrade-tasks/${task_id}/things/${device.device_id}/status`),
              say(device, "inform", { version: "1.1.0" })
            ], { concurrency: "unbounded" }),
            ([cancelled]) => cancelled.body.code
          ), { concurrency: "unbounded" })
        const statuses = yield* statusesOf(task_id)
        devices.forEach(({ device_id }, i) => {
          assert.strictEqual(statuses.get(device_id)![0], codes[i] === 0 ? 5 : 3)
        })
        const { summary } = yield* taskOf(firmwareId, task_id)
        assert.strictEqual(summary.succeeded + summary.cancelled, devices.length)
      }))

    it.effect("a task that is given up tries no device again", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const devices = yield* devicesOf(product_key, 4)
        const [first, second, late, waiting] = devices as [TestDevice, TestDevice, TestDevice, TestDevice]
        const firmwareId = yield* newFirmware(product_key)
        const { task_id } = (yield* createTask(firmwareId, {
          scope_mode: 0,
          retry_count: 1,
          abort_threshold_percent: 50,
          abort_min_executed: 2
        })).body.data
        yield* say(late, "progress", { step: 10 })
        for (const device of [first, second, first, second]) yield* say(device, "progress", { step: -4 })
        assert.strictEqual((yield* taskOf(firmwareId, task_id)).status, 4)
        // It has a retry left, but nobody would want it.
        yield* say(late, "progress", { step: "-10000" })
        const statuses = yield* statusesOf(task_id)
        assert.deepStrictEqual(
          [first, second, late, waiting].map(({ device_id }) => statuses.get(device_id)![0]),
          [4, 4, 4, 5]
        )
        assert.deepStrictEqual((yield* say(late, "firmware.get", {})).data, {})
      }))

    it.effect("what a device says before its upgrade is confirmed is not about this one", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const [device] = (yield* devicesOf(product_key, 1)) as [TestDevice]
        const firmwareId = yield* newFirmware(product_key)
        const { task_id } = (yield* createTask(firmwareId, { scope_mode: 0, need_app_confirm: true })).body.data
        for (const step of [50, -1]) yield* say(device, "progress", { step })
        assert.deepStrictEqual((yield* statusesOf(task_id)).get(device.device_id), [1, 0])
      }))

    it.effect("a task for nobody has failed from the start and says why; a product takes its firmware with it", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const firmwareId = yield* newFirmware(product_key)
        const { device_count, reason, task_id } =
          (yield* createTask(firmwareId, { scope_mode: 0, cloud_push: true })).body.data
        assert.strictEqual(device_count, 0)
        assert.match(reason, /^No device is left to upgrade/)
        assert.deepInclude(yield* taskOf(firmwareId, task_id), { status: 3, reason })
        assert.deepStrictEqual((yield* recordsOf(task_id)).results, [])
        assert.strictEqual((yield* call("DELETE", `/products/${product_key}`)).body.code, 0)
        assert.strictEqual((yield* call("GET", `/ota/firmwares/${firmwareId}`)).body.code, 40404)
        assert.strictEqual((yield* call("GET", `/ota/upgrade-tasks/${task_id}`)).body.code, 40405)
      }))

    it.effect("a task that has ended is deleted with its records, and not before", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const [device] = (yield* devicesOf(product_key, 1)) as [TestDevice]
        const firmwareId = yield* newFirmware(product_key)
        const { task_id } = (yield* createTask(firmwareId, { scope_mode: 0 })).body.data
        yield* say(device, "firmware.get", {})
        const remove = Effect.map(call("DELETE", `/ota/tasks/${task_id}`), ({ body }) => body.code as number)
        // The first one cancels; the device that has begun finishes.
        assert.deepStrictEqual([yield* remove, yield* remove], [0, 40900])
        yield* say(device, "inform", { version: "1.1.0" })
        assert.deepStrictEqual([yield* remove, yield* remove], [0, 40405])
        assert.strictEqual((yield* call("GET", `/ota/upgrade-tasks/${task_id}`)).body.code, 40405)
        assert.strictEqual((yield* call("GET", `/things/${device.device_id}/upgrade-step`)).body.data.step, 0)
      }))

    it.effect("the routes of upgrade tasks cancel no verification", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const [device] = (yield* devicesOf(product_key, 1)) as [TestDevice]
        const firmwareId = yield* newFirmware(product_key)
        yield* call("POST", `/ota/firmwares/${firmwareId}/verify-task`, { body: { device_ids: [device.device_id] } })
        const { task_id } = (yield* call("GET", `/ota/firmwares/${firmwareId}/verify-task`)).body.data
        for (const part of ["", `/things/${device.device_id}`]) {
          const { body } = yield* call("PUT", `/ota/upgrade-tasks/${task_id}${part}/status`, { body: {} })
          assert.strictEqual(body.code, 40405, part)
        }
        assert.strictEqual((yield* call("GET", `/ota/firmwares/${firmwareId}`)).body.data.status, 1)
        assert.strictEqual((yield* call("DELETE", `/ota/tasks/${task_id}`)).body.code, 0)
        assert.strictEqual((yield* call("GET", `/ota/firmwares/${firmwareId}`)).body.data.status, 4)
      }))

    it.effect("an empty module is the default one, wherever one is named", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const [device] = (yield* devicesOf(product_key, 1)) as [TestDevice]
        const { body } = yield* createFirmware(product_key, { module: "" })
        assert.strictEqual(body.data.module, "default")
        const { task_id } = (yield* createTask(body.data.id, { scope_mode: 0 })).body.data
        const read = (path: string) => Effect.map(call("GET", path), ({ body }) => body.data)
        const thing = `/things/${device.device_id}`
        assert.strictEqual((yield* read(`${thing}/upgrade?module=`)).task_id, task_id)
        assert.strictEqual((yield* read(`${thing}/upgrade-diagnosis?module=`)).task_id, task_id)
        const jobs = yield* read(`/things/upgrade?module=&device_ids=${device.device_id}`)
        assert.strictEqual(jobs.things_upgrade_job[device.device_id].task_id, task_id)
        yield* say(device, "progress", { step: 40, module: "" })
        assert.deepStrictEqual((yield* statusesOf(task_id)).get(device.device_id), [2, 40])
        assert.strictEqual((yield* say(device, "firmware.get", { module: "" })).data.version, "1.1.0")
        yield* say(device, "inform", { version: "1.1.0", module: "" })
        assert.deepStrictEqual((yield* statusesOf(task_id)).get(device.device_id), [3, 100])
        assert.strictEqual((yield* read(`${thing}/version?module=`)).version, "1.1.0")
      }))

    it.effect("an upgrade that has ended is told of its module, also after one of another module", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const [device] = (yield* devicesOf(product_key, 1)) as [TestDevice]
        const endedTask = Effect.fnUntraced(function*(fields: object) {
          const { id } = (yield* createFirmware(product_key, fields)).body.data
          const { task_id } = (yield* createTask(id, { scope_mode: 0 })).body.data
          assert.strictEqual((yield* call("DELETE", `/ota/tasks/${task_id}`)).body.code, 0)
          return task_id
        })
        const task_id = yield* endedTask({})
        yield* endedTask({ module: "MCU" })
        const { data } = (yield* call("GET", `/things/${device.device_id}/upgrade-diagnosis`)).body
        assert.deepInclude(data, { reason: "cancelled", task_id })
      }))

    it.effect("the typed client has names where the API has numbers", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const [device] = (yield* devicesOf(product_key, 1)) as [TestDevice]
        const baseUrl = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
        yield* Effect.gen(function*() {
          const { ota } = yield* DeviceCloudClient
          const { data: firmware } = yield* ota.createFirmware({
            params: { product_key: product_key as ProductKey },
            payload: { ...firmwareBody, algorithms: "md5" }
          })
          assert.deepInclude(firmware, { algorithms: "md5", status: "unverified" })
          const params = { firmware_id: firmware.id }
          const { data: { task_id } } = yield* ota.createUpgradeTask({ params, payload: { scope_mode: "all" } })
          yield* say(device, "progress", { step: 10 })
          const { data: pending } = yield* ota.listUpgradeTasks({ params, query: { status: "pending" } })
          assert.deepStrictEqual(pending.results, [])
          const { data: { results: [task] } } = yield* ota.listUpgradeTasks({
            params,
            query: { status: "in-progress" }
          })
          assert.deepInclude(task, {
            task_id,
            status: "in-progress",
            scope_mode: "all",
            upgrade_type: "static",
            upgrade_policy: "pull"
          })
          const { data: { results: [record] } } = yield* ota.getUpgradeTask({ params: { task_id }, query: {} })
          assert.strictEqual(record!.status, "upgrading")
        }).pipe(Effect.provide(DeviceCloudClient.layer({ baseUrl, accessKey: Redacted.make(ownerKey) })))
        const { body } = yield* call("GET", `/ota/firmwares?product_key=${product_key}`)
        assert.deepInclude(body.data.results[0], { algorithms: 1, status: 0 })
      }))
  })
}
