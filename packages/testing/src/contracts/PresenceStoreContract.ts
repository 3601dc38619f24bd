/**
 * The laws of `PresenceStore`.
 */
import {
  type Command,
  CommandStore,
  type Device,
  type DeviceCloud,
  type DeviceId,
  deviceIdentity,
  DeviceStore,
  type Lapse,
  type LostDevice,
  PresenceStore,
  ShadowStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { epoch, insertDevice, insertDevices, insertProduct, newDevice, unique } from "./Samples.ts"

const online = (deviceId: DeviceId, connectionId: string, at: number, nodeId = "node") =>
  ({ _tag: "Online", deviceId, connectionId, nodeId, ip: "192.0.2.7", at }) as const

const offline = (deviceId: DeviceId, connectionId: string, at: number) =>
  ({ _tag: "Offline", deviceId, connectionId, at }) as const

const read = ({ deviceId, projectId }: Device) =>
  Effect.gen(function*() {
    return Option.getOrThrow(yield* (yield* DeviceStore).get(projectId, { deviceId })).device
  })

/** Sets at most `limit` devices offline to which the lapse applies. */
const endLapsed = Effect.fnUntraced(function*(lapse: Lapse, at: number, limit: number) {
  const store = yield* PresenceStore
  const deviceIds = (yield* store.lapsed(lapse, limit)).map(({ deviceId }) => deviceId)
  return yield* store.markOffline({ deviceIds, lapse, at })
})

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(stores)(`PresenceStore: ${name}`, (it) => {
    it.effect("activates a device with its first connection", () =>
      Effect.gen(function*() {
        const store = yield* PresenceStore
        const { device } = yield* insertDevice
        const { deviceId } = device
        assert.deepStrictEqual(yield* store.record([online(deviceId, "c1", epoch + 5)]), [
          { _tag: "Changed", version: 1, activated: true, waiting: false }
        ])
        assert.deepStrictEqual(yield* read(device), {
          ...device,
          status: "online",
          statusVersion: 1,
          statusChangedAt: epoch + 5,
          activatedAt: epoch + 5,
          ip: "192.0.2.7"
        })
        assert.deepStrictEqual(yield* store.record([offline(deviceId, "c1", epoch + 6)]), [
          { _tag: "Changed", version: 2, activated: false, waiting: false }
        ])
        assert.deepStrictEqual(yield* store.record([online(deviceId, "c2", epoch + 7)]), [
          { _tag: "Changed", version: 3, activated: false, waiting: false }
        ])
        const { activatedAt, statusChangedAt } = yield* read(device)
        assert.deepStrictEqual([activatedAt, statusChangedAt], [epoch + 5, epoch + 7])
      }))

    it.effect("ends the time of a device that holds no connection, and of no other", () =>
      Effect.gen(function*() {
        const store = yield* PresenceStore
        const [{ device: seen }, { device: connected }, { device: idle }] = [
          yield* insertDevice,
          yield* insertDevice,
          yield* insertDevice
        ]
        yield* store.markSeen([{ deviceId: seen.deviceId, ip: "192.0.2.8", at: epoch, until: epoch + 90 }])
        yield* store.record([online(connected.deviceId, "c", epoch)])
        const deviceIds = [seen, connected, idle].map(({ deviceId }) => deviceId)
        const lost = yield* store.markOffline({ deviceIds, lapse: { _tag: "NotConnected", deviceIds }, at: epoch + 5 })
        assert.deepStrictEqual(lost.map(({ device, version }) => [device.deviceId, version]), [[seen.deviceId, 2]])
        const statuses = [yield* read(seen), yield* read(connected), yield* read(idle)].map(({ status }) => status)
        assert.deepStrictEqual(statuses, ["offline", "online", "unactive"])
        assert.deepStrictEqual(yield* store.lapsed({ _tag: "NotConnected", deviceIds }, 10), [])
        assert.deepStrictEqual(
          yield* store.markOffline({ deviceIds, lapse: { _tag: "NotConnected", deviceIds }, at: epoch + 6 }),
          []
        )
      }))

    it.effect("counts a device without a connection as online for a time", () =>
      Effect.gen(function*() {
        const store = yield* PresenceStore
        const [{ device }, { device: connected }, { device: disabled }] = [
          yield* insertDevice,
          yield* insertDevice,
          yield* insertDevice
        ]
        // This time is later than every other time in this suite.
        const at = epoch + 7_200_000
        const sighting = ({ deviceId }: Device, seen: number) => ({
          deviceId,
          ip: "192.0.2.8",
          at: seen,
          until: seen + 60
        })
        const mine = (lost: ReadonlyArray<LostDevice>) =>
          lost.flatMap(({ device: { deviceId }, version }) => deviceId === device.deviceId ? [version] : [])
        const expire = (now: number) => Effect.map(endLapsed({ _tag: "SeenUntil", now }, now, 1000), mine)
        yield* store.record([online(connected.deviceId, "c", at)])
        yield* (yield* DeviceStore).update(disabled.projectId, disabled.deviceId, { enabled: false, updatedAt: at })
        const changed = { _tag: "Changed", version: 1, activated: true, waiting: false } as const
        assert.deepStrictEqual(
          yield* store.markSeen([sighting(connected, at + 1), sighting(device, at + 1), sighting(disabled, at + 1)]),
          [{ _tag: "Replaced", waiting: false }, changed, { _tag: "Ignored" }]
        )
        const seen = yield* read(device)
        assert.deepStrictEqual([seen.status, seen.activatedAt, seen.ip], ["online", at + 1, "192.0.2.8"])
        assert.strictEqual((yield* read(connected)).ip, "192.0.2.7")
        assert.deepStrictEqual(yield* store.markSeen([sighting(device, at + 10)]), [{
          _tag: "Replaced",
          waiting: false
        }])
        assert.deepStrictEqual(yield* store.markSeen([sighting(device, at + 5)]), [{
          _tag: "Replaced",
          waiting: false
        }])
        assert.deepStrictEqual(yield* expire(at + 69), [])
        assert.strictEqual((yield* read(device)).status, "online")
        assert.deepStrictEqual(yield* expire(at + 70), [2])
        const { status, statusChangedAt } = yield* read(device)
        assert.deepStrictEqual([status, statusChangedAt], ["offline", at + 70])
        // A connection takes the place of a sighting.
        yield* store.markSeen([sighting(device, at + 80)])
        yield* store.record([online(device.deviceId, "c2", at + 81)])
        assert.deepStrictEqual(yield* expire(at + 10_000), [])
        assert.strictEqual((yield* read(connected)).status, "online")
      }))

    it.effect("tells which connections count, of devices that are enabled", () =>
      Effect.gen(function*() {
        const store = yield* PresenceStore
        const devices = yield* insertDevices(yield* insertProduct, [newDevice(), newDevice(), newDevice()])
        const [first, second, third] = devices.map(({ deviceId }) => deviceId) as [DeviceId, DeviceId, DeviceId]
        yield* store.record([online(first, "c1", epoch), online(second, "c2", epoch), online(third, "c3", epoch)])
        yield* store.record([offline(second, "c2", epoch + 1)])
        assert.deepStrictEqual(
          [...yield* store.connectionsOf([first, second, third, "unknown" as DeviceId])].toSorted(),
          [[first, "c1"], [third, "c3"]].toSorted()
        )
        yield* (yield* DeviceStore).update(devices[0]!.projectId, first, { enabled: false, updatedAt: epoch + 2 })
        assert.deepStrictEqual([...yield* store.connectionsOf([first])], [])
        assert.deepStrictEqual([...yield* store.connectionsOf([])], [])
      }))

    it.effect("says when something waits for a device that comes online", () =>
      Effect.gen(function*() {
        const store = yield* PresenceStore
        const commands = yield* CommandStore
        const [{ device: commanded }, { device: desired }] = [yield* insertDevice, yield* insertDevice]
        const { deviceId, projectId } = commanded
        const waiting = (device: Device, connection: string, at: number) =>
          Effect.map(
            store.record([online(device.deviceId, connection, at)]),
            ([outcome]) => outcome?._tag === "Ignored" ? undefined : outcome?.waiting
          )
        const [command] = yield* commands.enqueue([{
          command: {
            projectId,
            deviceId,
            serviceId: null,
            userTopic: null,
            params: { a: 1 },
            state: "queued",
            createdAt: epoch,
            expiresAt: epoch + 10
          }
        }])
        assert.isTrue(yield* waiting(commanded, "c1", epoch + 5))
        assert.isTrue(yield* waiting(commanded, "c2", epoch + 6))
        assert.isFalse(yield* waiting(commanded, "c3", epoch + 10))
        const { messageId } = command as Command
        yield* commands.advance([
          { deviceId, messageId, state: "acked", code: null, message: "", data: {}, at: epoch + 1 }
        ])
        assert.isTrue(yield* waiting(commanded, "c4", epoch + 5))
        yield* (yield* CommandStore).advance([
          { deviceId, messageId, state: "succeeded", code: 200, message: "", data: {}, at: epoch + 6 }
        ])
        assert.isFalse(yield* waiting(commanded, "c5", epoch + 7))

        assert.isFalse(yield* waiting(desired, "c1", epoch))
        yield* (yield* ShadowStore).modify([{
          deviceId: desired.deviceId,
          modify: (shadow) => [undefined, {
            ...shadow,
            version: 1,
            desired: { a: { value: 1, time: epoch } },
            updatedAt: epoch
          }]
        }])
        assert.isTrue(yield* waiting(desired, "c2", epoch))
      }))

    it.effect("counts the latest connection only", () =>
      Effect.gen(function*() {
        const store = yield* PresenceStore
        const { device } = yield* insertDevice
        const { deviceId } = device
        yield* store.record([online(deviceId, "old", epoch)])
        assert.deepStrictEqual(yield* store.record([online(deviceId, "new", epoch + 1)]), [{
          _tag: "Replaced",
          waiting: false
        }])
        assert.deepStrictEqual(yield* store.record([offline(deviceId, "old", epoch + 2)]), [{ _tag: "Ignored" }])
        const { status, statusChangedAt, statusVersion } = yield* read(device)
        assert.deepStrictEqual([status, statusChangedAt, statusVersion], ["online", epoch, 1])
        assert.deepStrictEqual(yield* store.record([offline(deviceId, "new", epoch + 3)]), [
          { _tag: "Changed", version: 2, activated: false, waiting: false }
        ])
        assert.deepStrictEqual(yield* store.record([offline(deviceId, "new", epoch + 4)]), [{ _tag: "Ignored" }])
      }))

    it.effect("answers in the order of the changes and ignores devices that are disabled or gone", () =>
      Effect.gen(function*() {
        const store = yield* PresenceStore
        const devices = yield* DeviceStore
        const product = yield* insertProduct
        const [kept, disabled, removed, second] = yield* insertDevices(product, [0, 1, 2, 3].map(() => newDevice()))
        yield* devices.update(product.projectId, disabled!.deviceId, { enabled: false, updatedAt: epoch })
        yield* devices.remove(product.projectId, removed!.deviceId)
        const changes = [removed, second, disabled, kept].map((device) => online(device!.deviceId, "c", epoch))
        assert.deepStrictEqual((yield* store.record(changes)).map(({ _tag }) => _tag), [
          "Ignored",
          "Changed",
          "Ignored",
          "Changed"
        ])
        assert.strictEqual((yield* read(disabled!)).status, "unactive")
        assert.deepStrictEqual(yield* store.record([]), [])
      }))

    it.effect("releases the devices of one node, in portions", () =>
      Effect.gen(function*() {
        const store = yield* PresenceStore
        const product = yield* insertProduct
        const node = unique("node")
        const devices = yield* insertDevices(product, [0, 1, 2].map(() => newDevice()))
        const { device: elsewhere } = yield* insertDevice
        yield* store.heartbeat(node, epoch)
        yield* store.record(devices.map(({ deviceId }) => online(deviceId, "c", epoch, node)))
        yield* store.record([online(elsewhere.deviceId, "c", epoch, unique("node"))])
        const portions = yield* Effect.forEach([0, 1, 2], () =>
          endLapsed({ _tag: "NodeStops", nodeId: node }, epoch + 9, 2))
        assert.deepStrictEqual(
          portions.map(({ length }) =>
            length
          ),
          [2, 1, 0]
        )
        const lost = portions.flat().toSorted((a, b) => a.device.deviceId < b.device.deviceId ? -1 : 1)
        const expected = devices.map((device) => ({ device: deviceIdentity({ device, product }), version: 2 }))
          .toSorted((a, b) => a.device.deviceId < b.device.deviceId ? -1 : 1)
        assert.deepStrictEqual(lost, expected)
        for (const device of devices) {
          const { status, statusChangedAt } = yield* read(device)
          assert.deepStrictEqual([status, statusChangedAt], ["offline", epoch + 9])
        }
        assert.strictEqual((yield* read(elsewhere)).status, "online")
        const [late] = yield* store.record([offline(devices[0]!.deviceId, "c", epoch + 10)])
        assert.strictEqual(late?._tag, "Ignored")
      }))

    it.effect("releases the devices of silent nodes and leaves those of live ones", () =>
      Effect.gen(function*() {
        const store = yield* PresenceStore
        const [silent, live] = [unique("node"), unique("node")]
        const { device: lost } = yield* insertDevice
        const { device: kept } = yield* insertDevice
        // This time is later than every other time in this suite.
        const now = epoch + 3_600_000
        yield* store.heartbeat(silent, now)
        yield* store.heartbeat(live, now)
        yield* store.record([online(lost.deviceId, "c", now, silent), online(kept.deviceId, "c", now, live)])
        yield* store.heartbeat(live, now + 60_000)
        const released = yield* endLapsed({ _tag: "NodeSilent", since: now + 30_000 }, now + 60_000, 1000)
        assert.isTrue(released.some(({ device }) => device.deviceId === lost.deviceId))
        assert.strictEqual((yield* read(lost)).status, "offline")
        assert.strictEqual((yield* read(kept)).status, "online")
      }))

    it.effect("sets no device offline to which the lapse applies no longer", () =>
      Effect.gen(function*() {
        const store = yield* PresenceStore
        const { device: { deviceId } } = yield* insertDevice
        const [old, other] = [unique("node"), unique("node")]
        yield* store.record([online(deviceId, "c", epoch, old)])
        const lapse = { _tag: "NodeStops", nodeId: old } as const
        assert.lengthOf(yield* store.lapsed(lapse, 10), 1)
        yield* store.record([online(deviceId, "c2", epoch + 1, other)])
        assert.deepStrictEqual(yield* store.markOffline({ deviceIds: [deviceId], lapse, at: epoch + 2 }), [])
        assert.deepStrictEqual(yield* store.connectionsOf([deviceId]), new Map([[deviceId, "c2"]]))
      }))
  })
