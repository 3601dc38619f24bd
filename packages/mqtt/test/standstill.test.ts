/**
 * A server that has stood still, and what devices had said to it before.
 */
import { DeviceCloud, PresenceTimes } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { CloudState, eventually, Fixtures, LossyNodeBus, SimulatedDevice } from "@device-cloud/testing"
import { MqttTestServer, RawMqttSocket } from "@device-cloud/testing/mqtt"
import { assert, it } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"

const { connectPacket, post } = RawMqttSocket

/** A clock that a test sets ahead: so a process sees that it has stood still. */
const makeClock = () => {
  const clock = Clock.Clock.defaultValue()
  let ahead = 0
  const now = () => clock.currentTimeMillisUnsafe() + ahead
  return {
    standStill: (millis: number) => void (ahead += millis),
    clock: Object.assign(Object.create(clock) as Clock.Clock, {
      currentTimeMillisUnsafe: now,
      currentTimeMillis: Effect.sync(now)
    })
  }
}

/** Two servers of one cloud, of which the first hears nothing of the other one; devices of the first connect by MQTT. */
const servers = Effect.gen(function*() {
  const stores = yield* Layer.build(StorageMemory.layer)
  const { clock, standStill } = makeClock()
  const node = DeviceCloud.layer.pipe(
    Layer.provide(LossyNodeBus.layer(() => ({ lost: 1, doubled: 0, latest: 0 }))),
    Layer.provide(StorageMemory.layerNode),
    Layer.provideMerge(Layer.succeedContext(stores)),
    Layer.provideMerge(PlatformNode.layer),
    Layer.provide(Layer.succeed(PresenceTimes, { beat: 2000, gap: 60_000, silence: 60_000, sweep: 60_000 }))
  )
  const here = yield* Layer.build(
    Layer.fresh(MqttTestServer.layerBroker().pipe(Layer.provideMerge(node))).pipe(
      Layer.provide(Layer.succeed(Clock.Clock, clock))
    )
  )
  const there = yield* Layer.build(Layer.fresh(node))
  return { here, there, standStill }
})

it.live("what lay unread while a server stood still is not stored after what the device has said elsewhere since", () =>
  Effect.gen(function*() {
    const { here, standStill, there } = yield* servers
    const device = yield* Effect.provideContext(Fixtures.createDevice(), here)
    const wire = yield* Effect.provideContext(RawMqttSocket.open(), here)
    yield* wire.write(connectPacket(device), post(device, { n: 1 }, { qos: 1, messageId: 1 }))
    yield* wire.takeN(2)
    const moved = yield* Effect.provideContext(SimulatedDevice.connect(device), there)
    yield* moved.send("thing.event.property.post", { n: 3 })
    standStill(3000)
    yield* wire.write(post(device, { n: 2 }, { qos: 1, messageId: 2 }))
    assert.deepStrictEqual(yield* wire.rest, [])
    assert.deepStrictEqual(yield* Effect.provideContext(CloudState.reported(device), there), { n: 3 })
  }).pipe(Effect.scoped))

it.live("what lay unread while a server stood still is stored, also of a device that has left meanwhile", () =>
  Effect.gen(function*() {
    const { here, standStill } = yield* servers
    const device = yield* Effect.provideContext(Fixtures.createDevice(), here)
    const wire = yield* Effect.provideContext(RawMqttSocket.open(), here)
    yield* wire.write(connectPacket(device), post(device, { n: 1 }, { qos: 1, messageId: 1 }))
    yield* wire.takeN(2)
    standStill(3000)
    const all = Array.from({ length: 50 }, (_, i) => post(device, { n: i + 2 }, { qos: 0 }))
    yield* wire.write(...all, { cmd: "disconnect" })
    yield* wire.rest
    yield* eventually(Effect.provideContext(CloudState.reported(device), here), { until: ({ n }) => n === 51 })
  }).pipe(Effect.scoped))
