import { assert, layer } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { storages } from "../../../vitest.storages.ts"
import { call, createDevice, createProduct, testApi } from "./TestApi.ts"
import { type Triple, uplink } from "./HttpDevice.ts"

const firmwareBody = {
  name: "Thermostat",
  version: "1.1.0",
  oss_path: "https://cloud.example.com/firmware.bin",
  algorithms: 1,
  hash: "93230c3bde425a9d7984a594ac55ea1e",
  remark: "Faster",
  size: 432_945
}

const createFirmware = (productKey: string, body: object = {}) =>
  call("POST", `/products/${productKey}/ota/firmwares`, { body: { ...firmwareBody, ...body } })

const newFirmware = (productKey: string, body: object = {}) =>
  Effect.map(createFirmware(productKey, body), ({ body }) => body.data.id as number)

interface TestDevice extends Triple {
  readonly device_id: string
}

const devicesOf = (productKey: string, count: number) =>
  Effect.forEach(
    Array.from({ length: count }),
    () => Effect.map(createDevice(productKey), (device) => device as unknown as TestDevice)
  )

const ids = (devices: ReadonlyArray<TestDevice>) => devices.map(({ device_id }) => device_id)

/** What a device says of its upgrade, over HTTP. */
const say = (device: TestDevice, method: "inform" | "progress" | "firmware.get", params: object) =>
  Effect.map(
    uplink(device, "PostOTA", { body: { id: 1, method: `thing.ota.${method}`, params } }),
    ({ body }) => body
  )

const recordsOf = (taskId: number, query = "") =>
  Effect.map(call("GET", `/ota/upgrade-tasks/${taskId}${query}`), ({ body }) => body.data)

const statusesOf = (taskId: number) =>
  Effect.map(recordsOf(taskId, "?page_size=100"), ({ results }) =>
    new Map(
      (results as ReadonlyArray<{ readonly device_id: string; readonly status: number; readonly step: number }>)
        .map(({ device_id, status, step }) => [device_id, [status, step]])
    ))

const taskOf = (firmwareId: number, taskId: number) =>
  Effect.map(
    call("GET", `/ota/firmwares/${firmwareId}/upgrade-tasks?task_id=${taskId}`),
    ({ body }) => body.data.results[0]
  )

const createTask = (firmwareId: number, body: object) =>
  call("POST", `/ota/firmwares/${firmwareId}/upgrade-tasks`, { body })

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`upgrades on ${name}`, (it) => {
    it.effect("firmware is created, read, listed and deleted", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { body } = yield* createFirmware(product_key)
        const { created_at, id, updated_at, ...rest } = body.data
        assert.deepStrictEqual(rest, {
          ...firmwareBody,
          module: "default",
          status: 0,
          ongoing: false,
          product_key,
          product_name: "Thermometer"
        })
        assert.strictEqual(created_at, updated_at)
        assert.deepStrictEqual((yield* call("GET", `/ota/firmwares/${id}`)).body.data, body.data)
        const taken = yield* createFirmware(product_key)
        assert.deepStrictEqual([taken.status, taken.body.code], [409, 40901])
        const other = yield* newFirmware(product_key, { module: "MCU", version: "1.1.0-rc.1", name: "Modem" })
        const list = (query: string) =>
          Effect.map(call("GET", `/ota/firmwares?product_key=${product_key}${query}`), ({ body }) =>
            body.data.results.map((firmware: { readonly id: number }) => firmware.id))
        assert.deepStrictEqual(yield* list(""), [other, id])
        assert.deepStrictEqual(yield* list("&name=stat"), [id])
        assert.deepStrictEqual((yield* call("DELETE", `/ota/firmwares/${id}`)).body, {
          code: 0,
          message: "success",
          data: {}
        })
        assert.strictEqual((yield* call("DELETE", `/ota/firmwares/${id}`)).body.code, 40404)
        assert.strictEqual((yield* createFirmware("unknown")).body.code, 40401)
      }))

    it.effect.each<readonly [object, string]>([
      [{ name: "" }, "name"],
      [{ version: "1.0" }, "version"],
      [{ version: "1.0.0+5" }, "version"],
      [{ version: `1.0.0-${"x".repeat(30)}` }, "version"],
      [{ oss_path: "ftp://example.com/x" }, "oss_path"],
      [{ oss_path: "file:///etc/passwd" }, "oss_path"],
      [{ algorithms: 2 }, "algorithms"],
      [{ hash: "xyz" }, "hash"],
      [{ module: "a b" }, "module"],
      [{ size: -1 }, "size"]
    ])("refuses a firmware with %j", ([fields, field]) =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { body } = yield* createFirmware(product_key, fields)
        assert.deepStrictEqual([body.code, Object.keys(body.data.issues)], [40001, [field]])
      }))

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
        yield* Effect.repeat(statusesOf(task_id), {
          until: (statuses) => statuses.get(device.device_id)![0] === 4,
          schedule: Schedule.spaced("50 millis")
        })
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
  })
}
