import { call, createProduct, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { storages } from "../../../vitest.storages.ts"
import { createTask, devicesOf, newFirmware, recordsOf, say, type TestDevice } from "./UpgradeRequests.ts"

const prepare = Effect.fnUntraced(function*(count: number, body: object = {}) {
  const { product_key } = yield* createProduct()
  const devices = yield* devicesOf(product_key, count)
  const firmwareId = yield* newFirmware(product_key)
  const taskId = (yield* createTask(firmwareId, { scope_mode: 0, ...body })).body.data.task_id as number
  return { devices, firmwareId, taskId }
})

const progressOf = (taskId: number) => Effect.map(call("GET", `/ota/tasks/${taskId}/progress`), ({ body }) => body.data)

const failuresOf = (taskId: number) => Effect.map(call("GET", `/ota/tasks/${taskId}/failures`), ({ body }) => body.data)

const none = { pending: 0, upgrading: 0, succeeded: 0, failed: 0, cancelled: 0 }

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`progress of upgrades on ${name}`, (it) => {
    it.effect("the progress of a task ends with its devices as they are now", () =>
      Effect.gen(function*() {
        const { devices, taskId } = yield* prepare(4, { retry_count: 1 })
        const [done, again, deleted] = devices as [TestDevice, TestDevice, TestDevice]
        yield* say(done, "inform", { version: "1.1.0" })
        // It tries again: it has not failed.
        yield* say(again, "progress", { step: -1, desc: "no space" })
        yield* call("DELETE", `/things/${deleted.device_id}`)
        const { from, interval, points, to } = yield* progressOf(taskId)
        assert.isTrue(from <= to)
        assert.strictEqual(interval, 10)
        assert.deepStrictEqual(points.at(-1).summary, { ...none, pending: 2, succeeded: 1, cancelled: 1 })
        assert.isTrue(points[0].time <= from && points.at(-1).time <= to)
        assert.deepStrictEqual(yield* failuresOf(taskId), { devices: 0, reasons: [] })
        yield* say(again, "progress", { step: -1, desc: "no space" })
        assert.deepStrictEqual(yield* failuresOf(taskId), {
          devices: 1,
          reasons: [{ reason: "no space", devices: 1 }]
        })
        yield* call("PUT", `/ota/upgrade-tasks/${taskId}/status`)
        const ended = yield* progressOf(taskId)
        assert.deepStrictEqual(ended.points.at(-1).summary, { ...none, succeeded: 1, failed: 1, cancelled: 2 })
        assert.deepStrictEqual(yield* progressOf(taskId), ended)
      }))

    it.effect("each reason leads to exactly the devices that have failed for it", () =>
      Effect.gen(function*() {
        const { devices, taskId } = yield* prepare(5)
        const [a, b, silent, writes] = devices as [TestDevice, TestDevice, TestDevice, TestDevice]
        const reason = "Battery < 20% & cold\n(−5 °C)"
        yield* say(a, "progress", { step: -1, desc: reason })
        yield* say(b, "progress", { step: "-1", desc: reason })
        yield* say(silent, "progress", { step: -2 })
        yield* say(writes, "progress", { step: 50, desc: reason })
        const { devices: count, reasons } = yield* failuresOf(taskId)
        assert.strictEqual(count, 3)
        assert.deepStrictEqual(reasons, [{ reason, devices: 2 }, { reason: "the download has failed", devices: 1 }])
        const idsOf = (query: string) =>
          Effect.map(
            recordsOf(taskId, query),
            ({ results, total }) => [results.map(({ device_id }: TestDevice) => device_id), total]
          )
        assert.deepStrictEqual(yield* idsOf(`?failure=${encodeURIComponent(reason)}`), [
          [b.device_id, a.device_id],
          2
        ])
        assert.deepStrictEqual(yield* idsOf("?status=2"), [[writes.device_id], 1])
        assert.deepStrictEqual(yield* idsOf("?status=4&page_size=2"), [[silent.device_id, b.device_id], 3])
        assert.deepStrictEqual(yield* idsOf("?failure=cold"), [[], 0])
        assert.strictEqual((yield* idsOf("?failure=&status="))[1], 5)
        const { message } = (yield* call("GET", `/things/${silent.device_id}/upgrade-diagnosis`)).body.data
        assert.strictEqual(message, `Task ${taskId} to version 1.1.0 has failed: the download has failed`)
        for (const query of ["?status=0", "?status=6", "?status=x"]) {
          assert.strictEqual((yield* call("GET", `/ota/upgrade-tasks/${taskId}${query}`)).body.code, 40001)
        }
      }))

    it.effect("a verify task has progress and failures, a task that is not there has none", () =>
      Effect.gen(function*() {
        const { devices, firmwareId, taskId } = yield* prepare(1)
        yield* say(devices[0]!, "inform", { version: "1.1.0" })
        const [verifies] = yield* devicesOf(devices[0]!.product_key, 1)
        const started = yield* call("POST", `/ota/firmwares/${firmwareId}/verify-task`, {
          body: { device_ids: [verifies!.device_id] }
        })
        assert.strictEqual(started.body.code, 0, started.body.message)
        const verifyTask = (yield* call("GET", `/ota/firmwares/${firmwareId}/verify-task`)).body.data.task_id
        yield* say(verifies!, "progress", { step: -4, desc: " " })
        assert.deepStrictEqual((yield* progressOf(verifyTask)).points.at(-1).summary, { ...none, failed: 1 })
        assert.deepStrictEqual((yield* failuresOf(verifyTask)).reasons, [
          { reason: "the device could not write the file", devices: 1 }
        ])
        for (const path of ["progress", "failures"]) {
          assert.strictEqual((yield* call("GET", `/ota/tasks/${taskId + 1_000_000}/${path}`)).body.code, 40405)
        }
      }))
  })
}
