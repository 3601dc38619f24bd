import { defaultProjectId, deviceIdentity, Devices, DeviceSessions, Jobs } from "@device-cloud/core"
import { TestCloud } from "@device-cloud/testing"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect } from "effect"
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
})
