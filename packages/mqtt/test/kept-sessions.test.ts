import {
  defaultProjectId,
  type Device,
  DeviceId,
  Devices,
  DeviceSessions,
  DeviceStore,
  PresenceStore,
  Products,
  Projects,
  StoreError
} from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { CloudState, eventually, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer, RawMqttSocket } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Latch, Layer } from "effect"
import * as GatedStorage from "./GatedStorage.ts"
import { cut, ping, subscribe } from "./RawPackets.ts"

const { post } = RawMqttSocket
const { topicOf } = MqttDevice

/** Connects with a session that is kept, and subscribes to so many filters. */
const open = Effect.fnUntraced(function*(device: Device, count: number) {
  const wire = yield* RawMqttSocket.connect(device, { clean: false })
  const filters = Array.from({ length: count }, (_, i) => topicOf(device, `thing/service/s${i}`.padEnd(400, "x")))
  yield* wire.write(subscribe(1, ...filters.map((filter) => [filter, 1] as const)))
  const suback = yield* wire.take
  return { wire, granted: suback.cmd === "suback" ? suback.granted : [] }
})

/** {@link open}s a session, and is cut. */
const comeAndGo = Effect.fnUntraced(function*(device: Device, count: number) {
  const { granted, wire } = yield* open(device, count)
  yield* cut(device, wire)
  return granted
})

const deviceOfOtherProject = Effect.gen(function*() {
  const { id } = yield* (yield* Projects).create({ name: "Quiet" })
  const { productKey } = yield* (yield* Products).create(id, Fixtures.productDraft())
  return yield* (yield* Devices).create(id, productKey, {})
})

const isPresent = (device: Device) =>
  Effect.scoped(Effect.map(RawMqttSocket.connect(device, { clean: false }), (wire) => wire.sessionPresent))

layer(MqttTestServer.layer(StorageMemory.layer, { sessionBytes: 256 * 1024 }), { excludeTestServices: true })(
  "sessions that left",
  (it) => {
    it.effect("devices that come and go with thousands of long subscriptions displace the sessions that left first", () =>
      Effect.gen(function*() {
        const devices = yield* Fixtures.createDevices(5)
        // More than the broker grants to a device; each session takes less than half of what all may take.
        for (const device of devices) {
          const granted = yield* comeAndGo(device, 400)
          assert.deepStrictEqual([granted.length, granted.filter((each) => Number(each) < 128).length], [400, 250])
        }
        assert.isFalse(yield* isPresent(devices[0]!))
        assert.isTrue(yield* isPresent(devices.at(-1)!))
      }))

    it.effect("a project with many sessions displaces its own, also of connected devices, and none of another project", () =>
      Effect.gen(function*() {
        const quiet = yield* deviceOfOtherProject
        yield* comeAndGo(quiet, 1)
        const devices = yield* Fixtures.createDevices(10)
        for (const device of devices.slice(0, 5)) yield* comeAndGo(device, 400)
        assert.isFalse(yield* isPresent(devices[0]!))
        assert.isTrue(yield* isPresent(quiet))
        // Together they have more than all may have, while nobody has left.
        const connected = yield* Effect.forEach(devices.slice(5), (device) => open(device, 400))
        assert.isTrue(yield* isPresent(quiet))
        // Their connections do not notice.
        for (const { wire } of connected) {
          yield* wire.write(ping)
          assert.deepInclude(yield* wire.take, { cmd: "pingresp" })
        }
        yield* Effect.forEach(connected, ({ wire }, i) => cut(devices[5 + i]!, wire))
        assert.isFalse(yield* isPresent(devices[5]!))
        assert.isTrue(yield* isPresent(quiet))
      }))

    it.effect("a device that was disabled or deleted has no session any more", () =>
      Effect.gen(function*() {
        const devices = yield* Devices
        const disabled = yield* Fixtures.createDevice()
        yield* comeAndGo(disabled, 1)
        yield* devices.disable(defaultProjectId, disabled.deviceId)
        yield* devices.enable(defaultProjectId, disabled.deviceId)
        assert.isFalse(yield* isPresent(disabled))

        const deleted = yield* Fixtures.createDevice()
        yield* comeAndGo(deleted, 1)
        yield* devices.remove(defaultProjectId, deleted.deviceId)
        // Another device of the same name.
        const again = { ...deleted, deviceId: DeviceId.make(`${deleted.deviceId}x`) }
        yield* (yield* DeviceStore).insertMany(defaultProjectId, deleted.productKey, [again])
        assert.isFalse(yield* isPresent(again))
      }))

    it.effect("a session is not present any more when its device has been at another server since", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const { deviceId } = device
        const store = yield* PresenceStore
        const wire = yield* RawMqttSocket.connect(device, { clean: false })
        const message = post(device, { n: 1 }, { qos: 2, messageId: 7 })
        yield* wire.write(message)
        assert.deepInclude(yield* wire.take, { cmd: "pubrec", messageId: 7 })
        yield* cut(device, wire)
        assert.isTrue(yield* isPresent(device))

        const elsewhere = { deviceId, connectionId: "elsewhere-1", at: yield* Clock.currentTimeMillis }
        yield* store.record([{ _tag: "Online", ...elsewhere, nodeId: "elsewhere", ip: "192.0.2.1" }])
        yield* store.record([{ _tag: "Offline", ...elsewhere }])
        const back = yield* RawMqttSocket.connect(device, { clean: false })
        assert.isFalse(back.sessionPresent)
        // Its session at the other server has completed the identifier.
        yield* back.write(post(device, { n: 2 }, { qos: 2, messageId: 7 }))
        assert.deepInclude(yield* back.take, { cmd: "pubrec", messageId: 7 })
        assert.deepStrictEqual(yield* CloudState.samples(device, "n"), [1, 2])
      }))

    it.effect.each([true, false])(
      "the 65th QoS 2 packet without PUBREL ends the connection (clean: %s)",
      (clean) =>
        Effect.gen(function*() {
          const device = yield* Fixtures.createDevice()
          const wire = yield* RawMqttSocket.connect(device, { clean })
          for (let id = 1; id <= 64; id++) {
            yield* wire.write(post(device, { id }, { qos: 2, messageId: id }))
            assert.deepInclude(yield* wire.take, { cmd: "pubrec", messageId: id })
          }
          // One of them again, and one that takes the place of another.
          yield* wire.write(post(device, { id: 64 }, { qos: 2, messageId: 64, dup: true }))
          assert.deepInclude(yield* wire.take, { cmd: "pubrec", messageId: 64 })
          yield* wire.write({ cmd: "pubrel", messageId: 1 })
          assert.deepInclude(yield* wire.take, { cmd: "pubcomp", messageId: 1 })
          yield* wire.write(post(device, { id: 65 }, { qos: 2, messageId: 65 }))
          assert.deepInclude(yield* wire.take, { cmd: "pubrec", messageId: 65 })
          yield* wire.write(post(device, { id: 66 }, { qos: 2, messageId: 66 }))
          assert.strictEqual(yield* wire.next, undefined)

          // They count on in a session that is kept.
          const next = yield* RawMqttSocket.connect(device, { clean })
          yield* next.write(post(device, { id: 66 }, { qos: 2, messageId: 66 }), ping)
          const packet = yield* next.next
          if (clean) assert.include(["pubrec", "pingresp"], packet?.cmd)
          else assert.notStrictEqual(packet?.cmd, "pubrec")
        })
    )
  }
)

