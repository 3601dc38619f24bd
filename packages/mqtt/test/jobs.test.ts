import {
  Commands,
  defaultProjectId,
  type Device,
  fieldsText,
  type JobDraft,
  Jobs,
  type JobTaskState,
  Mac
} from "@device-cloud/core"
import { eventually, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Fiber, Queue } from "effect"
import { storages } from "../../../vitest.storages.ts"

const document = { operation: "calibrate", points: [1, 2] }

const create = (draft: Partial<JobDraft>) =>
  Effect.flatMap(Jobs, (jobs) => jobs.create(defaultProjectId, { name: "Calibrate", document, ...draft }))

const createFor = (...devices: ReadonlyArray<Device>) => create({ deviceIds: devices.map(({ deviceId }) => deviceId) })

const cancel = (jobId: number) => Effect.flatMap(Jobs, (jobs) => jobs.cancel(defaultProjectId, jobId))

/** The one task of the job. */
const task = (jobId: number) =>
  Effect.flatMap(Jobs, (jobs) => jobs.tasks(defaultProjectId, jobId, undefined, { page: 1, pageSize: 1 })).pipe(
    Effect.map(({ items }) => items[0]!)
  )

const untilState = (jobId: number, state: JobTaskState) =>
  eventually(task(jobId), { until: (each) => each.state === state })

const notified = (jobId: number, status: string) => ({
  method: "thing.job.notify",
  version: "1.0.0",
  params: { task: { taskId: String(jobId), status, jobDocument: document } }
})

