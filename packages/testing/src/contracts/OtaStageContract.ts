/**
 * The laws of `OtaStore` about the stages of tasks, and about devices that join them.
 */
import { type DeviceCloud, DeviceId, OtaStore } from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import { all, changed, created, insertFirmware, newTask, prepare, recordOf, rollout } from "./OtaSamples.ts"
import { epoch, insertDevices, newDevice } from "./Samples.ts"

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`OtaStore, stages and newcomers: ${name}`, (it) => {
    it.effect("holds the devices of later stages, and opens each stage once", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware, product } = yield* prepare(5)
        const { task: { taskId } } = created(
          yield* store.createTask(newTask(firmware, { stages: [10, 50] }), { _tag: "All" }, epoch)
        )
        const mcu = yield* insertFirmware(product, { module: "MCU" })
        const sibling = created(yield* store.createTask(newTask(mcu, { stages: [10, 50] }), { _tag: "All" }, epoch))
        const ofSibling = Effect.forEach(devices, (device) => recordOf(device, sibling.task.taskId))
        const untouched = yield* ofSibling
        const records = Effect.forEach(devices, (device) => recordOf(device, taskId))
        const held = Effect.map(records, (all) => all.map(({ isHeld }) => isHeld))
        const dueAt = Effect.map(records, (all) => all.map((record) => record.dueAt))
        assert.deepStrictEqual(yield* held, [false, true, true, true, true])
        assert.deepStrictEqual(yield* dueAt, [...rollout(taskId, epoch, 1), null, null, null, null])
        assert.isTrue(Option.isNone(yield* store.openStage(taskId, 3, epoch + 5)))
        yield* store.save([changed((yield* records)[1]!, "cancelled")])
        const early = (yield* records)[2]!
        const opened = yield* Effect.forEach([0, 1, 2], () => store.openStage(taskId, 2, epoch + 5), {
          concurrency: "unbounded"
        })
        const [task, ...others] = opened.flatMap(Option.toArray)
        assert.deepStrictEqual([task?.stage, others], [2, []])
        assert.deepStrictEqual(Option.getOrThrow(yield* store.task(firmware.projectId, taskId)), task)
        assert.deepStrictEqual(yield* held, [false, true, false, true, true])
        assert.deepStrictEqual((yield* store.save([changed(early, "upgrading")])).saved, [false])
        assert.deepStrictEqual(yield* dueAt, [
          ...rollout(taskId, epoch, 1),
          null,
          ...rollout(taskId, epoch + 5, 1),
          null,
          null
        ])
        yield* store.openStage(taskId, 3, epoch + 9)
        assert.deepStrictEqual((yield* dueAt).slice(3), rollout(taskId, epoch + 9, 2))
        yield* store.endTask(taskId, "cancelled", ["pending", "upgrading"], epoch + 10)
        assert.isTrue(Option.isNone(yield* store.openStage(taskId, 4, epoch + 11)))
        assert.deepStrictEqual(yield* ofSibling, untouched)
      }))

    it.effect("opens the stages that have passed with the change that they pass by", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware } = yield* prepare(5)
        const draft = newTask(firmware, { stages: [20, 40, 80], stageSuccessPercent: 50 })
        const { task: { taskId } } = created(yield* store.createTask(draft, { _tag: "All" }, epoch))
        const records = yield* Effect.forEach(devices, (device) => recordOf(device, taskId))
        // One of two is half of the second stage, too.
        const { tasks: [task] } = yield* store.save([changed(records[0]!, "succeeded")])
        assert.strictEqual(task!.stage, 3)
        assert.deepStrictEqual(Option.getOrThrow(yield* store.task(firmware.projectId, taskId)), task)
        const open = yield* Effect.forEach(devices, (device) => recordOf(device, taskId))
        assert.deepStrictEqual(open.map(({ isHeld }) => isHeld), [false, false, false, false, true])
        assert.deepStrictEqual(open.slice(1, 2).map(({ dueAt }) => dueAt), rollout(taskId, task!.updatedAt, 1))
      }))

    it.effect("opens no stage by the success of a device that waits for a later one", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware } = yield* prepare(5)
        const draft = newTask(firmware, { stages: [40], stageSuccessPercent: 50 })
        const { task: { taskId } } = created(yield* store.createTask(draft, { _tag: "All" }, epoch))
        const records = yield* Effect.forEach(devices, (device) => recordOf(device, taskId))
        const { tasks: [before] } = yield* store.save([changed(records[3]!, "succeeded")])
        assert.deepInclude(before, { stage: 1, counts: { ...before!.counts, pending: 4, succeeded: 1 } })
        const { tasks: [after] } = yield* store.save([changed(records[1]!, "succeeded")])
        assert.strictEqual(after!.stage, 2)
      }))

    it.effect("opens the stage that has passed, however many devices have joined meanwhile", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware, product } = yield* prepare(2)
        const draft = newTask(firmware, { isDynamic: true, stages: [25], stageSuccessPercent: 100 })
        const { task: { taskId } } = created(yield* store.createTask(draft, { _tag: "All" }, epoch))
        const later = yield* insertDevices(product, Array.from({ length: 4 }, () => newDevice()))
        yield* store.join(taskId, later, epoch + 1)
        const held = yield* recordOf(later[3]!, taskId)
        const { tasks: [before] } = yield* store.save([changed(held, "succeeded")])
        assert.strictEqual(before!.stage, 1)
        const { tasks: [after] } = yield* store.save([changed(yield* recordOf(devices[0]!, taskId), "succeeded")])
        assert.strictEqual(after!.stage, 2)
        assert.isFalse((yield* recordOf(later[0]!, taskId)).isHeld)
      }))

    it.effect("opens the stage that has passed, without a device of it that was cancelled while it was held", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware } = yield* prepare(4)
        const draft = newTask(firmware, { stages: [25, 75], stageSuccessPercent: 100 })
        const { task: { taskId } } = created(yield* store.createTask(draft, { _tag: "All" }, epoch))
        yield* store.save([changed(yield* recordOf(devices[2]!, taskId), "cancelled")])
        for (const [device, stage] of [[devices[0]!, 2], [devices[1]!, 3]] as const) {
          const { tasks: [task] } = yield* store.save([changed(yield* recordOf(device, taskId), "succeeded")])
          assert.strictEqual(task!.stage, stage)
        }
      }))

    it.effect("opens no stage by itself while no device may have the firmware", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { firmware, product } = yield* prepare(0)
        const draft = newTask(firmware, { isDynamic: true, stages: [25], stageSuccessPercent: 1 })
        const { task: { taskId } } = created(yield* store.createTask(draft, { _tag: "All" }, epoch))
        const [device] = yield* insertDevices(product, [newDevice()])
        yield* store.join(taskId, [device!], epoch + 1)
        const { tasks: [task] } = yield* store.save([changed(yield* recordOf(device!, taskId), "succeeded")])
        assert.strictEqual(task!.stage, 1)
      }))

    it.effect("cancels a task with the change by which too many of its devices have failed", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware } = yield* prepare(5)
        const draft = newTask(firmware, {
          abortThresholdPercent: 50,
          abortMinExecuted: 2,
          stages: [80],
          stageSuccessPercent: 25
        })
        const { task: { taskId } } = created(yield* store.createTask(draft, { _tag: "All" }, epoch))
        const [begun, first, second, waiting, held] = yield* Effect.forEach(
          devices,
          (device) => recordOf(device, taskId)
        )
        yield* store.save([changed(begun!, "upgrading"), changed(first!, "failed")])
        assert.strictEqual(Option.getOrThrow(yield* store.task(firmware.projectId, taskId)).status, "in-progress")
        // Half have failed: the stage that has passed as well does not open.
        const { saved, tasks: [task] } = yield* store.save([changed(second!, "succeeded")])
        assert.deepStrictEqual(saved, [true])
        assert.deepInclude(task, {
          status: "cancelled",
          stage: 1,
          counts: { pending: 0, upgrading: 1, succeeded: 1, failed: 1, cancelled: 2 }
        })
        assert.deepStrictEqual(Option.getOrThrow(yield* store.task(firmware.projectId, taskId)), task)
        const records = yield* Effect.forEach(devices, (device) => recordOf(device, taskId))
        assert.deepStrictEqual(
          records.map(({ dueAt, reason, revision, status }) => [status, reason, dueAt, revision]),
          [
            ["upgrading", "", null, 1],
            ["failed", "", null, 1],
            ["succeeded", "", null, 1],
            ["cancelled", "cancelled", null, waiting!.revision + 1],
            ["cancelled", "cancelled", null, held!.revision + 1]
          ]
        )
        // The one that had begun finishes.
        yield* store.save([changed(records[0]!, "failed")])
        assert.deepInclude(Option.getOrThrow(yield* store.task(firmware.projectId, taskId)), {
          status: "cancelled",
          counts: { pending: 0, upgrading: 0, succeeded: 1, failed: 2, cancelled: 2 }
        })
      }))

    it.effect("devices join a dynamic task once, also when several nodes add them at the same moment", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware, product } = yield* prepare(3)
        const { productKey, projectId } = product
        const draft = newTask(firmware, { isDynamic: true, stages: [50] })
        const { task: { taskId } } = created(yield* store.createTask(draft, { _tag: "All" }, epoch))
        const still = created(yield* store.createTask(newTask(firmware), { _tag: "All" }, epoch)).task
        const dynamic = (...productKeys: Parameters<typeof store.dynamicTasks>[0]) =>
          Effect.map(store.dynamicTasks(productKeys), (tasks) => tasks.map((task) => task.taskId))
        const elsewhere = yield* prepare(0)
        const second = created(
          yield* store.createTask(newTask(elsewhere.firmware, { isDynamic: true }), { _tag: "All" }, epoch)
        ).task.taskId
        assert.deepStrictEqual(yield* dynamic(productKey), [taskId])
        assert.deepStrictEqual(yield* dynamic(elsewhere.product.productKey, productKey), [taskId, second])
        assert.deepStrictEqual(yield* dynamic(), [])
        const later = yield* insertDevices(product, Array.from({ length: 10 }, () => newDevice()))
        const other = yield* insertFirmware(product, { module: "default", version: "3.0.0" })
        const busy = later[0]!
        yield* store.createTask(newTask(other), { _tag: "Named", deviceIds: [busy.deviceId] }, epoch)
        // A record for another module keeps no device out.
        const mcu = yield* insertFirmware(product, { module: "MCU" })
        yield* store.createTask(newTask(mcu), { _tag: "Named", deviceIds: [later[1]!.deviceId] }, epoch)
        const gone = { ...later[1]!, deviceId: DeviceId.make("gone") }
        yield* Effect.forEach([0, 1, 2], () => store.join(taskId, [...later, gone, ...devices], epoch + 5), {
          concurrency: "unbounded"
        })
        const task = Option.getOrThrow(yield* store.task(projectId, taskId))
        assert.deepStrictEqual([task.counts.pending, task.status], [12, "pending"])
        const { items, total } = yield* store.records(taskId, {}, all)
        assert.strictEqual(total, 12)
        const newest = [...devices, ...later.slice(1)].toReversed()
        assert.deepStrictEqual(items.map(({ record }) => record.deviceId), newest.map(({ deviceId }) => deviceId))
        const record = yield* recordOf(later[1]!, taskId)
        assert.deepInclude(record, { status: "pending", isHeld: true, dueAt: null, updatedAt: epoch + 5 })
        // In the last stage, a newcomer is told at once. A task with nobody left goes on.
        yield* store.openStage(taskId, 2, epoch + 6)
        yield* store.save(
          (yield* store.unfinished(newest.map(({ deviceId }) => deviceId))).map(({ record }) =>
            changed(record, "succeeded")
          )
        )
        assert.strictEqual(Option.getOrThrow(yield* store.task(projectId, taskId)).status, "in-progress")
        const [last] = yield* insertDevices(product, [newDevice()])
        yield* store.join(taskId, [last!, later[2]!], epoch + 7)
        assert.deepInclude(yield* recordOf(last!, taskId), { isHeld: false, dueAt: epoch + 7 })
        assert.strictEqual((yield* recordOf(later[2]!, taskId)).status, "succeeded")
        yield* store.endTask(taskId, "cancelled", ["pending"], epoch + 8)
        const [tooLate] = yield* insertDevices(product, [newDevice()])
        yield* store.join(taskId, [tooLate!], epoch + 9)
        assert.isTrue(Option.isNone(yield* store.record(tooLate!.deviceId, taskId)))
        assert.deepStrictEqual(yield* store.dynamicTasks([productKey]), [])
        assert.strictEqual(still.status, "failed")
      }))

    it.effect("opens a stage without telling devices that are not to be told", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware } = yield* prepare(3)
        const draft = newTask(firmware, { stages: [30], needAppConfirm: true })
        const { task: { taskId } } = created(yield* store.createTask(draft, { _tag: "All" }, epoch))
        const second = yield* recordOf(devices[1]!, taskId)
        yield* store.save([{ before: second, after: { ...second, isConfirmed: true, revision: second.revision + 1 } }])
        yield* store.openStage(taskId, 2, epoch + 5)
        const opened = yield* Effect.forEach(devices, (device) => recordOf(device, taskId))
        assert.deepStrictEqual(opened.map(({ isHeld }) => isHeld), [false, false, false])
        assert.deepStrictEqual(opened.map(({ dueAt }) => dueAt), [null, rollout(taskId, epoch + 5, 1)[0]!, null])
      }))
  })