layer(MqttTestServer.layer(StorageMemory.layer, { sessionExpiry: 0 }), { excludeTestServices: true })(
  "sessions that end at once",
  (it) => {
    it.effect("a session whose time is over is not present when its device comes back", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        yield* comeAndGo(device, 1)
        assert.isFalse(yield* isPresent(device))
      }))
  }
)

/** Sends a message of QoS 2, and is cut before the store has it. */
const sendAndGo = Effect.fnUntraced(function*(device: Device, n: number) {
  const wire = yield* RawMqttSocket.connect(device, { clean: false })
  const message = post(device, { n }, { qos: 2, messageId: 21 })
  yield* GatedStorage.gate.close
  yield* wire.write(message, ping)
  assert.deepInclude(yield* wire.take, { cmd: "pingresp" })
  yield* cut(device, wire)
  return message
})

layer(MqttTestServer.layer(GatedStorage.layer), { excludeTestServices: true })(
  "sessions that left while the store stood still",
  (it) => {
    it.effect("a message of QoS 2 that comes again before the store has it takes effect once", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const message = yield* sendAndGo(device, 1)
        const wire = yield* RawMqttSocket.connect(device, { clean: false })
        // Otherwise the device may give its next message the same packet identifier.
        assert.isTrue(wire.sessionPresent)
        yield* wire.write({ ...message, dup: true }, ping)
        assert.deepInclude(yield* wire.take, { cmd: "pingresp" })
        yield* GatedStorage.gate.open
        assert.deepInclude(yield* wire.take, { cmd: "pubrec", messageId: 21 })
        yield* wire.write({ cmd: "pubrel", messageId: 21 })
        assert.deepInclude(yield* wire.take, { cmd: "pubcomp", messageId: 21 })
        assert.deepStrictEqual(yield* CloudState.samples(device, "n"), [1])
      }).pipe(Effect.ensuring(GatedStorage.gate.open)))

    it.effect.each([true, false])(
      "a clean session takes a message with the packet identifier of one before it (stored meanwhile: %s)",
      (isStored) =>
        Effect.gen(function*() {
          const device = yield* Fixtures.createDevice()
          yield* sendAndGo(device, 1)
          const wire = yield* RawMqttSocket.connect(device, { clean: true })
          if (isStored) {
            yield* GatedStorage.gate.open
            yield* wire.write(post(device, { n: 2 }, { qos: 1, messageId: 1 }))
            assert.deepInclude(yield* wire.take, { cmd: "puback", messageId: 1 })
          }
          yield* wire.write(post(device, { n: 3 }, { qos: 2, messageId: 21 }))
          yield* GatedStorage.gate.open
          assert.deepInclude(yield* wire.take, { cmd: "pubrec", messageId: 21 })
          assert.deepStrictEqual(yield* CloudState.samples(device, "n"), isStored ? [1, 2, 3] : [1, 3])
        }).pipe(Effect.ensuring(GatedStorage.gate.open))
    )
  }
)