for (const [name, storage] of storages) {
  layer(MqttTestServer.layer(storage), { excludeTestServices: true })(`jobs of MQTT devices on ${name}`, (it) => {
    it.effect("a connected device is told of a job, says how far it is, and ends it", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const connected = yield* MqttDevice.connect(device)
        const { jobId } = yield* createFor(device)
        const { message: { id, ...message }, topic } = yield* connected.take
        assert.strictEqual(topic, connected.topic("thing/job/notify"))
        assert.match(id, /^\d+$/)
        assert.deepStrictEqual(message, notified(jobId, "SENT"))
        yield* connected.say("thing/job/notify_reply", { id, code: 200, data: {} })
        yield* untilState(jobId, "sent")
        const update = (params: object) =>
          connected.request(connected.topic("thing/job/update"), { taskId: String(jobId), ...params })
        const begun = yield* update({ status: "IN_PROGRESS", progress: 10, statusDetails: { step: "1" } })
        assert.deepInclude(begun, { code: 200, data: { taskId: String(jobId) } })
        // Many at once take effect in their order.
        for (let progress = 11; progress <= 40; progress++) {
          yield* connected.say(
            "thing/job/update",
            { id: "9", params: { taskId: String(jobId), status: "IN_PROGRESS", progress } },
            0
          )
        }
        yield* Queue.takeN(connected.received, 30)
        assert.deepInclude(yield* task(jobId), { state: "in_progress", progress: 40, details: { step: "1" } })
        assert.deepInclude(yield* update({ status: "SUCCEEDED", progress: 100 }), { code: 200 })
        assert.deepInclude(yield* update({ status: "SUCCEEDED" }), { code: 200 })
        assert.deepInclude(yield* update({ status: "IN_PROGRESS" }), { code: 409 })
        const { counts, job } = yield* (yield* Jobs).get(defaultProjectId, jobId)
        assert.deepStrictEqual([job.status, counts.succeeded], ["completed", 1])
        assert.deepInclude(yield* task(jobId), { state: "succeeded", progress: 100 })
      }))

    it.effect("a device hears of its jobs when it comes back, also of those that it has said nothing about", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const jobs = [yield* createFor(device), yield* createFor(device)]
        for (let round = 0; round < 2; round++) {
          const connected = yield* MqttDevice.connect(device)
          for (const { jobId } of jobs) {
            assert.deepInclude((yield* connected.take).message, notified(jobId, "SENT"))
          }
          yield* untilState(jobs[1]!.jobId, "sent")
          yield* connected.end
          yield* connected.closed
        }
        const back = yield* MqttDevice.connect(device)
        yield* Queue.takeN(back.received, 2)
        yield* back.request(back.topic("thing/job/update"), { taskId: String(jobs[0]!.jobId), status: "REJECTED" })
        assert.strictEqual((yield* task(jobs[0]!.jobId)).state, "rejected")
      }))

    it.effect("a device asks for the list of its tasks, for the next and for one of them", () =>
      Effect.gen(function*() {
        const [device, other] = yield* Fixtures.createDevices(2)
        const [first, second] = [yield* createFor(device!), yield* createFor(device!, other!)]
        const connected = yield* MqttDevice.connect(device!)
        yield* Queue.takeN(connected.received, 2)
        const get = (taskId: string) =>
          Effect.map(connected.request(connected.topic("thing/job/get"), { taskId }), ({ code, data }) => {
            assert.strictEqual(code, 200)
            return data
          })
        const [one, two] = [String(first.jobId), String(second.jobId)]
        assert.deepStrictEqual(yield* get("$list"), {
          taskId: "$list",
          tasks: [{ taskId: one, status: "SENT" }, { taskId: two, status: "SENT" }]
        })
        assert.deepStrictEqual(yield* get("$next"), {
          taskId: "$next",
          task: { taskId: one, status: "SENT", jobDocument: document }
        })
        for (const status of ["IN_PROGRESS", "FAILED"]) {
          yield* connected.request(connected.topic("thing/job/update"), { taskId: one, status })
        }
        assert.deepInclude(yield* get("$next"), { task: { taskId: two, status: "SENT", jobDocument: document } })
        assert.deepInclude(yield* get(one), { task: { taskId: one, status: "FAILED", jobDocument: document } })
        yield* connected.request(connected.topic("thing/job/update"), { taskId: two, status: "SUCCEEDED" })
        assert.deepStrictEqual(yield* get("$list"), { taskId: "$list", tasks: [] })
        const { jobId } = yield* createFor(other!)
        for (const unknown of ["$next", String(jobId), "0", "x", "9".repeat(16), ""]) {
          assert.deepStrictEqual(yield* get(unknown), { taskId: unknown })
        }
      }))

    it.effect("a sub-device has its tasks, and calls on its user topics, through its gateway", () =>
      Effect.gen(function*() {
        const gateway = yield* Fixtures.createDevice(yield* Fixtures.createProduct({ nodeType: "gateway" }))
        const device = yield* Fixtures.createDevice(yield* Fixtures.createProduct({ nodeType: "gateway-sub" }))
        const connected = yield* MqttDevice.connect(gateway)
        const { deviceName, deviceSecret, productKey } = device
        const fields = { productKey, deviceName, clientId: "sub", timestamp: String(yield* Clock.currentTimeMillis) }
        const sign = (yield* Mac).sign("hmacsha1", deviceSecret, fieldsText(fields))
        const proof = { ...fields, signMethod: "hmacsha1", sign }
        yield* connected.request(connected.topic("thing/topo/add"), [proof])
        const session = `/ext/session/${gateway.productKey}/${gateway.deviceName}/combine/login`
        assert.strictEqual((yield* connected.request(session, proof)).code, 200)
        const { jobId } = yield* createFor(device)
        const topicOf = (rest: string) => MqttDevice.topicOf(device, rest)
        assert.deepInclude(yield* connected.takeFrom(topicOf("thing/job/notify")), notified(jobId, "SENT"))
        const update = { taskId: String(jobId), status: "SUCCEEDED" }
        assert.strictEqual((yield* connected.request(topicOf("thing/job/update"), update)).code, 200)
        assert.strictEqual((yield* task(jobId)).state, "succeeded")
        const commands = yield* Commands
        const message = { topic: "ask", payload: "\"?\"", encoding: "utf8" } as const
        const calling = yield* Effect.forkScoped(
          commands.sendUserMessage(defaultProjectId, device.deviceId, message, { wait: 30 })
        )
        const { topic } = yield* connected.take
        assert.match(topic, new RegExp(`^/ext/rrpc/\\d+/${productKey}/${deviceName}/user/ask$`))
        yield* connected.publish(topic, "here", 1)
        const { command } = yield* Fiber.join(calling)
        assert.deepInclude(command, { state: "succeeded", data: { payload: "here", encoding: "utf8" } })
      }))

    it.effect("what is no report of a task is refused and changes nothing", () =>
      Effect.gen(function*() {
        const [device, other] = yield* Fixtures.createDevices(2)
        const { jobId } = yield* createFor(other!)
        const connected = yield* MqttDevice.connect(device!)
        const code = (params: unknown) =>
          Effect.map(connected.request(connected.topic("thing/job/update"), params), (reply) => reply.code as number)
        const taskId = String(jobId)
        for (const unknown of [taskId, "0", "x", "$next"]) {
          assert.strictEqual(yield* code({ taskId: unknown, status: "SUCCEEDED" }), 404)
        }
        for (
          const wrong of [
            {},
            5,
            { taskId },
            { taskId, status: "QUEUED" },
            { taskId, status: "SUCCEEDED", progress: 101 },
            { taskId, status: "SUCCEEDED", progress: "5" },
            { taskId, status: "SUCCEEDED", statusDetails: [] },
            { taskId, status: "SUCCEEDED", statusDetails: { text: "x".repeat(4097) } }
          ]
        ) {
          assert.strictEqual(yield* code(wrong), 460, JSON.stringify(wrong).slice(0, 80))
        }
        assert.strictEqual((yield* task(jobId)).state, "queued")
      }))

    it.effect("a device that knows of a job is told that it was cancelled, or has taken too long", () =>
      Effect.gen(function*() {
        const product = yield* Fixtures.createProduct()
        const [device, away] = yield* Fixtures.createDevices(2, product)
        const connected = yield* MqttDevice.connect(device!)
        const { jobId } = yield* create({ productKey: product.productKey, timeout: 1 })
        const cancelled = yield* createFor(device!)
        yield* Queue.takeN(connected.received, 2)
        yield* connected.request(connected.topic("thing/job/update"), {
          taskId: String(jobId),
          status: "IN_PROGRESS",
          progress: 5
        })
        yield* untilState(cancelled.jobId, "sent")
        yield* cancel(cancelled.jobId)
        const told = yield* Queue.takeN(connected.received, 2)
        const tasks = told.map(({ message }) => message.params.task)
        assert.sameDeepMembers(tasks, [
          notified(cancelled.jobId, "CANCELLED").params.task,
          notified(jobId, "TIMED_OUT").params.task
        ])
        const { counts, job } = yield* (yield* Jobs).get(defaultProjectId, jobId)
        assert.deepStrictEqual([job.status, counts.timed_out, counts.queued], ["in_progress", 1, 1])
        yield* cancel(jobId)
        // What was cancelled before the device heard of it is no matter to it.
        const late = yield* MqttDevice.connect(away!)
        const last = yield* createFor(away!)
        assert.deepInclude((yield* late.take).message, notified(last.jobId, "SENT"))
      }))
  })
}
