/**
 * The laws of `ActivityStore`.
 */
import {
  type ActivityCount,
  ActivityStore,
  type ActivitySum,
  type DeviceCloud,
  PresenceStore,
  type ProjectId,
  ProjectStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { detached } from "./Detached.ts"
import { epoch, insertDevice, insertProject, newProject } from "./Samples.ts"

const hour = epoch / 60_000

const counted = (projectId: ProjectId, fields: Partial<ActivityCount> = {}): ActivityCount => ({
  projectId,
  minute: hour,
  measure: "refused",
  code: "460",
  count: 1,
  ...fields
})

const inOrder = (sums: ReadonlyArray<ActivitySum>) =>
  sums.map(({ code, count, measure, minute }) => [minute - hour, measure, code, count] as const)
    .toSorted((a, b) => a[0] - b[0] || (`${a[1]} ${a[2]}` < `${b[1]} ${b[2]}` ? -1 : 1))

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void => {
  layer(detached(stores), { excludeTestServices: true })(`ActivityStore on ${name}`, (it) => {
    const read = Effect.fnUntraced(function*(projectId: ProjectId, interval: number, from = hour, to = hour + 120) {
      return inOrder(yield* (yield* ActivityStore).read({ projectId, from, to, interval }))
    })

    it.effect("adds counts up by minute and by hour, each project's for itself", () =>
      Effect.gen(function*() {
        const store = yield* ActivityStore
        const [{ id }, { id: other }] = [yield* insertProject, yield* insertProject]
        yield* store.add([
          counted(id),
          counted(id, { code: "429", count: 5 }),
          counted(id, { minute: hour + 3, count: 2 }),
          counted(id, { minute: hour + 61, measure: "accepted", code: "", count: 7 }),
          counted(other, { count: 9 })
        ])
        yield* store.add([counted(id, { count: 10 })])
        assert.deepStrictEqual(yield* read(id, 1), [
          [0, "refused", "429", 5],
          [0, "refused", "460", 11],
          [3, "refused", "460", 2],
          [61, "accepted", "", 7]
        ])
        assert.deepStrictEqual(yield* read(id, 5, hour, hour + 10), [
          [0, "refused", "429", 5],
          [0, "refused", "460", 13]
        ])
        assert.deepStrictEqual(yield* read(id, 60), [
          [0, "refused", "429", 5],
          [0, "refused", "460", 13],
          [60, "accepted", "", 7]
        ])
        assert.deepStrictEqual(yield* read(id, 120), [
          [0, "accepted", "", 7],
          [0, "refused", "429", 5],
          [0, "refused", "460", 13]
        ])
        assert.deepStrictEqual(yield* read(id, 1, hour + 1, hour + 3), [])
        assert.deepStrictEqual(yield* read(other, 60), [[0, "refused", "460", 9]])
      }))

    it.effect("adds up what many nodes add at once, and nothing for a project that is gone", () =>
      Effect.gen(function*() {
        const store = yield* ActivityStore
        const [a, b] = [yield* insertProject, yield* insertProject]
        const calls = Array.from({ length: 10 }, (_, i) =>
          store.add([
            ...i % 2 === 0 ? [counted(a.id), counted(b.id)] : [counted(b.id), counted(a.id)],
            counted(newProject().id)
          ]))
        yield* Effect.all(calls, { concurrency: "unbounded" })
        assert.deepStrictEqual(yield* read(a.id, 1), [[0, "refused", "460", 10]])
        yield* (yield* ProjectStore).remove(a.id)
        yield* store.add([counted(a.id), counted(b.id)])
        assert.deepStrictEqual(yield* read(a.id, 1), [])
        assert.deepStrictEqual(yield* read(b.id, 60), [[0, "refused", "460", 11]])
      }))

    it.effect("counts the devices that are online once in a minute", () =>
      Effect.gen(function*() {
        const store = yield* ActivityStore
        const { device } = yield* insertDevice
        yield* store.sampleOnline(hour)
        yield* (yield* PresenceStore).record([{
          _tag: "Online",
          deviceId: device.deviceId,
          connectionId: "c",
          nodeId: "n",
          ip: "192.0.2.1",
          at: epoch
        }])
        yield* Effect.all([store.sampleOnline(hour + 1), store.sampleOnline(hour + 1)], { concurrency: "unbounded" })
        yield* store.sampleOnline(hour + 2)
        assert.deepStrictEqual(yield* read(device.projectId, 1), [[1, "online", "", 1], [2, "online", "", 1]])
        assert.deepStrictEqual(yield* read(device.projectId, 60), [[0, "online", "", 2]])
      }))

    it.effect("forgets minutes before hours, a part at a time", () =>
      Effect.gen(function*() {
        const store = yield* ActivityStore
        const { id } = yield* insertProject
        // These times are earlier than those of other tests.
        const old = hour - 6000
        const counts = [0, 1, 2, 61].map((minute) => counted(id, { minute: old + minute }))
        yield* store.add(counts)
        const prune = (minutes: number, hours: number, limit = 100) => store.prune({ minutes, hours, limit })
        assert.strictEqual(yield* prune(old + 2, 0, 1), 1)
        assert.strictEqual(yield* prune(old + 2, 0), 1)
        const minutes = yield* store.read({ projectId: id, from: old, to: hour, interval: 1 })
        assert.deepStrictEqual(minutes.map(({ minute }) => minute - old).toSorted((a, b) => a - b), [2, 61])
        const hours = store.read({ projectId: id, from: old, to: hour, interval: 60 })
        assert.deepStrictEqual((yield* hours).map(({ count }) => count).toSorted(), [1, 3])
        assert.strictEqual(yield* prune(0, old + 60), 1)
        assert.deepStrictEqual((yield* hours).map(({ count }) => count), [1])
      }))
  })
}
