/**
 * The laws of `JobStore`.
 */
import {
  type AssignedTask,
  type Device,
  type DeviceCloud,
  DeviceId,
  DeviceStore,
  type JobScope,
  JobStore,
  type JobTaskReport,
  type NewJob,
  PresenceStore,
  type Product,
  ProductStore,
  ProjectId,
  ProjectStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import { assertPages, epoch, insertDevices, insertProduct, newDevice, unique } from "./Samples.ts"

const draft = ({ projectId }: Product, fields: Partial<NewJob> = {}): NewJob => ({
  projectId,
  name: "Calibrate",
  description: "",
  document: { operation: "calibrate", zero: "\u0000" },
  timeout: 0,
  productKey: null,
  createdAt: epoch,
  ...fields
})

/** A product with devices, and a job for all of them. */
const insertJob = Effect.fnUntraced(function*(count: number, fields: Partial<NewJob> = {}) {
  const product = yield* insertProduct
  const devices = yield* insertDevices(product, Array.from({ length: count }, () => newDevice()))
  const created = yield* create(product, { _tag: "Product", productKey: product.productKey }, fields)
  return { product, devices, job: created }
})

const create = Effect.fnUntraced(function*(product: Product, scope: JobScope, fields: Partial<NewJob> = {}) {
  const created = yield* (yield* JobStore).create(draft(product, fields), scope, 5)
  assert.strictEqual(created._tag, "Created")
  return (created as typeof created & { readonly _tag: "Created" }).job
})

const report = (
  { deviceId }: Device,
  jobId: number,
  state: JobTaskReport["state"],
  fields: Partial<JobTaskReport> = {}
): JobTaskReport => ({ deviceId, jobId, state, progress: undefined, details: undefined, at: epoch + 1000, ...fields })

const online = ({ deviceId }: Device) =>
  Effect.flatMap(PresenceStore, (store) =>
    store.record([
      { _tag: "Online", deviceId, connectionId: unique("c"), nodeId: "node", ip: "192.0.2.1", at: epoch }
    ]))

const told = (tasks: ReadonlyArray<AssignedTask>) => Effect.flatMap(JobStore, (store) => store.told(tasks, epoch + 500))

const statesOf = (tasks: ReadonlyArray<AssignedTask>) => tasks.map(({ jobId, state }) => [jobId, state] as const)

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`JobStore: ${name}`, (it) => {
    it.effect("creates a job with a task for each of its devices, or nothing", () =>
      Effect.gen(function*() {
        const store = yield* JobStore
        const product = yield* insertProduct
        const other = yield* insertProduct
        const [one, two] = yield* insertDevices(product, [newDevice(), newDevice()])
        const [foreign] = yield* insertDevices(other, [newDevice()])
        const unknown = [foreign!.deviceId, DeviceId.make("missing")]
        const refused = yield* store.create(
          draft(product),
          { _tag: "Named", deviceIds: [one!.deviceId, ...unknown] },
          5
        )
        assert.deepStrictEqual(refused, { _tag: "Unknown", deviceIds: unknown })
        const projectId = ProjectId.make("missing")
        const nowhere = { ...draft(product), projectId }
        const scope = { _tag: "Product", productKey: product.productKey } as const
        assert.deepStrictEqual(yield* store.create(nowhere, scope, 5), { _tag: "NoProject" })
        assert.deepStrictEqual(yield* store.list(projectId, { page: 1, pageSize: 10 }), { items: [], total: 0 })
        assert.deepStrictEqual(yield* store.list(product.projectId, { page: 1, pageSize: 10 }), { items: [], total: 0 })
        const named = yield* create(product, { _tag: "Named", deviceIds: [two!.deviceId] })
        assert.deepStrictEqual(named, { ...draft(product), jobId: named.jobId, status: "in_progress" })
        const all = yield* create(product, { _tag: "Product", productKey: product.productKey }, {
          productKey: product.productKey
        })
        const empty = yield* create(other, { _tag: "Product", productKey: product.productKey })
        assert.strictEqual(empty.status, "completed")
        yield* assertPages((page) => store.list(product.projectId, page), [all, named])
        const { items, total } = yield* store.tasks(all.jobId, undefined, { page: 1, pageSize: 10 })
        assert.deepStrictEqual(
          items.map(({ deviceId }) => deviceId),
          [one!.deviceId, two!.deviceId].toSorted((a, b) => (a < b ? -1 : 1))
        )
        yield* assertPages((page) => store.tasks(all.jobId, undefined, page), items)
        const large = yield* insertProduct
        const many = yield* insertDevices(large, Array.from({ length: 8 }, () => newDevice()))
        const { jobId } = yield* create(large, { _tag: "Named", deviceIds: many.map(({ deviceId }) => deviceId) })
        const ordered = yield* store.tasks(jobId, undefined, { page: 1, pageSize: 10 })
        assert.deepStrictEqual(
          ordered.items.map(({ deviceId }) => deviceId),
          many.map(({ deviceId }) => deviceId).toSorted((a, b) => (a < b ? -1 : 1))
        )
        yield* assertPages((page) => store.tasks(jobId, undefined, page), ordered.items)
        assert.deepStrictEqual(items[0], {
          jobId: all.jobId,
          deviceId: items[0]!.deviceId,
          state: "queued",
          progress: 0,
          details: {},
          createdAt: epoch,
          updatedAt: epoch
        })
        assert.deepStrictEqual([total, yield* store.get(other.projectId, all.jobId)], [2, Option.none()])
        const found = Option.getOrThrow(yield* store.get(product.projectId, all.jobId))
        assert.deepInclude(found.counts, { queued: 2, sent: 0, succeeded: 0 })
        assert.deepStrictEqual(found.job, all)
      }))

    it.effect("counts the jobs of a project that are in progress", () =>
      Effect.gen(function*() {
        const store = yield* JobStore
        const { devices: [device], job, product } = yield* insertJob(1)
        yield* create(product, { _tag: "Named", deviceIds: [device!.deviceId] })
        const count = store.countUnderWay(product.projectId)
        assert.strictEqual(yield* count, 2)
        yield* store.report([report(device!, job.jobId, "succeeded")])
        assert.strictEqual(yield* count, 1)
        assert.strictEqual(yield* store.countUnderWay((yield* insertProduct).projectId), 0)
      }))

    it.effect("a task moves with what its device says, and keeps its end", () =>
      Effect.gen(function*() {
        const store = yield* JobStore
        const { devices: [device, other], job, product } = yield* insertJob(2)
        const { jobId } = job
        const sibling = yield* create(product, { _tag: "Product", productKey: product.productKey })
        const details = { step: "1", zero: "\u0000" }
        const outcomes = yield* store.report([
          report(device!, jobId, "in_progress", { progress: 40, details }),
          report(other!, jobId, "rejected"),
          report(device!, jobId + 1_000_000, "failed")
        ])
        assert.deepStrictEqual(outcomes, ["stored", "stored", "unknown"])
        const read = Effect.map(store.task(device!.deviceId, jobId), Option.getOrThrow)
        const { deviceId } = device!
        assert.deepStrictEqual(yield* read, {
          jobId,
          deviceId,
          state: "in_progress",
          progress: 40,
          details,
          createdAt: epoch,
          updatedAt: epoch + 1000,
          document: draft(product).document
        })
        assert.deepStrictEqual(yield* store.ofDevices([deviceId], "open", 1), [yield* read])
        // What a report leaves out stays, and new details take the place of the stored ones.
        yield* store.report([report(device!, jobId, "in_progress", { details: { other: "2" } })])
        assert.deepInclude(yield* read, { progress: 40, details: { other: "2" } })
        yield* store.report([report(device!, jobId, "in_progress", { details })])
        assert.deepStrictEqual(yield* store.report([report(device!, jobId, "succeeded", { progress: 100 })]), [
          "stored"
        ])
        // Once more, since the reply was lost.
        assert.deepStrictEqual(yield* store.report([report(device!, jobId, "succeeded", { at: epoch + 2000 })]), [
          "stored"
        ])
        assert.deepStrictEqual(yield* store.report([report(device!, jobId, "in_progress", { progress: 1 })]), ["ended"])
        assert.deepInclude(yield* read, { state: "succeeded", progress: 100, details, updatedAt: epoch + 1000 })
        const found = Option.getOrThrow(yield* store.get(product.projectId, jobId))
        assert.deepInclude(found.counts, { succeeded: 1, rejected: 1, in_progress: 0, queued: 0 })
        assert.deepInclude(Option.getOrThrow(yield* store.task(other!.deviceId, jobId)), { progress: 0 })
        const untouched = Option.getOrThrow(yield* store.task(deviceId, sibling.jobId))
        assert.deepInclude(untouched, { state: "queued", progress: 0, details: {} })
        assert.strictEqual(found.job.status, "completed")
        assert.isFalse(yield* store.cancel(jobId, epoch))
        const ended = yield* store.tasks(jobId, "rejected", { page: 1, pageSize: 10 })
        assert.deepStrictEqual([ended.total, ended.items[0]?.deviceId], [1, other!.deviceId])
        assert.isTrue(yield* store.remove(jobId))
        assert.isTrue(Option.isNone(yield* store.get(product.projectId, jobId)))
      }))

    it.effect("each device is told of new tasks and of those that the cloud has ended", () =>
      Effect.gen(function*() {
        const store = yield* JobStore
        const { devices: [one, two], job: { jobId }, product } = yield* insertJob(2)
        const second = yield* create(product, { _tag: "Named", deviceIds: [one!.deviceId] })
        const ofOne = (choice: "open" | "untold" | "waiting", limit = 10) =>
          store.ofDevices([one!.deviceId, DeviceId.make("missing")], choice, limit)
        assert.deepStrictEqual(statesOf(yield* ofOne("untold")), [[jobId, "queued"], [second.jobId, "queued"]])
        assert.deepStrictEqual(statesOf(yield* ofOne("waiting", 1)), [[jobId, "queued"]])
        const both = yield* store.ofDevices([one!.deviceId, two!.deviceId], "open", 1)
        assert.sameMembers(both.map(({ deviceId }) => deviceId), [one!.deviceId, two!.deviceId])
        assert.deepInclude(both[0], { document: draft(product).document })
        yield* told(yield* ofOne("untold", 1))
        assert.deepStrictEqual(statesOf(yield* ofOne("untold")), [[second.jobId, "queued"]])
        assert.deepStrictEqual(statesOf(yield* ofOne("waiting")), [[jobId, "sent"], [second.jobId, "queued"]])
        assert.deepInclude((yield* ofOne("waiting", 1))[0], { updatedAt: epoch + 500 })
        yield* store.report([report(one!, second.jobId, "in_progress")])
        assert.deepStrictEqual(statesOf(yield* ofOne("waiting")), [[jobId, "sent"]])
        assert.deepStrictEqual(statesOf(yield* ofOne("open")), [[jobId, "sent"], [second.jobId, "in_progress"]])
        const stale = yield* ofOne("open")
        assert.isTrue(yield* store.cancel(second.jobId, epoch + 1))
        assert.isFalse(yield* store.cancel(second.jobId, epoch + 2))
        // A device that was told of another state has still to be told of this one.
        yield* told(stale)
        assert.deepStrictEqual(statesOf(yield* ofOne("untold")), [[second.jobId, "cancelled"]])
        yield* told(yield* ofOne("untold"))
        assert.deepStrictEqual(yield* ofOne("untold"), [])
        // The other device has never heard of the job.
        assert.isTrue(yield* store.cancel(jobId, epoch + 3))
        assert.deepStrictEqual(yield* store.ofDevices([two!.deviceId], "untold", 10), [])
        const cancelled = Option.getOrThrow(yield* store.get(product.projectId, jobId))
        assert.deepStrictEqual([cancelled.job.status, cancelled.counts.cancelled], ["cancelled", 2])
        assert.deepStrictEqual(yield* store.report([report(two!, jobId, "succeeded")]), ["ended"])
        yield* create(product, { _tag: "Product", productKey: product.productKey })
        const untold = store.ofDevices([one!.deviceId, two!.deviceId], "untold", 10)
        yield* told(yield* untold)
        assert.deepStrictEqual(yield* untold, [])
      }))

    it.effect("a device that is told of a task while that is cancelled has still to be told of the end", () =>
      Effect.gen(function*() {
        const store = yield* JobStore
        // The due tasks of other tests.
        yield* store.claimDue({ now: epoch * 2, late: 0, again: epoch * 3, limit: 1000 })
        const { devices: [device], job: { jobId } } = yield* insertJob(1)
        yield* online(device!)
        const untold = store.ofDevices([device!.deviceId], "untold", 10)
        const waits = yield* untold
        yield* store.cancel(jobId, epoch + 400)
        assert.deepStrictEqual(yield* untold, [])
        yield* told(waits)
        const ended = yield* untold
        assert.deepStrictEqual(statesOf(ended), [[jobId, "cancelled"]])
        assert.deepInclude(ended[0], { updatedAt: epoch + 400 })
        const claim = (now: number) =>
          Effect.map(
            store.claimDue({ now: epoch + now, late: 0, again: epoch * 3, limit: 10 }),
            (claimed) => claimed.map(({ deviceId }) => deviceId)
          )
        assert.deepStrictEqual([yield* claim(499), yield* claim(500)], [[], [device!.deviceId]])
        // More than one server tells the device.
        for (let time = 0; time < 2; time++) {
          yield* told(ended)
          assert.deepStrictEqual(yield* untold, [])
        }
      }))

    it.effect("what is due is taken once, in its order, and a task in progress ends when its time is over", () =>
      Effect.gen(function*() {
        const store = yield* JobStore
        // The due tasks of other tests.
        yield* store.claimDue({ now: epoch * 2, late: 0, again: epoch * 3, limit: 1000 })
        const { devices: [away, here], job: { jobId } } = yield* insertJob(2, { timeout: 60 })
        yield* online(here!)
        const claim = (now: number, limit = 10) =>
          Effect.map(
            store.claimDue({ now: epoch + now, late: epoch + now - 100, again: epoch + now + 1000, limit }),
            (claimed) => claimed.map(({ deviceId, isOnline }) => [deviceId, isOnline] as const)
          )
        assert.deepStrictEqual(yield* claim(4), [[away!.deviceId, false]])
        const all = yield* Effect.all([claim(5), claim(5)], { concurrency: 2 })
        assert.deepStrictEqual(all.flat(), [[here!.deviceId, true]])
        assert.deepStrictEqual(yield* claim(6), [])
        assert.deepStrictEqual(yield* claim(1005), [[here!.deviceId, true]])
        yield* told(yield* store.ofDevices([here!.deviceId], "untold", 10))
        assert.deepStrictEqual(yield* claim(50_000), [])
        yield* store.report([report(here!, jobId, "in_progress", { at: epoch + 50_000 })])
        // What follows does not prolong it.
        yield* store.report([report(here!, jobId, "in_progress", { at: epoch + 100_000, progress: 7 })])
        assert.deepStrictEqual(yield* claim(109_999), [])
        // Nobody has looked for long: it has more time, and then ends.
        assert.deepStrictEqual(yield* claim(110_101), [])
        assert.deepStrictEqual(yield* claim(111_100), [])
        assert.deepStrictEqual(yield* claim(111_101), [[here!.deviceId, true]])
        const [late] = yield* store.ofDevices([here!.deviceId], "untold", 10)
        assert.deepInclude(late, { state: "timed_out", progress: 7, updatedAt: epoch + 111_101 })
        assert.deepStrictEqual(yield* store.report([report(here!, jobId, "succeeded")]), ["ended"])
        yield* told([late!])
        assert.deepStrictEqual(yield* claim(500_000), [])
        // It still waits for the device that was away.
        assert.deepStrictEqual(statesOf(yield* store.ofDevices([away!.deviceId], "untold", 10)), [[jobId, "queued"]])
        assert.isFalse(yield* store.remove(jobId))
        const { devices: [first, second, third] } = yield* insertJob(3)
        assert.deepStrictEqual(yield* claim(10, 1), [[first!.deviceId, false]])
        assert.deepStrictEqual(yield* claim(10, 1), [[second!.deviceId, false]])
        assert.deepStrictEqual(yield* claim(10), [[third!.deviceId, false]])
      }))

    it.effect("the longest due comes first, of all jobs, the oldest device of each, however late", () =>
      Effect.gen(function*() {
        const store = yield* JobStore
        // The due tasks of other tests.
        yield* store.claimDue({ now: epoch * 2, late: 0, again: epoch * 3, limit: 1000 })
        const { devices: [first], product } = yield* insertJob(1, { createdAt: epoch + 10 })
        const { devices: [earlier] } = yield* insertJob(1, { createdAt: epoch })
        const [second] = yield* insertDevices(product, [newDevice()])
        yield* create(product, { _tag: "Named", deviceIds: [second!.deviceId, first!.deviceId] }, {
          createdAt: epoch + 20
        })
        // Only tasks in progress wait longer if nobody has looked for long.
        const next = Effect.map(
          store.claimDue({ now: epoch + 1000, late: epoch + 900, again: epoch + 2000, limit: 1 }),
          (claimed) => claimed.map(({ deviceId }) => deviceId)
        )
        assert.deepStrictEqual(
          [yield* next, yield* next, yield* next, yield* next, yield* next],
          [[earlier!.deviceId], [first!.deviceId], [first!.deviceId], [second!.deviceId], []]
        )
      }))

    it.effect("a task in progress is due when its time is over, a cancelled one when the device is to hear of it", () =>
      Effect.gen(function*() {
        const store = yield* JobStore
        // The due tasks of other tests.
        yield* store.claimDue({ now: epoch * 2, late: 0, again: epoch * 3, limit: 1000 })
        const endless = yield* insertJob(1)
        const limited = yield* insertJob(2, { timeout: 60 })
        const cancelled = yield* insertJob(2)
        const [[slow], [quick, done], [knowing]] = [endless.devices, limited.devices, cancelled.devices]
        const of = (...devices: ReadonlyArray<Device>) =>
          store.ofDevices(devices.map(({ deviceId }) => deviceId), "open", 10)
        yield* told(yield* of(slow!, quick!, done!, knowing!))
        yield* store.report([
          report(slow!, endless.job.jobId, "in_progress"),
          report(quick!, limited.job.jobId, "in_progress"),
          report(done!, limited.job.jobId, "in_progress")
        ])
        yield* store.report([report(done!, limited.job.jobId, "succeeded")])
        // The device has said it itself: to be told of it changes nothing.
        const before = yield* of(slow!, quick!)
        yield* store.told(before, epoch + 2000)
        assert.deepStrictEqual(yield* of(slow!, quick!), before)
        yield* store.cancel(cancelled.job.jobId, epoch + 3000)
        const claim = (now: number) =>
          Effect.map(
            store.claimDue({ now: epoch + now, late: epoch, again: epoch * 3, limit: 10 }),
            (claimed) => claimed.map(({ deviceId }) => deviceId)
          )
        // The other device has never heard of its task.
        assert.deepStrictEqual([yield* claim(2999), yield* claim(3000)], [[], [knowing!.deviceId]])
        yield* store.told(yield* store.ofDevices([knowing!.deviceId], "untold", 10), epoch + 4000)
        const task = Option.getOrThrow(yield* store.task(knowing!.deviceId, cancelled.job.jobId))
        assert.deepInclude(task, { state: "cancelled", updatedAt: epoch + 3000 })
        assert.deepStrictEqual([yield* claim(60_999), yield* claim(61_000)], [[], [quick!.deviceId]])
        assert.deepStrictEqual(yield* claim(10_000_000), [])
      }))

    it.effect("whatever happens to tasks at once, each has one end", () =>
      Effect.gen(function*() {
        const store = yield* JobStore
        const { devices, job: { jobId }, product } = yield* insertJob(60, { timeout: 1 })
        const ids = devices.map(({ deviceId }) => deviceId)
        const all = yield* store.ofDevices(ids, "untold", 1)
        const reports = (state: JobTaskReport["state"], order: (devices: ReadonlyArray<Device>) => Array<Device>) =>
          store.report(order(devices).map((device) => report(device, jobId, state)))
        const backwards = (devices: ReadonlyArray<Device>) => devices.toReversed()
        const asTheyAre = (devices: ReadonlyArray<Device>) => [...devices]
        yield* Effect.all([
          store.told(all, epoch),
          reports("in_progress", backwards),
          store.claimDue({ now: epoch + 10_000, late: 0, again: epoch + 20_000, limit: 30 }),
          reports("succeeded", asTheyAre),
          store.told(all.toReversed(), epoch),
          store.cancel(jobId, epoch + 1),
          reports("failed", backwards),
          store.claimDue({ now: epoch + 10_000, late: 0, again: epoch + 20_000, limit: 100 }),
          reports("succeeded", backwards)
        ], { concurrency: "unbounded" })
        const { counts } = Option.getOrThrow(yield* store.get(product.projectId, jobId))
        const { cancelled, failed, succeeded, timed_out } = counts
        assert.strictEqual(cancelled + failed + succeeded + timed_out, 60)
        assert.deepStrictEqual(yield* store.ofDevices(ids, "open", 1), [])
      }))

    it.effect("removes jobs whose last task ended long ago, a part at a time, and no other", () =>
      Effect.gen(function*() {
        const store = yield* JobStore
        // This time is earlier than the jobs of other tests.
        const old = epoch - 2_000_000
        const ended = yield* insertJob(3, { createdAt: old })
        const { devices: [first, second], job: open, product } = yield* insertJob(2, { createdAt: old })
        const one = { _tag: "Named", deviceIds: [first!.deviceId] } as const
        const [later, cancelled] = [
          yield* create(product, one, { createdAt: old }),
          yield* create(product, one, { createdAt: old })
        ]
        yield* store.report([
          ...ended.devices.map((device) => report(device, ended.job.jobId, "succeeded", { at: old + 1 })),
          report(first!, open.jobId, "failed", { at: old + 1 }),
          report(first!, later.jobId, "rejected", { at: old + 2 })
        ])
        yield* store.cancel(cancelled.jobId, old + 1)
        const prune = (before: number) => store.prune({ before, limit: 1 })
        assert.deepStrictEqual(
          [yield* prune(old + 1), yield* prune(old + 2), yield* prune(old + 2), yield* prune(old + 2)],
          [0, 1, 1, 0]
        )
        const isStored = (jobId: number) => Effect.map(store.get(product.projectId, jobId), Option.isSome)
        assert.isTrue(Option.isNone(yield* store.get(ended.product.projectId, ended.job.jobId)))
        assert.isTrue(Option.isNone(yield* store.task(ended.devices[0]!.deviceId, ended.job.jobId)))
        assert.deepStrictEqual(
          [yield* isStored(cancelled.jobId), yield* isStored(later.jobId), yield* isStored(open.jobId)],
          [false, true, true]
        )
        assert.isTrue(Option.isSome(yield* store.task(second!.deviceId, open.jobId)))
      }))

    it.effect("tasks go with their devices, jobs with their projects", () =>
      Effect.gen(function*() {
        const store = yield* JobStore
        const { devices: [one, two], job: { jobId }, product } = yield* insertJob(2)
        const { productKey, projectId } = product
        yield* store.report([report(one!, jobId, "succeeded")])
        yield* (yield* DeviceStore).remove(projectId, two!.deviceId)
        const left = Option.getOrThrow(yield* store.get(projectId, jobId))
        assert.deepStrictEqual([left.job.status, left.counts.queued, left.counts.succeeded], ["completed", 0, 1])
        yield* (yield* DeviceStore).remove(projectId, one!.deviceId)
        yield* (yield* ProductStore).remove(projectId, productKey)
        assert.isTrue(Option.isSome(yield* store.get(projectId, jobId)))
        yield* (yield* ProjectStore).remove(projectId)
        assert.isTrue(Option.isNone(yield* store.get(projectId, jobId)))
      }))
  })
