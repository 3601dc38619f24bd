/**
 * The laws of `BulkCommandStore`.
 */
import {
  type BulkCommand,
  BulkCommandStore,
  bulkOrigin,
  type BulkScope,
  type BulkTurn,
  CommandStore,
  type Device,
  type DeviceCloud,
  DeviceId,
  DeviceStore,
  maxRunningBulkCommands,
  type ProjectId,
  ProjectStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import {
  assertPages,
  epoch,
  insertDevices,
  insertProduct,
  insertProductOf,
  insertProject,
  newCommand,
  newDevice,
  newProduct
} from "./Samples.ts"

const draft = (projectId: ProjectId, createdAt = epoch) => ({
  projectId,
  serviceId: null,
  params: { power: 1 },
  ttl: 3600,
  createdAt
})

const named = (devices: ReadonlyArray<Pick<Device, "deviceId">>): BulkScope => ({
  _tag: "Named",
  deviceIds: devices.map(({ deviceId }) => deviceId)
})

const create = Effect.fnUntraced(function*(projectId: ProjectId, scope: BulkScope, createdAt?: number) {
  const created = yield* (yield* BulkCommandStore).insert(draft(projectId, createdAt), scope)
  assert.strictEqual(created._tag, "Created")
  return (created as Extract<typeof created, { readonly _tag: "Created" }>).bulk
})

/** A product with that many devices. */
const insertMany = Effect.fnUntraced(function*(count: number) {
  const product = yield* insertProduct
  return { product, devices: yield* insertDevices(product, Array.from({ length: count }, () => newDevice())) }
})

const page = { page: 1, pageSize: 100 }

/** Turns of one bulk command: other tests have theirs. */
const claim = (of: BulkCommand, options: { readonly now?: number; readonly again?: number } = {}) =>
  Effect.gen(function*() {
    const { again = epoch + 60_000, now = epoch + 1 } = options
    const turns = yield* (yield* BulkCommandStore).claim({ now, again, bulks: 1000, perBulk: 1000 })
    return turns.filter(({ bulk }) => bulk.bulkId === of.bulkId)
  })

/** Makes the command of the turn as `Commands` does. */
const enqueue = Effect.fnUntraced(function*({ bulk: { bulkId, projectId }, deviceId }: BulkTurn) {
  const command = newCommand({ projectId, deviceId }, { origin: bulkOrigin(bulkId) })
  const [result] = yield* (yield* CommandStore).enqueue([{ command }])
  return typeof result === "object" ? result.command.messageId : null
})

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`BulkCommandStore: ${name}`, (it) => {
    it.effect("fixes the devices of its scope, all of them or nothing", () =>
      Effect.gen(function*() {
        const store = yield* BulkCommandStore
        const { devices, product: { productKey, projectId } } = yield* insertMany(3)
        const other = yield* insertMany(1)
        const missing = DeviceId.make("missing")
        const unknown = yield* store.insert(draft(projectId), {
          _tag: "Named",
          deviceIds: [devices[0]!.deviceId, missing, other.devices[0]!.deviceId]
        })
        assert.deepStrictEqual(unknown, { _tag: "Unknown", deviceIds: [missing, other.devices[0]!.deviceId] })
        const none = yield* store.insert(draft(projectId), { _tag: "Matching", filter: { status: "online" } })
        assert.deepStrictEqual(none, { _tag: "Empty" })
        assert.deepStrictEqual(
          yield* store.insert(draft(projectId), {
            _tag: "Matching",
            filter: { productKey: other.product.productKey }
          }),
          { _tag: "Empty" }
        )
        const gone = yield* insertProject
        assert.strictEqual(yield* (yield* ProjectStore).remove(gone.id), "removed")
        assert.deepStrictEqual(
          yield* store.insert(draft(gone.id), { _tag: "Matching", filter: { productKey } }),
          { _tag: "Empty" }
        )
        assert.deepStrictEqual(yield* store.list(projectId, page), { items: [], total: 0 })

        const sibling = yield* insertProductOf(newProduct(projectId))
        yield* insertDevices(sibling, [newDevice()])
        const bulk = yield* create(projectId, { _tag: "Matching", filter: { productKey } })
        const { createdAt, ...rest } = draft(projectId)
        assert.deepStrictEqual(bulk, {
          ...rest,
          bulkId: bulk.bulkId,
          status: "running",
          total: 3,
          createdAt,
          updatedAt: createdAt
        })
        const second = yield* create(projectId, named([devices[2]!, devices[0]!]), epoch + 1)
        yield* assertPages((page) => store.list(projectId, page), [second, bulk])
        yield* (yield* DeviceStore).remove(projectId, devices[0]!.deviceId)
        const namesOf = (bulkId: number) =>
          Effect.map(store.devices(bulkId, undefined, page), ({ items }) => items.map((device) => device.deviceName))
        assert.deepStrictEqual(yield* namesOf(bulk.bulkId), devices.map(({ deviceName }) => deviceName))
        assert.deepStrictEqual(yield* namesOf(second.bulkId), [devices[2]!, devices[0]!].map((d) => d.deviceName))
        const { id: stranger } = yield* insertProject
        assert.isTrue(Option.isNone(yield* store.get(stranger, bulk.bulkId)))
        const theirs = yield* create(other.product.projectId, { _tag: "Matching", filter: { status: "unactive" } })
        assert.deepStrictEqual(yield* namesOf(theirs.bulkId), other.devices.map(({ deviceName }) => deviceName))
        assert.deepStrictEqual(yield* store.list(other.product.projectId, page), { items: [theirs], total: 1 })
        assert.deepStrictEqual(yield* store.get(projectId, bulk.bulkId), Option.some({ bulk, counts: { pending: 3 } }))
      }))

    it.effect("lets a project run so many at a time, also if they come at once", () =>
      Effect.gen(function*() {
        const store = yield* BulkCommandStore
        const { devices, product: { projectId } } = yield* insertMany(1)
        const outcomes = yield* Effect.all(
          Array.from({ length: maxRunningBulkCommands + 3 }, () => store.insert(draft(projectId), named(devices))),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(outcomes.filter(({ _tag }) => _tag === "Busy").length, 3)
        const { items } = yield* store.list(projectId, page)
        yield* store.cancel(items[0]!.bulkId, epoch)
        yield* create(projectId, named(devices))
      }))

    it.effect("gives each turn to one caller until its time is over, and ends with the last outcome", () =>
      Effect.gen(function*() {
        const store = yield* BulkCommandStore
        const { devices, product: { projectId } } = yield* insertMany(30)
        const bulk = yield* create(projectId, named(devices))
        const claimed = yield* Effect.all(Array.from({ length: 4 }, () => claim(bulk)), { concurrency: "unbounded" })
        assert.deepStrictEqual(
          claimed.flat().map(({ deviceId }) => deviceId).toSorted(),
          devices.map(({ deviceId }) => deviceId).toSorted()
        )
        const turns = claimed.flat().toSorted((a, b) => a.place - b.place)
        for (const turn of turns) assert.deepStrictEqual(turn.bulk, bulk)
        const [first, second, ...rest] = turns
        const messageId = yield* enqueue(first!)
        yield* store.settle([
          { turn: first!, messageId, reason: "" },
          { turn: second!, messageId: null, reason: "params.power: Expected 0 or 1" }
        ], epoch + 5)
        assert.deepStrictEqual(yield* claim(bulk, { now: epoch + 59_999 }), [])
        const again = yield* claim(bulk, { now: epoch + 60_000, again: epoch + 120_000 })
        assert.deepStrictEqual(again.map(({ place }) => place), rest.map(({ place }) => place))
        // An outcome that comes late or twice has no effect.
        yield* store.settle([{ turn: first!, messageId: null, reason: "late" }], epoch + 6)
        const { counts } = Option.getOrThrow(yield* store.get(projectId, bulk.bulkId))
        assert.deepStrictEqual(counts, { pending: 28, queued: 1, failed: 1 })
        const [failed] = (yield* store.devices(bulk.bulkId, "failed", page)).items
        assert.deepInclude(failed, {
          deviceId: second!.deviceId,
          messageId: null,
          code: null,
          reason: "params.power: Expected 0 or 1"
        })
        yield* store.settle(again.map((turn) => ({ turn, messageId: null, reason: "x" })), epoch + 7)
        const ended = Option.getOrThrow(yield* store.get(projectId, bulk.bulkId))
        assert.deepInclude(ended.bulk, { status: "completed", updatedAt: epoch + 7 })
        const paged = yield* store.devices(bulk.bulkId, "failed", { page: 2, pageSize: 20 })
        assert.deepStrictEqual([paged.total, paged.items.length], [29, 9])
        assert.strictEqual(paged.items.at(-1)!.deviceId, devices.at(-1)!.deviceId)
      }))

    it.effect("gives turns that a clock which was ahead has given to the next caller", () =>
      Effect.gen(function*() {
        const { devices, product: { projectId } } = yield* insertMany(2)
        const bulk = yield* create(projectId, named(devices))
        const hour = 3_600_000
        const claimed = yield* claim(bulk, { now: epoch + hour, again: epoch + hour + 60_000 })
        assert.deepStrictEqual(yield* claim(bulk), claimed)
        // Clocks of nodes differ by little.
        assert.deepStrictEqual(yield* claim(bulk, { now: epoch - 5000, again: epoch + 55_000 }), [])
      }))

    it.effect("counts the bulk commands of a project that have turns", () =>
      Effect.gen(function*() {
        const store = yield* BulkCommandStore
        const { devices, product: { projectId } } = yield* insertMany(1)
        const bulk = yield* create(projectId, named(devices))
        yield* create(projectId, named(devices))
        assert.strictEqual(yield* store.countUnderWay(projectId), 2)
        yield* store.cancel(bulk.bulkId, epoch + 1)
        assert.strictEqual(yield* store.countUnderWay(projectId), 1)
        assert.strictEqual(yield* store.countUnderWay((yield* insertProject).id), 0)
      }))

    it.effect("shows the state of the command, and of one that is gone", () =>
      Effect.gen(function*() {
        const store = yield* BulkCommandStore
        const { devices, product: { projectId } } = yield* insertMany(2)
        const bulk = yield* create(projectId, named(devices))
        const turns = yield* claim(bulk)
        const [one, two] = [yield* enqueue(turns[0]!), yield* enqueue(turns[1]!)]
        yield* store.settle([{ turn: turns[0]!, messageId: one, reason: "" }, {
          turn: turns[1]!,
          messageId: two,
          reason: ""
        }], epoch + 1)
        yield* (yield* CommandStore).advance([{
          deviceId: devices[0]!.deviceId,
          messageId: one!,
          state: "failed",
          code: 6200,
          message: "no such thing",
          data: {},
          at: epoch + 2
        }])
        yield* (yield* DeviceStore).remove(projectId, devices[1]!.deviceId)
        assert.deepStrictEqual((yield* store.devices(bulk.bulkId, undefined, page)).items, [
          {
            deviceId: devices[0]!.deviceId,
            deviceName: devices[0]!.deviceName,
            state: "failed",
            messageId: one,
            code: 6200,
            reason: "no such thing"
          },
          {
            deviceId: devices[1]!.deviceId,
            deviceName: devices[1]!.deviceName,
            state: "gone",
            messageId: two,
            code: null,
            reason: ""
          }
        ])
      }))

    it.effect("a cancelled one asks no more, and has turns for its commands, also for one that is made meanwhile", () =>
      Effect.gen(function*() {
        const store = yield* BulkCommandStore
        const { devices, product: { projectId } } = yield* insertMany(4)
        const bulk = yield* create(projectId, named(devices))
        const turns = yield* claim(bulk)
        const asked = yield* enqueue(turns[0]!)
        yield* store.settle([{ turn: turns[0]!, messageId: asked, reason: "" }], epoch + 1)
        assert.isTrue(yield* store.cancel(bulk.bulkId, epoch + 2))
        assert.isFalse(yield* store.cancel(bulk.bulkId, epoch + 3))
        // Another node was asking two devices when it was cancelled.
        const late = yield* enqueue(turns[1]!)
        yield* store.settle(
          [{ turn: turns[1]!, messageId: late, reason: "" }, { turn: turns[2]!, messageId: null, reason: "refused" }],
          epoch + 4
        )
        const cancels = yield* claim(bulk, { now: epoch + 5 })
        assert.deepStrictEqual(cancels.map(({ cancels }) => cancels), [asked, late])
        yield* store.settle(cancels.map((turn) => ({ turn, messageId: turn.cancels, reason: "" })), epoch + 6)
        assert.deepStrictEqual(yield* claim(bulk, { now: epoch + 999_999 }), [])
        const { bulk: ended, counts } = Option.getOrThrow(yield* store.get(projectId, bulk.bulkId))
        assert.deepInclude(ended, { status: "cancelled", updatedAt: epoch + 6 })
        assert.deepStrictEqual(counts, { queued: 2, cancelled: 2 })
        assert.strictEqual(yield* store.countUnderWay(projectId), 0)
      }))

    it.effect("a cancelled one has turns for commands that were made and whose outcome nobody has stored", () =>
      Effect.gen(function*() {
        const store = yield* BulkCommandStore
        const { devices, product: { projectId } } = yield* insertMany(3)
        const sibling = yield* create(projectId, named(devices))
        const [other] = yield* claim(sibling)
        yield* enqueue(other!)
        const bulk = yield* create(projectId, named(devices))
        // A node asks two devices, and is killed.
        const turns = yield* claim(bulk)
        const made = [yield* enqueue(turns[1]!), yield* enqueue(turns[2]!)]
        assert.isTrue(yield* store.cancel(bulk.bulkId, epoch + 2))
        assert.deepStrictEqual(
          Option.getOrThrow(yield* store.get(projectId, bulk.bulkId)).counts,
          { queued: 2, cancelled: 1 }
        )
        assert.deepStrictEqual(Option.getOrThrow(yield* store.get(projectId, sibling.bulkId)).counts, { pending: 3 })
        // It was not killed.
        yield* store.settle([{ turn: turns[1]!, messageId: made[0]!, reason: "" }], epoch + 3)
        const cancels = yield* claim(bulk, { now: epoch + 4 })
        assert.deepStrictEqual(cancels.map(({ cancels }) => cancels), made)
        yield* store.settle(cancels.map((turn) => ({ turn, messageId: turn.cancels, reason: "" })), epoch + 5)
        assert.deepStrictEqual(yield* claim(bulk, { now: epoch + 999_999 }), [])
        yield* store.cancel(sibling.bulkId, epoch + 6)
      }))

    it.effect("serves those that have waited longest, and so many devices of each", () =>
      Effect.gen(function*() {
        const store = yield* BulkCommandStore
        const { devices, product: { projectId } } = yield* insertMany(5)
        // One without turns takes the place of none.
        const ended = yield* create(projectId, named(devices), epoch - 1001)
        yield* store.cancel(ended.bulkId, epoch)
        // Older than what other tests leave behind.
        const [one, two] = [
          yield* create(projectId, named(devices), epoch - 1000),
          yield* create(projectId, named(devices), epoch - 999)
        ]
        const next = (now: number) => store.claim({ now, again: epoch + 60_000, bulks: 1, perBulk: 2 })
        const served = [yield* next(epoch - 998), yield* next(epoch - 997), yield* next(epoch - 996)]
        assert.deepStrictEqual(
          served.map((turns) => turns.map(({ bulk, deviceId }) => [bulk.bulkId, deviceId])),
          [
            [[one.bulkId, devices[0]!.deviceId], [one.bulkId, devices[1]!.deviceId]],
            [[two.bulkId, devices[0]!.deviceId], [two.bulkId, devices[1]!.deviceId]],
            [[one.bulkId, devices[2]!.deviceId], [one.bulkId, devices[3]!.deviceId]]
          ]
        )
        yield* store.cancel(one.bulkId, epoch)
        yield* store.cancel(two.bulkId, epoch)
      }))

    it.effect("removes those whose commands were over long ago, a part at a time, and no other", () =>
      Effect.gen(function*() {
        const store = yield* BulkCommandStore
        const { devices, product: { projectId } } = yield* insertMany(3)
        const [ended, second, waiting, running] = [
          yield* create(projectId, named(devices)),
          yield* create(projectId, named(devices)),
          yield* create(projectId, named(devices)),
          yield* create(projectId, named(devices), epoch - 100)
        ]
        const over = epoch - 10 + ended.ttl * 1000
        for (const { bulkId } of [ended, second]) yield* store.cancel(bulkId, epoch - 10)
        yield* store.cancel(waiting.bulkId, epoch - 9)
        const prune = (before: number) => store.prune({ before, limit: 1 })
        assert.deepStrictEqual(
          [yield* prune(over), yield* prune(over + 1), yield* prune(over + 1), yield* prune(over + 1)],
          [0, 1, 1, 0]
        )
        for (const { bulkId } of [ended, second]) assert.isTrue(Option.isNone(yield* store.get(projectId, bulkId)))
        assert.isTrue(Option.isSome(yield* store.get(projectId, waiting.bulkId)))
        assert.isTrue(Option.isSome(yield* store.get(projectId, running.bulkId)))
        assert.strictEqual((yield* store.devices(ended.bulkId, undefined, page)).total, 0)
        yield* store.settle(
          [{ turn: { bulk: ended, place: 0, cancels: null }, messageId: null, reason: "late" }],
          epoch
        )
      }))
  })
