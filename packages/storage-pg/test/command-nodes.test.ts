import {
  type Command,
  Commands,
  defaultProjectId,
  DeviceCloud,
  type DeviceIdentity,
  deviceIdentity,
  Devices,
  type DeviceSession,
  DeviceSessions,
  type NodeBus,
  PresenceTimes,
  Shadows
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StoragePg from "@device-cloud/storage-pg"
import { eventually, Fixtures, LossyNodeBus, TestKeyRing } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, type Redacted, Schedule } from "effect"
import { newDatabase } from "../../../vitest.storages.ts"

/** A node on the database. Sweeps are frequent, so that the test need not wait for them. */
const nodeOn = (url: Redacted.Redacted, bus: Layer.Layer<NodeBus, never, NodeBus>) =>
  Layer.build(
    Layer.fresh(
      DeviceCloud.layer.pipe(
        Layer.provide(Layer.provideMerge(bus, StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer)))),
        Layer.provideMerge(PlatformNode.layer),
        Layer.provide(Layer.succeed(PresenceTimes, { ...PresenceTimes.defaultValue(), sweep: 200 }))
      )
    )
  )
type Node = Effect.Success<ReturnType<typeof nodeOn>>

/** What a device has got, in order, whichever node it is connected to. It confirms each message at once. */
class Ledger {
  readonly got: Array<number> = []

  connect(node: Node, device: DeviceIdentity) {
    return Effect.gen({ self: this }, function*() {
      const sessions = yield* DeviceSessions
      const session: DeviceSession = yield* sessions.attach({
        device,
        ip: "192.0.2.7",
        deliver: ({ id }, confirmed) =>
          Effect.sync(() => {
            this.got.push(Number(id))
            confirmed?.()
          }),
        backlog: () => undefined,
        close: () => Effect.suspend(() => sessions.detach(session))
      })
    }).pipe(Effect.provide(node))
  }

  /** Every command has come once, in the order of the ids. */
  check(taken: ReadonlyArray<Command>) {
    return Effect.gen({ self: this }, function*() {
      const ids = taken.map(({ messageId }) => messageId).toSorted((a, b) => a - b)
      yield* eventually(Effect.sync(() => new Set(this.got).size), { until: (size) => size >= ids.length })
      assert.deepStrictEqual(this.got, ids)
    })
  }
}

const createDevice = Effect.gen(function*() {
  const { deviceId } = yield* Fixtures.createDevice(yield* Fixtures.createProduct({ validateType: "none" }))
  return deviceIdentity(yield* (yield* Devices).get(defaultProjectId, { deviceId }))
})

/** Takes `count` messages for the device through the node, some at the same time. */
const take = (node: Node, { deviceId }: DeviceIdentity, count: number) =>
  Effect.forEach(
    Array.from({ length: count }, (_, n) => ({ topic: "n", payload: String(n), encoding: "utf8" }) as const),
    (message) =>
      Effect.flatMap(Commands, (commands) => commands.sendUserMessage(defaultProjectId, deviceId, message)).pipe(
        // A hundred of them are not confirmed yet.
        Effect.retry({ while: ({ _tag }) => _tag === "TooManyCommands", schedule: Schedule.spaced("5 millis") }),
        Effect.map(({ command }) => command),
        Effect.provide(node)
      ),
    { concurrency: 8 }
  )

it.live("a command that is for now or never reaches a device that is connected to another node", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const faithful = LossyNodeBus.layer(() => LossyNodeBus.faultless)
    const [one, two] = [yield* nodeOn(url, faithful), yield* nodeOn(url, faithful)]
    const device = yield* Effect.provide(createDevice, one)
    const { deviceId } = device
    const ledger = new Ledger()
    yield* ledger.connect(one, device)
    const set = Effect.flatMap(Commands, (all) => all.setProperties(defaultProjectId, deviceId, { on: 1 }, { ttl: 0 }))
    const state = ({ messageId }: Command) =>
      Effect.map(
        Effect.flatMap(Commands, (all) => all.get(defaultProjectId, deviceId, messageId)),
        ({ state }) => state
      )
    const command = yield* Effect.provide(set, two)
    assert.strictEqual(
      yield* eventually(Effect.provide(state(command), two), {
        until: (state) => state !== "queued" && state !== "sent"
      }),
      "acked"
    )
    assert.deepStrictEqual(ledger.got, [command.messageId])
    // What the node remembers of the device ends with its connection.
    yield* Effect.flatMap(DeviceSessions, (sessions) => sessions.detach(sessions.session(deviceId)!)).pipe(
      Effect.provide(one)
    )
    const waits = Effect.flatMap(Commands, (all) => all.setProperties(defaultProjectId, deviceId, { on: 2 }))
    yield* Effect.provide(waits, two)
    const desired = Effect.flatMap(Shadows, (shadows) => shadows.get(defaultProjectId, deviceId))
    assert.deepInclude((yield* Effect.provide(desired, two)).shadow.desired["on"], { value: 2 })
    const never = yield* Effect.provide(set, two)
    yield* eventually(Effect.provide(state(never), two), { until: (state) => state === "expired" })
  }).pipe(Effect.scoped))

const buses: ReadonlyArray<readonly [string, LossyNodeBus.Faults]> = [
  ["that loses nothing", LossyNodeBus.faultless],
  ["that loses everything", { ...LossyNodeBus.faultless, lost: 1 }],
  ["that loses, doubles and delays", { lost: 0.2, doubled: 0.3, latest: 30 }]
]

for (const [name, faults] of buses) {
  it.live(`commands that two nodes take for one device come once, in the order of their ids, over a bus ${name}`, () =>
    Effect.gen(function*() {
      const url = yield* newDatabase
      const bus = LossyNodeBus.layer(() => faults)
      const [one, two] = [yield* nodeOn(url, bus), yield* nodeOn(url, bus)]
      const device = yield* Effect.provide(createDevice, one)
      const ledger = new Ledger()
      yield* ledger.connect(one, device)
      const taken = yield* Effect.all([take(one, device, 100), take(two, device, 100)], { concurrency: 2 })
      yield* ledger.check(taken.flat())

      // Commands flow while the device moves there and back.
      const moves = Effect.gen(function*() {
        for (let i = 0; i < 6; i++) {
          yield* ledger.connect([two, one][i % 2]!, device)
          yield* Effect.sleep("20 millis")
        }
      })
      yield* Effect.forkScoped(moves)
      const flowed = yield* Effect.all([take(one, device, 150), take(two, device, 150)], { concurrency: 2 })
      yield* ledger.check([...taken.flat(), ...flowed.flat()])
    }).pipe(Effect.scoped))
}
