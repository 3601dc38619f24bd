/**
 * The laws of `OtaStore` about the stages of tasks.
 */
import { type DeviceCloud, OtaStore } from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { changed, created, newTask, prepare, recordOf, rollout } from "./OtaSamples.ts"
import { epoch } from "./Samples.ts"

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(stores)(`OtaStore, stages of tasks: ${name}`, (it) => {
    it.effect("holds the devices of later stages, and opens each stage once", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware } = yield* prepare(5)
        const { task: { taskId } } = created(
          yield* store.createTask(newTask(firmware, { stages: [10, 50] }), { _tag: "All" }, epoch)
        )
        const records = Effect.forEach(devices, (device) => recordOf(device, taskId))
        const held = Effect.map(records, (all) => all.map(({ isHeld }) => isHeld))
        const dueAt = Effect.map(records, (all) => all.map((record) => record.dueAt))
        assert.deepStrictEqual(yield* held, [false, true, true, true, true])
        assert.deepStrictEqual(yield* dueAt, [...rollout(taskId, epoch, 1), null, null, null, null])
        assert.isTrue(Option.isNone(yield* store.openStage(taskId, 3, epoch + 5)))
        yield* store.save([changed((yield* records)[1]!, "cancelled")])
        const opened = yield* Effect.forEach([0, 1, 2], () => store.openStage(taskId, 2, epoch + 5), {
          concurrency: "unbounded"
        })
        const [task, ...others] = opened.flatMap(Option.toArray)
        assert.deepStrictEqual([task?.stage, others], [2, []])
        assert.deepStrictEqual(Option.getOrThrow(yield* store.task(firmware.projectId, taskId)), task)
        assert.deepStrictEqual(yield* held, [false, true, false, true, true])
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
