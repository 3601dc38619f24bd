import {
  defaultProjectId,
  type Device,
  DeviceCloud,
  deviceIdentity,
  Devices,
  DeviceSessions,
  type DownlinkMessage,
  Jobs,
  JobStore,
  Uplink
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures, SimulatedDevice, TestCloud } from "@device-cloud/testing"
import { assert, it, layer } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Layer, Queue } from "effect"
import { TestClock } from "effect/testing"
import { cloudWith } from "./FaultyCloud.ts"
import { nodes } from "./StandingNode.ts"

const createJob = (name: string, { deviceId }: Device) =>
  Effect.flatMap(Jobs, (jobs) => jobs.create(defaultProjectId, { name, document: {}, deviceIds: [deviceId] }))

/** Creates jobs one after the other, each when the device has heard of the one before. */
const createJobs = (count: number, device: Device) =>
  createJob("Calibrate", device).pipe(
    Effect.tap(TestClock.adjust("2 seconds")),
    Effect.map(({ jobId }) => String(jobId)),
    Effect.replicateEffect(count)
  )

const idsOf = (messages: ReadonlyArray<DownlinkMessage>): ReadonlyArray<string> =>
  messages.flatMap(({ method, params }) =>
    method === "thing.job.notify" ? [(params as { readonly task: { readonly taskId: string } }).task.taskId] : []
  )

/** Connects a device that takes so many messages, and more after `read`. */
const connectSlow = Effect.fnUntraced(function*({ deviceId }: Device, room: number) {
  const [devices, sessions, uplink] = [yield* Devices, yield* DeviceSessions, yield* Uplink]
  const identity = deviceIdentity(yield* devices.get(defaultProjectId, { deviceId }))
  const received: Array<DownlinkMessage> = []
  const ready = yield* Deferred.make<void>()
  const session = yield* sessions.attach({
    device: identity,
    ip: "127.0.0.1",
    deliver: (message) => Effect.sync(() => void received.push(message)),
    backlog: () => received.length < room || Deferred.isDoneUnsafe(ready) ? undefined : Deferred.await(ready),
    close: () => Effect.void
  })
  yield* Effect.addFinalizer(() => sessions.detach(session))
  return {
    read: Deferred.succeed(ready, undefined),
    told: Effect.map(TestClock.adjust("2 seconds"), () => idsOf(received.splice(0))),
    end: (taskId: string) =>
      Effect.flatMap(Clock.currentTimeMillis, (receivedAt) =>
        uplink.submit({
          device: identity,
          method: "thing.job.update",
          params: { taskId, status: "SUCCEEDED" },
          receivedAt
        }))
  }
})