/** While it is closed, no connection becomes that of its device. */
const doors = Latch.makeUnsafe(true)
/** Whether the store is away, which keeps connections. */
let isAway = false
const away = new StoreError({ operation: "PresenceStore.record", retryable: false, cause: "away" })

const slowPresence = Layer.effect(
  PresenceStore,
  Effect.map(PresenceStore, (store): PresenceStore["Service"] => ({
    ...store,
    record: (...args) =>
      Effect.andThen(doors.await, Effect.suspend(() => isAway ? Effect.fail(away) : store.record(...args)))
  }))
).pipe(Layer.provideMerge(StorageMemory.layer))

layer(MqttTestServer.layer(slowPresence), { excludeTestServices: true })(
  "sessions that begin during a takeover",
  (it) => {
    it.effect("a message of QoS 2 that is sent while the next connection is let in takes effect once", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const before = yield* RawMqttSocket.connect(device, { clean: false })
        yield* doors.close
        const next = yield* RawMqttSocket.open()
        yield* next.write(RawMqttSocket.connectPacket(device, { clean: false }))
        const sessions = yield* DeviceSessions
        yield* eventually(Effect.sync(() => sessions.session(device.deviceId)?.epoch), {
          until: (epoch) => epoch === 0
        })
        const message = post(device, { n: 1 }, { qos: 2, messageId: 3 })
        yield* before.write(message)
        assert.deepInclude(yield* before.take, { cmd: "pubrec", messageId: 3 })
        yield* doors.open
        assert.deepInclude(yield* next.take, { cmd: "connack", returnCode: 0, sessionPresent: true })
        yield* next.write({ ...message, dup: true })
        assert.deepInclude(yield* next.take, { cmd: "pubrec", messageId: 3 })
        assert.deepStrictEqual(yield* CloudState.samples(device, "n"), [1])
        // It is the session of the next connection now.
        yield* cut(device, next)
        assert.isTrue(yield* isPresent(device))
      }).pipe(Effect.ensuring(doors.open)))

    it.effect("of two connections that are let in together the later one stays, also if the earlier one gets a session back", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        yield* comeAndGo(device, 1)
        yield* doors.close
        const sessions = yield* DeviceSessions
        const connect = Effect.fnUntraced(function*(device: Device, clean: boolean) {
          const before = sessions.session(device.deviceId)
          const wire = yield* RawMqttSocket.open()
          yield* wire.write(RawMqttSocket.connectPacket(device, { clean }))
          yield* eventually(Effect.sync(() => sessions.session(device.deviceId)), { until: (now) => now !== before })
          return wire
        })
        // While its connection is stored, the others gather.
        yield* connect(yield* Fixtures.createDevice(), true)
        const earlier = yield* connect(device, false)
        const later = yield* connect(device, true)
        yield* doors.open
        yield* earlier.rest
        assert.deepInclude(yield* later.take, { cmd: "connack", returnCode: 0, sessionPresent: false })
        yield* later.write(ping)
        assert.deepInclude(yield* later.take, { cmd: "pingresp" })
      }).pipe(Effect.ensuring(doors.open)))

    it.effect("a clean connection that is refused because the store is away ends no session", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const { wire } = yield* open(device, 1)
        isAway = true
        const refused = yield* RawMqttSocket.open()
        yield* refused.write(RawMqttSocket.connectPacket(device, { clean: true }))
        assert.deepInclude(yield* refused.take, { cmd: "connack", returnCode: 3 })
        yield* refused.rest
        isAway = false
        // The connection before goes on.
        yield* wire.write(ping)
        assert.deepInclude(yield* wire.take, { cmd: "pingresp" })
        yield* cut(device, wire)
        assert.isTrue(yield* isPresent(device))
      }).pipe(Effect.ensuring(Effect.sync(() => void (isAway = false)))))
  }
)
