import { Commands, defaultProjectId } from "@device-cloud/core"
import { CloudState, type SimulatedDevice, TestCloud } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"

/** A device with these faults. */
const deviceWith = Effect.fnUntraced(
  function*(faults: Omit<SimulatedDevice.DeviceFaults, "seed">, on?: SimulatedDevice.Handlers) {
    const cloud = yield* TestCloud
    const device = yield* cloud.createDevice()
    const options = { faults: { seed: 7, ...faults }, ...on === undefined ? {} : { on } }
    return { cloud, device, connected: yield* cloud.connect(device, options) }
  }
)

it.layer(TestCloud.layer, { excludeTestServices: true })("a simulated device", (it) => {
  it.effect("loses acknowledgements: the cloud delivers again at the next connection", () =>
    Effect.gen(function*() {
      const commands = yield* Commands
      const values: Array<unknown> = []
      const { cloud, device } = yield* deviceWith({ loseAcknowledgements: 1 })
      const { messageId } = yield* commands.setProperties(defaultProjectId, device.deviceId, { power: 1 })
      const read = commands.get(defaultProjectId, device.deviceId, messageId)
      assert.deepInclude(yield* read, { state: "sent", deliveries: 1 })
      yield* cloud.connect(device, { on: { set: (set) => Effect.sync(() => void values.push(set)) } })
      yield* TestClock.adjust("10 seconds")
      assert.deepInclude(yield* read, { state: "succeeded", deliveries: 2 })
      assert.deepStrictEqual(values, [{ power: 1 }])
    }))

  it.effect("sends again what gets no reply, and what it sends may arrive twice", () =>
    Effect.gen(function*() {
      const { connected, device } = yield* deviceWith({ loseReplies: 0.5 })
      const posted = yield* Effect.forkChild(
        Effect.forEach([1, 2, 3, 4, 5, 6], (power) => connected.postProperties({ power }))
      )
      yield* TestClock.adjust("5 minutes")
      yield* Fiber.join(posted)
      const samples = yield* CloudState.samples(device, "power")
      assert.deepStrictEqual([...new Set(samples)], [1, 2, 3, 4, 5, 6])
      assert.isAbove(samples.length, 6)
      const twice = yield* deviceWith({ duplicate: 1 })
      yield* twice.connected.postProperties({ power: 1 })
      assert.deepStrictEqual(yield* CloudState.samples(twice.device, "power"), [1, 1])
    }))

  it.effect("does not come with a fault of a probability that is none", () =>
    Effect.gen(function*() {
      for (const fault of ["duplicate", "loseAcknowledgements", "loseReplies", "reorder"]) {
        const exit = yield* Effect.exit(deviceWith({ [fault]: 2 }))
        assert.strictEqual(
          Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : "",
          `TypeError: faults.${fault}: expected a number from 0 to 1, not 2`
        )
      }
    }))

  it.effect("carries out a command once that arrives twice", () =>
    Effect.gen(function*() {
      let runs = 0
      const { device } = yield* deviceWith({ duplicate: 1 }, {
        services: { count: () => Effect.sync(() => void runs++) }
      })
      yield* Effect.flatMap(
        Commands,
        (commands) => commands.callService(defaultProjectId, device.deviceId, "count", {})
      )
      yield* TestClock.adjust("1 second")
      assert.strictEqual(runs, 1)
    }))

  it.effect("lets messages overtake each other, in the same way in each run", () =>
    Effect.gen(function*() {
      const order = Effect.gen(function*() {
        const { connected, device } = yield* deviceWith({ reorder: 0.4 })
        const values = Array.from({ length: 10 }, (_, i) => i)
        const posted = yield* Effect.forkChild(
          Effect.forEach(values, (power) => connected.postProperties({ power }), { concurrency: "unbounded" })
        )
        yield* TestClock.adjust("2 seconds")
        yield* Fiber.join(posted)
        const samples = yield* CloudState.samples(device, "power")
        assert.sameMembers([...samples], values)
        assert.notDeepEqual([...samples], values)
        return samples
      })
      assert.deepStrictEqual(yield* order, yield* order)
    }))

  it.effect("has a wrong clock until it asks for the time", () =>
    Effect.gen(function*() {
      const { connected } = yield* deviceWith({ clock: -3_600_000 })
      const before = yield* connected.now
      assert.strictEqual(yield* connected.syncTime, -3_600_000)
      assert.strictEqual((yield* connected.now) - before, 3_600_000)
    }))

  it.effect("stands still half open: what it sends gets no reply, what it is sent is not confirmed", () =>
    Effect.gen(function*() {
      const commands = yield* Commands
      const { connected, device } = yield* deviceWith({})
      yield* connected.cut
      const sent = yield* Effect.forkChild(connected.postProperties({ power: 1 }))
      const { messageId } = yield* commands.setProperties(defaultProjectId, device.deviceId, { power: 1 })
      yield* TestClock.adjust("5 minutes")
      assert.isUndefined(sent.pollUnsafe())
      assert.strictEqual((yield* CloudState.device(device)).status, "online")
      assert.strictEqual((yield* commands.get(defaultProjectId, device.deviceId, messageId)).state, "sent")
    }))

  it.effect("reads slowly: the cloud holds back what it has no room for", () =>
    Effect.gen(function*() {
      const commands = yield* Commands
      const { device } = yield* deviceWith({ slowReading: "10 seconds" })
      yield* Effect.forEach(
        Array.from({ length: 20 }, (_, i) => i),
        (level) => commands.setProperties(defaultProjectId, device.deviceId, { level })
      )
      const states = Effect.map(
        commands.list(defaultProjectId, device.deviceId, { page: 1, pageSize: 100 }),
        ({ items }) => items.map(({ state }) => state).sort()
      )
      yield* TestClock.adjust("1 second")
      const early = yield* states
      assert.isAbove(early.filter((state) => state === "queued").length, 5)
      assert.notInclude(early, "acked")
      yield* TestClock.adjust("4 minutes")
      assert.deepStrictEqual([...new Set(yield* states)], ["acked"])
    }))
})