layer(TestCloud.layer)("jobs of devices", (it) => {
  it.effect("a device is not told of a job that is cancelled while the device gets ready", () =>
    Effect.gen(function*() {
      const device = yield* (yield* TestCloud).createDevice()
      const cancelled = yield* createJob("Cancelled", device)
      const wanted = yield* createJob("Wanted", device)
      const slow = yield* connectSlow(device, 0)
      assert.deepStrictEqual(yield* slow.told, [])
      yield* (yield* Jobs).cancel(defaultProjectId, cancelled.jobId)
      yield* slow.read
      assert.deepStrictEqual(yield* slow.told, [String(wanted.jobId)])
    }))

  it.effect("a device that is told of a job while that is cancelled hears of the end", () =>
    Effect.gen(function*() {
      const device = yield* (yield* TestCloud).createDevice()
      const wanted = yield* createJob("Wanted", device)
      const cancelled = yield* createJob("Cancelled", device)
      const slow = yield* connectSlow(device, 1)
      assert.deepStrictEqual(yield* slow.told, [String(wanted.jobId)])
      yield* (yield* Jobs).cancel(defaultProjectId, cancelled.jobId)
      yield* slow.read
      assert.deepStrictEqual(yield* slow.told, [String(cancelled.jobId), String(cancelled.jobId)])
      assert.deepStrictEqual(yield* slow.told, [])
    }))

  it.effect("a device that comes back to more than ten tasks hears of each once, of more when some have ended", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const device = yield* cloud.createDevice()
      const taskIds: Array<string> = []
      const connect = cloud.connect(device)
      const heard = (connected: Effect.Success<typeof connect>) =>
        Effect.map(Effect.andThen(TestClock.adjust("2 seconds"), Queue.clear(connected.received)), idsOf)
      const first = yield* connect
      for (let i = 0; i < 13; i++) {
        const { jobId } = yield* createJob("Calibrate", device)
        taskIds.push(String(jobId))
        assert.deepStrictEqual(yield* heard(first), [String(jobId)])
      }
      yield* first.disconnect
      const back = yield* connect
      assert.deepStrictEqual(yield* heard(back), taskIds.slice(0, 10))
      const end = (taskId: string) => back.send("thing.job.update", { taskId, status: "SUCCEEDED" })
      yield* end(taskIds[4]!)
      assert.deepStrictEqual(yield* heard(back), taskIds.slice(10, 11))
      yield* end(taskIds[0]!)
      yield* end(taskIds[1]!)
      assert.deepStrictEqual(yield* heard(back), taskIds.slice(11))
      yield* end(taskIds[2]!)
      assert.deepStrictEqual(yield* heard(back), [])
    }))

  it.effect("a device that ends one of more than ten tasks while it is told of them hears of another", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const device = yield* cloud.createDevice()
      const first = yield* cloud.connect(device)
      const taskIds = yield* createJobs(12, device)
      assert.deepStrictEqual(idsOf(yield* Queue.clear(first.received)), taskIds)
      yield* first.disconnect
      const back = yield* connectSlow(device, 4)
      assert.deepStrictEqual(yield* back.told, taskIds.slice(0, 4))
      yield* back.end(taskIds[0]!)
      assert.deepStrictEqual(yield* back.told, [])
      yield* back.read
      assert.deepStrictEqual(yield* back.told, taskIds.slice(4, 11))
    }))

  it.effect("a device is not told of a task that it ends while it is told of others", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const device = yield* cloud.createDevice()
      const first = yield* cloud.connect(device)
      const taskIds = yield* createJobs(3, device)
      yield* first.disconnect
      const back = yield* connectSlow(device, 1)
      assert.deepStrictEqual(yield* back.told, [taskIds[0]!])
      yield* back.end(taskIds[1]!)
      yield* back.read
      assert.deepStrictEqual(yield* back.told, [taskIds[2]!])
    }))

  it.effect("a device hears of each task that is cancelled, and of the tasks that waited behind them", () =>
    Effect.gen(function*() {
      const [cloud, jobs] = [yield* TestCloud, yield* Jobs]
      const device = yield* cloud.createDevice()
      const first = yield* cloud.connect(device)
      const taskIds = yield* createJobs(13, device)
      yield* first.disconnect
      const back = yield* cloud.connect(device)
      const heard = Effect.map(Effect.andThen(TestClock.adjust("5 seconds"), Queue.clear(back.received)), idsOf)
      assert.deepStrictEqual(yield* heard, taskIds.slice(0, 10))
      const cancel = (some: ReadonlyArray<string>) =>
        Effect.forEach(some, (taskId) => jobs.cancel(defaultProjectId, Number(taskId)))
      yield* cancel(taskIds.slice(0, 10))
      assert.deepStrictEqual(yield* heard, taskIds)
      const more = yield* createJobs(9, device)
      yield* Queue.clear(back.received)
      yield* cancel([...taskIds.slice(10), ...more])
      assert.deepStrictEqual(yield* heard, [...taskIds.slice(10), ...more])
    }))
})

it.effect("a device is not told of a task that it ends while its tasks are read", () =>
  Effect.gen(function*() {
    const jobs = yield* Jobs
    const product = yield* Fixtures.createProduct()
    const identity = yield* Fixtures.createDevice(product)
    const create = Effect.map(
      jobs.create(product.projectId, { name: "Calibrate", document: {}, deviceIds: [identity.deviceId] }),
      ({ jobId }) => String(jobId)
    )
    const before = yield* SimulatedDevice.connect(identity)
    const taskIds = [yield* create, yield* create]
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(idsOf(yield* Queue.clear(before.received)), taskIds)
    yield* before.disconnect
    const device = yield* SimulatedDevice.connect(identity)
    yield* TestClock.adjust("2 seconds")
    yield* device.send("thing.job.update", { taskId: taskIds[0], status: "SUCCEEDED" })
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(idsOf(yield* Queue.clear(device.received)), [taskIds[1]!])
  }).pipe(Effect.provide(
    DeviceCloud.layer.pipe(
      Layer.provideMerge(Layer.effect(
        JobStore,
        Effect.map(JobStore, (store) =>
          JobStore.of({
            ...store,
            ofDevices: (...args) => Effect.tap(store.ofDevices(...args), Effect.sleep("10 seconds"))
          }))
      )),
      Layer.provideMerge(StorageMemory.layer),
      Layer.provideMerge(PlatformNode.layer)
    )
  )))

