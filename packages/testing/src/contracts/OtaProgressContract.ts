/**
 * The laws of `OtaStore` about how far tasks were over time, and why devices have failed.
 */
import {
  advanceUpgrade,
  type Device,
  type DeviceCloud,
  OtaStore,
  progressResolution,
  type RecordFilter,
  type UpgradeRecord
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { detached } from "./Detached.ts"
import { all, created, newTask, prepare, recordOf } from "./OtaSamples.ts"
import { epoch, insertDevices, newDevice } from "./Samples.ts"

const none = { pending: 0, upgrading: 0, succeeded: 0, failed: 0, cancelled: 0 }

/** The start of a tick, counted from the creation of a task. */
const tick = (number: number) => (Math.floor(epoch / progressResolution) + number) * progressResolution

const change = (device: Device, taskId: number, at: number, fields: Partial<UpgradeRecord>) =>
  Effect.gen(function*() {
    const before = yield* recordOf(device, taskId)
    const after = { ...before, ...fields, updatedAt: at, revision: before.revision + 1 }
    const { saved } = yield* (yield* OtaStore).save([{ before, after }])
    assert.deepStrictEqual(saved, [true])
  })

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`OtaStore, progress and failures: ${name}`, (it) => {
    it.effect("remembers the counts of a task at the end of each tick in which they changed", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices: [a, b, c], firmware, product } = yield* prepare(3)
        const draft = newTask(firmware, { isDynamic: true, createdAt: tick(0) + 1, updatedAt: tick(0) + 1 })
        const { task: { taskId } } = created(yield* store.createTask(draft, { _tag: "All" }, tick(0)))
        yield* change(a!, taskId, tick(0) + 5, { status: "upgrading" })
        yield* change(a!, taskId, tick(2), { status: "pending", failures: 1 })
        yield* change(a!, taskId, tick(2) + 9, { status: "upgrading" })
        yield* change(b!, taskId, tick(2) + 9, { status: "failed", reason: "broken" })
        yield* change(a!, taskId, tick(4), { status: "succeeded" })
        const [late] = yield* insertDevices(product, [newDevice()])
        yield* store.join(taskId, [late!], tick(5))
        // Steps change no number.
        yield* change(c!, taskId, tick(5), { step: 0 })
        yield* store.endTask(taskId, "cancelled", ["pending"], tick(6))
        const times = [0, 1, 2, 3, 4, 5, 6, 7, 9].map(tick)
        assert.deepStrictEqual(yield* store.countsBefore(taskId, times), [
          none,
          { ...none, pending: 2, upgrading: 1 },
          { ...none, pending: 2, upgrading: 1 },
          { ...none, pending: 1, upgrading: 1, failed: 1 },
          { ...none, pending: 1, upgrading: 1, failed: 1 },
          { ...none, pending: 1, succeeded: 1, failed: 1 },
          { ...none, pending: 2, succeeded: 1, failed: 1 },
          { ...none, succeeded: 1, failed: 1, cancelled: 2 },
          { ...none, succeeded: 1, failed: 1, cancelled: 2 }
        ])
        assert.deepStrictEqual(yield* store.countsBefore(taskId, []), [])
        assert.deepStrictEqual(yield* store.countsBefore(taskId + 1_000_000, [tick(9)]), [none])
        assert.isTrue(yield* store.removeTask(taskId))
        assert.deepStrictEqual(yield* store.countsBefore(taskId, [tick(9)]), [none])
      }))

    it.effect("what was stored last is what counts, whatever the clocks of the nodes say", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices: [a, b], firmware } = yield* prepare(2)
        const { task: { taskId } } = created(yield* store.createTask(newTask(firmware), { _tag: "All" }, epoch))
        yield* change(a!, taskId, tick(3), { status: "succeeded" })
        yield* change(b!, taskId, tick(2), { status: "failed", reason: "broken" })
        assert.deepStrictEqual(yield* store.countsBefore(taskId, [tick(3), tick(4)]), [
          { ...none, pending: 2 },
          { ...none, succeeded: 1, failed: 1 }
        ])
      }))

    it.effect("counts the devices that have failed by reason, and finds exactly these", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware } = yield* prepare(10)
        const [a, b, c, d, e, f, gone, waiting, ...silent] = devices
        const { task } = created(yield* store.createTask(newTask(firmware), { _tag: "All" }, epoch))
        const { taskId } = task
        const failed = (device: Device, reason: string) =>
          change(device, taskId, epoch + 1, { status: "failed", step: -1, reason })
        yield* failed(a!, "No space")
        for (const device of [b!, c!, gone!]) yield* failed(device, "no space\n50% left")
        for (const device of silent) yield* failed(device, "")
        // One that tries again, one that is at it, and one that a user has cancelled.
        yield* change(d!, taskId, epoch + 1, { status: "pending", failures: 1, reason: "No space" })
        yield* change(e!, taskId, epoch + 1, { status: "upgrading", step: 10, reason: "No space" })
        const before = yield* recordOf(f!, taskId)
        const after = advanceUpgrade(before, task, { _tag: "Cancelled", at: epoch + 1, whole: false })
        yield* store.save([{ before, after }])
        assert.deepStrictEqual(yield* store.failures(taskId, 10), [
          { reason: "no space\n50% left", devices: 3 },
          { reason: "", devices: 2 },
          { reason: "No space", devices: 1 }
        ])
        assert.deepStrictEqual(yield* store.failures(taskId, 1), [{ reason: "no space\n50% left", devices: 3 }])
        // Reasons that are equally frequent come in the order of their characters.
        const several =
          created(yield* store.createTask(newTask(firmware, { module: "m" }), { _tag: "All" }, epoch)).task
        const reasons = ["é", "😀", "b", "_", "B", "%", "￮", "a"]
        for (const [place, reason] of reasons.entries()) {
          yield* change(devices[place]!, several.taskId, epoch + 1, { status: "failed", step: -1, reason })
        }
        const inOrder = ["%", "B", "_", "a", "b", "é", "￮", "😀"].map((reason) => ({ reason, devices: 1 }))
        assert.deepStrictEqual(yield* store.failures(several.taskId, 10), inOrder)
        assert.deepStrictEqual(yield* store.failures(several.taskId, 3), inOrder.slice(0, 3))
        const found = (filter: RecordFilter, page = all) =>
          Effect.map(store.records(taskId, filter, page), ({ items, total }) => [
            items.map(({ record }) => record.deviceId),
            total
          ])
        const ids = (...chosen: ReadonlyArray<Device | undefined>) => chosen.map((device) => device!.deviceId)
        assert.deepStrictEqual(yield* found({ failure: "no space\n50% left" }), [ids(gone, c, b), 3])
        const second = { page: 2, pageSize: 2 }
        assert.deepStrictEqual(yield* found({ failure: "no space\n50% left" }, second), [ids(b), 3])
        assert.deepStrictEqual(yield* found({ failure: "No space" }), [ids(a), 1])
        assert.deepStrictEqual(yield* found({ failure: "" }), [ids(...silent.toReversed()), 2])
        assert.deepStrictEqual(yield* found({ failure: "no space" }), [[], 0])
        assert.deepStrictEqual(yield* found({ failure: "No space", status: "pending" }), [[], 0])
        assert.deepStrictEqual(yield* found({ status: "failed" }), [ids(...silent.toReversed(), gone, c, b, a), 6])
        assert.deepStrictEqual(yield* found({ status: "pending" }), [ids(waiting, d), 2])
        assert.deepStrictEqual(yield* found({ status: "pending", rejected: "unactive" }), [[], 0])
        // Its next attempt succeeds.
        yield* change(d!, taskId, epoch + 2, { status: "succeeded", reason: "" })
        assert.deepStrictEqual(yield* found({ status: "succeeded" }), [ids(d), 1])
      }))
  })
