/**
 * The laws of `TraceStore`.
 */
import {
  type Device,
  type DeviceCloud,
  DeviceStore,
  type NotedEntries,
  ProjectId,
  type TraceEntry,
  TraceStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import { epoch, insertDevice, insertDevices, newDevice } from "./Samples.ts"

const entry = (text: string): TraceEntry => ({
  at: epoch,
  kind: "uplink",
  transport: "mqtt",
  nodeId: "node",
  topic: "/topic",
  payload: { text, encoding: "utf8", bytes: text.length, cut: false },
  reply: {
    code: 6303,
    message: "misfit",
    data: { text: "{}", encoding: "utf8", bytes: 2, cut: false },
    issues: [{ path: ["params", "a", 0], message: "expected a number" }]
  }
})

const noted = ({ deviceId }: Device, texts: ReadonlyArray<string>, dropped = 0): NotedEntries => ({
  deviceId,
  entries: texts.map(entry),
  dropped
})

const minute = 60_000

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void => {
  layer(detached(stores), { excludeTestServices: true })(`TraceStore on ${name}`, (it) => {
    const start = ({ deviceId, projectId }: Device, options: { until?: number; max?: number } = {}) =>
      TraceStore.use((store) =>
        store.start({ projectId, deviceId, until: epoch + minute, now: epoch, max: 20, ...options })
      )
    /** The numbers count from the start of the trace. */
    const textsAfter = ({ deviceId }: Device, last: number | undefined, limit = 100) =>
      Effect.map(
        TraceStore.use((store) =>
          store.read(deviceId, { after: last === undefined ? undefined : epoch + last, limit })
        ),
        (found) =>
          Option.match(found, {
            onNone: () => undefined,
            onSome: ({ entries }) => entries.map(({ entry, seq }) => `${seq - epoch} ${entry.payload?.text}`)
          })
      )
    /** The device, if it is among those that are traced at a time. They are there once. */
    const isActive = ({ deviceId }: Device, now: number) =>
      Effect.map(
        TraceStore.use((store) => store.active(now)),
        (devices) => {
          const found = devices.filter((device) => device.deviceId === deviceId)
          assert.isAtMost(found.length, 1)
          return found[0]
        }
      )

    it.effect("traces a device until then, or until it is stopped", () =>
      Effect.gen(function*() {
        const store = yield* TraceStore
        const { device } = yield* insertDevice
        const { deviceId, deviceName, productKey } = device
        assert.isUndefined(yield* isActive(device, epoch))
        assert.isFalse(yield* store.stop(deviceId, epoch))
        assert.isTrue(yield* start(device))
        const { device: other } = yield* insertDevice
        assert.isTrue(yield* start(other, { until: epoch + 2 * minute }))
        assert.deepStrictEqual(yield* isActive(device, epoch + 1), {
          deviceId,
          productKey,
          deviceName,
          until: epoch + minute
        })
        assert.isUndefined(yield* isActive(device, epoch + minute))
        // It is prolonged, and shortened.
        for (const minutes of [3, 2]) assert.isTrue(yield* start(device, { until: epoch + minutes * minute }))
        assert.isDefined(yield* isActive(device, epoch + minute))
        assert.isUndefined(yield* isActive(device, epoch + 2 * minute))
        assert.isTrue(yield* store.stop(deviceId, epoch + minute))
        assert.isFalse(yield* store.stop(deviceId, epoch + minute))
        assert.isUndefined(yield* isActive(device, epoch + minute))
        assert.isDefined(yield* isActive(other, epoch + minute))
      }))

    it.effect("traces so many devices of a project at a time, however many ask at once", () =>
      Effect.gen(function*() {
        const store = yield* TraceStore
        const { product } = yield* insertDevice
        const [known, ...others] = yield* insertDevices(product, Array.from({ length: 4 }, () => newDevice()))
        assert.isTrue(yield* start(known!, { max: 3 }))
        const started = yield* Effect.forEach(others, (device) => start(device, { max: 3 }), {
          concurrency: "unbounded"
        })
        assert.lengthOf(started.filter((isStarted) => isStarted), 2)
        // One that is traced can go on, and one that has ended leaves its place.
        assert.isTrue(yield* start(known!, { max: 3 }))
        yield* store.stop(known!.deviceId, epoch)
        assert.isTrue(yield* start(others[started.indexOf(false)]!, { max: 3 }))
        const foreign = { ...known!, projectId: ProjectId.make("another") }
        assert.isFalse(yield* start(foreign))
      }))

    it.effect("returns entries in the order in which they were appended, the latest or those after one", () =>
      Effect.gen(function*() {
        const store = yield* TraceStore
        const [a, b] = [(yield* insertDevice).device, (yield* insertDevice).device]
        yield* start(a)
        assert.deepStrictEqual(yield* textsAfter(a, undefined), [])
        assert.isUndefined(yield* textsAfter(b, undefined))
        // Of what has no trace, nothing is kept.
        yield* store.append([noted(a, ["one", "two"], 3), noted(b, ["other"])], 100)
        yield* store.append([noted(a, ["three \0"], 1)], 100)
        assert.isUndefined(yield* textsAfter(b, undefined))
        assert.deepStrictEqual(yield* textsAfter(a, undefined), ["1 one", "2 two", "3 three \0"])
        assert.deepStrictEqual(yield* textsAfter(a, undefined, 2), ["2 two", "3 three \0"])
        assert.deepStrictEqual(yield* textsAfter(a, 0, 2), ["1 one", "2 two"])
        assert.deepStrictEqual(yield* textsAfter(a, 2), ["3 three \0"])
        assert.deepStrictEqual(yield* textsAfter(a, 3), [])
        const part = Option.getOrThrow(yield* store.read(a.deviceId, { limit: 1 }))
        assert.deepStrictEqual(part, {
          until: epoch + minute,
          dropped: 4,
          entries: [{ seq: epoch + 3, entry: entry("three \0") }]
        })
        // What was noted can be read after the trace has been stopped.
        assert.isTrue(yield* store.stop(a.deviceId, epoch + 1))
        assert.deepStrictEqual(Option.getOrThrow(yield* store.read(a.deviceId, { limit: 1 })), {
          ...part,
          until: epoch + 1
        })
        assert.deepStrictEqual(yield* textsAfter(a, 0), ["1 one", "2 two", "3 three \0"])
        // A later trace goes on behind it.
        assert.isTrue(yield* start(a, { until: epoch + 2 * minute }))
        yield* store.append([noted(a, ["four"])], 100)
        assert.deepStrictEqual(yield* textsAfter(a, 1), ["2 two", "3 three \0", "4 four"])
      }))

    it.effect("keeps the latest entries, and numbers what many append at once without gaps", () =>
      Effect.gen(function*() {
        const store = yield* TraceStore
        const [a, b] = [(yield* insertDevice).device, (yield* insertDevice).device]
        yield* start(a)
        yield* start(b)
        yield* Effect.forEach(
          Array.from({ length: 10 }, (_, i) => i),
          (i) =>
            store.append(i % 2 === 0 ? [noted(a, ["x", "y"]), noted(b, ["z"])] : [noted(b, ["z"]), noted(a, ["x"])], 5),
          { concurrency: "unbounded" }
        )
        const seqs = (found: ReadonlyArray<string> | undefined) => found?.map((text) => text.split(" ")[0])
        assert.deepStrictEqual(seqs(yield* textsAfter(a, undefined)), ["11", "12", "13", "14", "15"])
        assert.deepStrictEqual(seqs(yield* textsAfter(b, 0)), ["6", "7", "8", "9", "10"])
      }))

    it.effect("traces go when they have ended long enough ago, and with their device", () =>
      Effect.gen(function*() {
        const store = yield* TraceStore
        const [a, b] = [(yield* insertDevice).device, (yield* insertDevice).device]
        yield* start(a)
        yield* start(b, { until: epoch + 2 * minute })
        yield* store.append([noted(a, ["one"]), noted(b, ["two"])], 5)
        yield* store.prune(epoch + minute)
        assert.deepStrictEqual(yield* textsAfter(a, 0), ["1 one"])
        yield* store.prune(epoch + minute + 1)
        assert.isUndefined(yield* textsAfter(a, 0))
        const { deviceId, projectId } = a
        yield* store.start({ projectId, deviceId, until: epoch + 3 * minute, now: epoch + 2 * minute, max: 20 })
        yield* store.append([noted(a, ["again"])], 5)
        const [again] = Option.getOrThrow(yield* store.read(deviceId, { limit: 1 })).entries
        assert.isAbove(again!.seq, epoch + 1)
        assert.deepStrictEqual(yield* textsAfter(b, 0), ["1 two"])
        yield* (yield* DeviceStore).remove(b.projectId, b.deviceId)
        assert.isUndefined(yield* textsAfter(b, 0))
        assert.isUndefined(yield* isActive(b, epoch))
      }))
  })
}