it.effect.each([["2 minutes"], ["35 seconds"]] as const)(
  "a device that ends its task while the store is away until %s has not timed out",
  ([until]) =>
    Effect.gen(function*() {
      const jobs = yield* Jobs
      const product = yield* Fixtures.createProduct()
      const identity = yield* Fixtures.createDevice(product)
      const device = yield* SimulatedDevice.connect(identity)
      const { jobId } = yield* jobs.create(product.projectId, {
        name: "Calibrate",
        document: {},
        timeout: 30,
        deviceIds: [identity.deviceId]
      })
      const report = (status: string) => device.send("thing.job.update", { taskId: String(jobId), status })
      yield* report("IN_PROGRESS")
      yield* TestClock.adjust("10 seconds")
      const reported = yield* Effect.forkChild(report("SUCCEEDED"))
      yield* TestClock.adjust("3 minutes")
      yield* Fiber.join(reported)
      const { counts } = yield* jobs.get(product.projectId, jobId)
      assert.deepInclude(counts, { succeeded: 1, timed_out: 0 })
    }).pipe(Effect.provide(cloudWith({
      on: ["JobStore.claimDue", "JobStore.report"],
      does: "fail",
      during: ["5 seconds", until]
    })))
)

it.effect("a device that ends one of more than ten tasks through another node hears of another", () =>
  Effect.gen(function*() {
    const node = Layer.build(Layer.fresh(DeviceCloud.layer.pipe(Layer.provide(StorageMemory.layerNode))))
    const [here, elsewhere] = [yield* node, yield* node]
    yield* Effect.gen(function*() {
      const jobs = yield* Jobs
      const product = yield* Fixtures.createProduct()
      const triple = yield* Fixtures.createDevice(product)
      const { deviceId } = triple
      const identity = deviceIdentity(yield* (yield* Devices).get(product.projectId, { deviceId }))
      const taskIds = yield* jobs.create(product.projectId, {
        name: "Calibrate",
        document: {},
        deviceIds: [deviceId]
      }).pipe(Effect.map(({ jobId }) => String(jobId)), Effect.replicateEffect(12))
      const device = yield* SimulatedDevice.connect(triple)
      const heard = Effect.andThen(TestClock.adjust("3 seconds"), Effect.map(Queue.clear(device.received), idsOf))
      assert.deepStrictEqual(yield* heard, taskIds.slice(0, 10))
      const end = (taskId: string) =>
        Effect.flatMap(Uplink, (uplink) =>
          uplink.submit({
            device: identity,
            method: "thing.job.update",
            params: { taskId, status: "SUCCEEDED" },
            receivedAt: 0
          })).pipe(Effect.provideContext(elsewhere))
      yield* end(taskIds[3]!)
      assert.deepStrictEqual(yield* heard, taskIds.slice(10, 11))
      yield* end(taskIds[4]!)
      assert.deepStrictEqual(yield* heard, taskIds.slice(11))
    }).pipe(Effect.provideContext(here))
  }).pipe(Effect.provide(Layer.merge(StorageMemory.layer, PlatformNode.layer)), Effect.scoped))

it.effect("a device that has moved from a node that stood still hears of a task that this node finds due", () =>
  Effect.gen(function*() {
    const { elsewhere, here, runs } = yield* nodes
    yield* Effect.gen(function*() {
      const jobs = yield* Jobs
      const product = yield* Fixtures.createProduct()
      const triple = yield* Fixtures.createDevice(product)
      yield* connectSlow(triple, Infinity)
      yield* TestClock.adjust("20 seconds")
      yield* runs.close
      yield* TestClock.adjust("20 seconds")
      const device = yield* connectSlow(triple, Infinity).pipe(Effect.provideContext(elsewhere))
      assert.deepStrictEqual(yield* device.told, [])
      const { jobId } = yield* jobs.create(product.projectId, {
        name: "Calibrate",
        document: {},
        deviceIds: [triple.deviceId]
      })
      yield* runs.open
      assert.deepStrictEqual(yield* device.told, [String(jobId)])
    }).pipe(Effect.provideContext(here))
  }).pipe(Effect.provide(Layer.merge(StorageMemory.layer, PlatformNode.layer)), Effect.scoped))
