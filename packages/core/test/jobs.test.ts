import { defaultProjectId, deviceIdentity, Devices, DeviceSessions, Jobs } from "@device-cloud/core"
import { TestCloud } from "@device-cloud/testing"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Queue } from "effect"
import { TestClock } from "effect/testing"

layer(TestCloud.layer)("jobs of devices", (it) => {
  it.effect("a device is not told of a job that is cancelled while the device gets ready", () =>
    Effect.gen(function*() {
      const [sessions, jobs] = [yield* DeviceSessions, yield* Jobs]
      const { deviceId } = yield* (yield* TestCloud).createDevice()
      const create = (name: string) => jobs.create(defaultProjectId, { name, document: {}, deviceIds: [deviceId] })
      const cancelled = yield* create("Cancelled")
      const wanted = yield* create("Wanted")
      const told: Array<unknown> = []
      const ready = yield* Deferred.make<void>()
      let isReady = false
      const session = yield* sessions.attach({
        device: deviceIdentity(yield* (yield* Devices).get(defaultProjectId, { deviceId })),
        ip: "127.0.0.1",
        deliver: ({ params }) => Effect.sync(() => void told.push(params)),
        backlog: () => isReady ? undefined : Deferred.await(ready),
        close: () => Effect.void
      })
      yield* TestClock.adjust("2 seconds")
      yield* jobs.cancel(defaultProjectId, cancelled.jobId)
      isReady = true
      yield* Deferred.succeed(ready, undefined)
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(told, [
        { task: { taskId: String(wanted.jobId), status: "SENT", jobDocument: {} } }
      ])
      yield* sessions.detach(session)
    }))

  it.effect("a device that comes back to more than ten tasks hears of each once, of more when some have ended", () =>
    Effect.gen(function*() {
      const [cloud, jobs] = [yield* TestCloud, yield* Jobs]
      const device = yield* cloud.createDevice()
      const taskIds: Array<string> = []
      const connect = cloud.connect(device)
      const heard = (connected: Effect.Success<typeof connect>) =>
        Effect.map(
          Effect.andThen(TestClock.adjust("2 seconds"), Queue.clear(connected.received)),
          (messages) =>
            messages.flatMap(({ method, params }) =>
              method === "thing.job.notify"
                ? [(params as { readonly task: { readonly taskId: string } }).task.taskId]
                : []
            )
        )
      const first = yield* connect
      for (let i = 0; i < 13; i++) {
        const { jobId } = yield* jobs.create(defaultProjectId, {
          name: "Calibrate",
          document: {},
          deviceIds: [device.deviceId]
        })
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
})
