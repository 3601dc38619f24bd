/**
 * The laws of `PresenceStore`.
 */
import {
  CommandStore,
  type Device,
  type DeviceCloud,
  type DeviceId,
  deviceIdentity,
  DeviceStore,
  type Enqueued,
  type HeartbeatLimits,
  type Lapse,
  type LostDevice,
  type OwnerClaim,
  type PresenceOutcome,
  PresenceStore,
  ShadowStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { detached } from "./Detached.ts"
import { epoch, insertDevice, insertDevices, insertProduct, newCommand, newDevice, unique } from "./Samples.ts"

const online = (deviceId: DeviceId, connectionId: string, at: number, nodeId = "node") =>
  ({ _tag: "Online", deviceId, connectionId, nodeId, ip: "192.0.2.7", at }) as const

const offline = (deviceId: DeviceId, connectionId: string, at: number) =>
  ({ _tag: "Offline", deviceId, connectionId, at }) as const

const read = ({ deviceId, projectId }: Device) =>
  Effect.gen(function*() {
    return Option.getOrThrow(yield* (yield* DeviceStore).get(projectId, { deviceId })).device
  })

const claimOf = (outcome: PresenceOutcome | undefined): OwnerClaim => {
  if (outcome === undefined || outcome._tag === "Ignored" || outcome.claim === undefined) {
    return assert.fail("there is no claim")
  }
  return outcome.claim
}

/** Shorter than those of a cloud. */
const limits = { silence: 500, gap: 5000 }

/** Lets time pass for stores of either kind: by the clock of the test, and in the world. */
const pass = (millis: number) =>
  Effect.andThen(
    TestClock.adjust(millis),
    Effect.promise(() => new Promise((resolve) => setTimeout(resolve, millis)))
  )

/** Lets a node speak until it may judge others. */
const beatSteadily = Effect.fnUntraced(function*(nodeId: string, limits: HeartbeatLimits) {
  const store = yield* PresenceStore
  for (let passed = 0; passed <= limits.silence; passed += 100) {
    yield* store.heartbeat(nodeId, limits)
    yield* pass(100)
  }
  yield* store.heartbeat(nodeId, limits)
})

/** A node that has been heard for so long that others who have not are silent. */
const steadyJudge = Effect.gen(function*() {
  const nodeId = unique("judge")
  yield* beatSteadily(nodeId, limits)
  return { nodeId, limits }
})

/** Sets at most `limit` devices offline to which the lapse applies. */
const endLapsed = Effect.fnUntraced(function*(lapse: Lapse, at: number, limit: number) {
  const store = yield* PresenceStore
  const deviceIds = (yield* store.lapsed(lapse, limit)).map(({ deviceId }) => deviceId)
  return yield* store.markOffline({ deviceIds, lapse, at })
})

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`PresenceStore: ${name}`, (it) => {
    it.effect("activates a device with its first connection", () =>
      Effect.gen(function*() {
        const store = yield* PresenceStore
        const { device } = yield* insertDevice
        const { deviceId } = device
        const [first] = yield* store.record([online(deviceId, "c1", epoch + 5)])
        assert.deepInclude(first, { _tag: "Changed", version: 1, activated: true })
        assert.deepInclude(claimOf(first), { lastCommand: 0, desiredChanges: 0, waiting: false, previous: undefined })
        assert.deepStrictEqual(yield* read(device), {
          ...device,
          status: "online",
          statusVersion: 1,
          statusChangedAt: epoch + 5,
          activatedAt: epoch + 5,
          ip: "192.0.2.7"
        })
        assert.deepStrictEqual(yield* store.record([offline(deviceId, "c1", epoch + 6)]), [
          { _tag: "Changed", version: 2, activated: false }
        ])
        const [second] = yield* store.record([online(deviceId, "c2", epoch + 7)])
        assert.deepInclude(second, { _tag: "Changed", version: 3, activated: false })
        assert.isAbove(claimOf(second).epoch, claimOf(first).epoch)
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
        yield* store.markSeen([{ deviceId: seen.deviceId, ip: "192.0.2.8", at: epoch, lasts: 90_000 }])
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

    it.effect("counts a device without a connection as online for a time, by the clock of the store", () =>
      Effect.gen(function*() {
        const store = yield* PresenceStore
        const [{ device }, { device: connected }, { device: disabled }] = [
          yield* insertDevice,
          yield* insertDevice,
          yield* insertDevice
        ]
        const judge = yield* steadyJudge
        const sighting = ({ deviceId }: Device, at: number, lasts: number) => ({
          deviceId,
          ip: "192.0.2.8",
          at,
          lasts
        })
        const mine = (lost: ReadonlyArray<LostDevice>) =>
          lost.flatMap(({ device: { deviceId }, version }) => deviceId === device.deviceId ? [version] : [])
        const expire = (at: number) => Effect.map(endLapsed({ _tag: "SightingEnds", judge }, at, 1000), mine)
        yield* store.record([online(connected.deviceId, "c", epoch)])
        yield* (yield* DeviceStore).update(disabled.projectId, disabled.deviceId, { enabled: false, updatedAt: epoch })
        assert.deepStrictEqual(
          yield* store.markSeen([connected, device, disabled].map((each) => sighting(each, epoch + 1, 60_000))),
          [{ _tag: "Replaced" }, { _tag: "Changed", version: 1, activated: true }, { _tag: "Ignored" }]
        )
        const seen = yield* read(device)
        assert.deepStrictEqual([seen.status, seen.activatedAt, seen.ip], ["online", epoch + 1, "192.0.2.8"])
        assert.strictEqual((yield* read(connected)).ip, "192.0.2.7")
        // The later end counts.
        assert.deepStrictEqual(yield* store.markSeen([sighting(device, epoch + 10, 0)]), [{ _tag: "Replaced" }])
        yield* pass(2)
        assert.deepStrictEqual(yield* expire(epoch + 69), [])
        // A connection takes the place of sightings.
        yield* store.record([online(device.deviceId, "c", epoch + 70)])
        yield* store.record([offline(device.deviceId, "c", epoch + 71)])
        yield* store.markSeen([sighting(device, epoch + 72, 0)])
        yield* pass(2)
        assert.deepStrictEqual(
          yield* endLapsed({ _tag: "SightingEnds", judge: { ...judge, nodeId: unique("node") } }, epoch + 73, 1000),
          []
        )
        yield* store.heartbeat(judge.nodeId, judge.limits)
        assert.deepStrictEqual(yield* expire(epoch + 74), [4])
        const { status, statusChangedAt } = yield* read(device)
        assert.deepStrictEqual([status, statusChangedAt], ["offline", epoch + 74])
        yield* store.markSeen([sighting(device, epoch + 80, 0)])
        yield* store.record([online(device.deviceId, "c2", epoch + 81)])
        yield* pass(2)
        yield* store.heartbeat(judge.nodeId, judge.limits)
        assert.deepStrictEqual(yield* expire(epoch + 82), [])
        assert.strictEqual((yield* read(connected)).status, "online")
      }))

    it.effect("tells who owns devices", () =>
      Effect.gen(function*() {
        const store = yield* PresenceStore
        const devices = yield* insertDevices(yield* insertProduct, [newDevice(), newDevice(), newDevice()])
        const [first, second, third] = devices.map(({ deviceId }) => deviceId) as [DeviceId, DeviceId, DeviceId]
        const outcomes = yield* store.record([
          online(first, "c1", epoch, "n1"),
          online(second, "c2", epoch),
          online(third, "c3", epoch, "n3")
        ])
        yield* store.record([offline(second, "c2", epoch + 1)])
        yield* (yield* DeviceStore).update(devices[2]!.projectId, third, { enabled: false, updatedAt: epoch + 2 })
        const owner = (i: number, nodeId: string, enabled: boolean) => ({
          nodeId,
          connectionId: `c${i + 1}`,
          epoch: claimOf(outcomes[i]).epoch,
          lastCommand: 0,
          desiredChanges: 0,
          enabled
        })
        const owners = yield* store.connectionsOf([first, second, third, "unknown" as DeviceId])
        assert.strictEqual(owners.size, 2)
        assert.deepStrictEqual(owners.get(first), owner(0, "n1", true))
        assert.deepStrictEqual(owners.get(third), owner(2, "n3", false))
        assert.deepStrictEqual([...yield* store.connectionsOf([])], [])
      }))

    it.effect("counts what is desired of devices that have been connected", () =>
      Effect.gen(function*() {
        const store = yield* PresenceStore
        const { device: { deviceId } } = yield* insertDevice
        assert.isUndefined(yield* store.noteDesired(deviceId))
        yield* store.record([online(deviceId, "c", epoch, "n")])
        assert.deepStrictEqual(yield* store.noteDesired(deviceId), { nodeId: "n", desiredChanges: 1 })
        yield* store.record([offline(deviceId, "c", epoch)])
        assert.deepStrictEqual(yield* store.noteDesired(deviceId), { nodeId: undefined, desiredChanges: 2 })
        yield* store.record([online(deviceId, "c", epoch, "n")])
        assert.strictEqual((yield* store.connectionsOf([deviceId])).get(deviceId)?.desiredChanges, 2)
        const [outcome] = yield* store.record([online(deviceId, "c2", epoch)])
        assert.strictEqual(claimOf(outcome).desiredChanges, 2)
      }))

    it.effect("hands out larger epochs, and lets a connection go on that had no later owner", () =>
      Effect.gen(function*() {
        const store = yield* PresenceStore
        const { device: { deviceId } } = yield* insertDevice
        const claim = (connectionId: string, nodeId: string, resumes?: number) =>
          Effect.map(
            store.record([{
              ...online(deviceId, connectionId, epoch, nodeId),
              ...resumes === undefined ? {} : { resumes }
            }]),
            ([outcome]) => outcome?._tag === "Ignored" ? undefined : claimOf(outcome)
          )
        const first = yield* claim("a", "A")
        assert.isUndefined(first?.previous)
        const second = yield* claim("b", "B")
        assert.deepStrictEqual(second?.previous, { nodeId: "A" })
        assert.isAbove(second!.epoch, first!.epoch)
        assert.deepStrictEqual([first!.epochBefore, second!.epochBefore], [0, first!.epoch])
        assert.isUndefined(yield* claim("a", "A", first!.epoch))
        yield* store.record([offline(deviceId, "b", epoch + 1)])
        assert.isUndefined(yield* claim("a", "A", first!.epoch))
        const resumed = yield* claim("b", "B", second!.epoch)
        assert.isAbove(resumed!.epoch, second!.epoch)
        assert.isUndefined(resumed!.previous)
        assert.strictEqual(resumed!.epochBefore, second!.epoch)
        // The answer to the call before was lost.
        const [kept] = yield* store.record([{ ...online(deviceId, "b", epoch, "B"), resumes: second!.epoch }])
        assert.strictEqual(kept?._tag, "Kept")
        assert.isAbove(claimOf(kept).epoch, resumed!.epoch)
        assert.isUndefined(claimOf(kept).previous)
        // It replaces nothing that is connected, and is another connection all the same.
        const { device: seen } = yield* insertDevice
        yield* store.markSeen([{ deviceId: seen.deviceId, ip: "192.0.2.8", at: epoch, lasts: 90_000 }])
        assert.strictEqual((yield* store.record([online(seen.deviceId, "c", epoch)]))[0]?._tag, "Replaced")
      }))

    it.effect("tells connections that are stored at the same time which one each of them replaces", () =>
      Effect.gen(function*() {
        const store = yield* PresenceStore
        const { device: { deviceId } } = yield* insertDevice
        const outcomes = yield* Effect.forEach(
          Array.from({ length: 20 }, (_, i) => online(deviceId, `c${i}`, epoch, `node-${i}`)),
          (change) => store.record([change]),
          { concurrency: "unbounded" }
        )
        const claims = outcomes.map(([outcome]) => claimOf(outcome)).toSorted((a, b) => a.epoch - b.epoch)
        assert.deepStrictEqual(
          claims.map(({ epochBefore }) => epochBefore),
          [0, ...claims.slice(0, -1).map(({ epoch }) => epoch)]
        )
      }))

    it.effect("says when something waits for a device that comes online", () =>
      Effect.gen(function*() {
        const store = yield* PresenceStore
        const commands = yield* CommandStore
        const [{ device: commanded }, { device: desired }] = [yield* insertDevice, yield* insertDevice]
        const { deviceId } = commanded
        const waiting = (device: Device, connection: string, at: number) =>
          Effect.map(
            store.record([online(device.deviceId, connection, at)]),
            ([outcome]) => claimOf(outcome).waiting
          )
        const [enqueued] = yield* commands.enqueue([{ command: newCommand(commanded, { expiresAt: epoch + 10 }) }])
        assert.isTrue(yield* waiting(commanded, "c1", epoch + 5))
        assert.isTrue(yield* waiting(commanded, "c2", epoch + 6))
        assert.isFalse(yield* waiting(commanded, "c3", epoch + 10))
        const { messageId } = (enqueued as Enqueued).command
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
        const [replacing] = yield* store.record([online(deviceId, "new", epoch + 1)])
        assert.strictEqual(replacing?._tag, "Replaced")
        assert.deepStrictEqual(claimOf(replacing).previous, { nodeId: "node" })
        assert.deepStrictEqual(yield* store.record([offline(deviceId, "old", epoch + 2)]), [{ _tag: "Ignored" }])
        const { status, statusChangedAt, statusVersion } = yield* read(device)
        assert.deepStrictEqual([status, statusChangedAt, statusVersion], ["online", epoch, 1])
        assert.deepStrictEqual(yield* store.record([offline(deviceId, "new", epoch + 3)]), [
          { _tag: "Changed", version: 2, activated: false }
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
        yield* store.heartbeat(node, limits)
        yield* store.record(devices.map(({ deviceId }) => online(deviceId, "c", epoch, node)))
        yield* store.record([online(elsewhere.deviceId, "c", epoch, unique("node"))])
        const ids = devices.map(({ deviceId }) => deviceId).toSorted((a, b) => (a < b ? -1 : 1))
        const lapsed = (after?: DeviceId) =>
          Effect.map(
            store.lapsed({ _tag: "NodeStops", nodeId: node }, 2, after),
            (found) => found.map(({ deviceId }) => deviceId)
          )
        assert.deepStrictEqual(
          [yield* lapsed(), yield* lapsed(ids[0]), yield* lapsed(ids[1]), yield* lapsed(ids[2])],
          [ids.slice(0, 2), ids.slice(1), ids.slice(2), []]
        )
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
        const [silent, live, unheard] = [unique("node"), unique("node"), unique("node")]
        const devices = [yield* insertDevice, yield* insertDevice, yield* insertDevice].map(({ device }) => device)
        const [lost, kept, never] = devices as [Device, Device, Device]
        yield* store.heartbeat(silent, limits)
        yield* store.record([online(lost.deviceId, "c", epoch, silent), online(kept.deviceId, "c", epoch, live)])
        yield* store.record([online(never.deviceId, "c", epoch, unheard)])
        const judge = yield* steadyJudge
        yield* store.heartbeat(live, limits)
        const found = yield* store.silentNodes(judge)
        assert.include(found, silent)
        assert.notInclude(found, live)
        // It counts as heard now.
        assert.notInclude(found, unheard)
        const release = (nodeId: string) => endLapsed({ _tag: "NodeSilent", nodeId, judge }, epoch + 9, 1000)
        assert.deepStrictEqual(yield* release(live), [])
        assert.deepStrictEqual((yield* release(silent)).map(({ device }) => device.deviceId), [lost.deviceId])
        assert.strictEqual((yield* read(lost)).status, "offline")
        assert.strictEqual((yield* read(kept)).status, "online")
        assert.strictEqual((yield* read(never)).status, "online")
        yield* store.forgetNode({ _tag: "NodeSilent", nodeId: silent, judge })
        const later = yield* steadyJudge
        const silentLater = yield* store.silentNodes(later)
        assert.notInclude(silentLater, silent)
        assert.include(silentLater, unheard)
        // It has devices and is not forgotten.
        yield* store.forgetNode({ _tag: "NodeSilent", nodeId: unheard, judge: later })
        assert.include(yield* store.silentNodes(later), unheard)
        yield* endLapsed({ _tag: "NodeSilent", nodeId: unheard, judge: later }, epoch + 9, 1000)
        yield* store.forgetNode({ _tag: "NodeSilent", nodeId: unheard, judge: later })
      }))

    it.effect("tells a node whether it was silent, and lets no node judge that is not steady", () =>
      Effect.gen(function*() {
        const store = yield* PresenceStore
        const { device: { deviceId } } = yield* insertDevice
        const limits = { silence: 600, gap: 500 }
        const [dead, frozen] = [unique("node"), unique("node")]
        assert.deepStrictEqual(yield* store.heartbeat(frozen, limits), { wasSilent: true })
        assert.deepStrictEqual(yield* store.heartbeat(frozen, limits), { wasSilent: false })
        yield* store.heartbeat(dead, limits)
        yield* store.record([online(deviceId, "c", epoch, dead)])
        yield* pass(limits.silence + 50)
        const judge = { nodeId: frozen, limits }
        const judged = Effect.all([
          Effect.map(store.silentNodes(judge), (nodes) => nodes.includes(dead)),
          Effect.map(store.lapsed({ _tag: "NodeSilent", nodeId: dead, judge }, 10), ({ length }) => length > 0)
        ])
        assert.deepStrictEqual(yield* judged, [false, false])
        assert.deepStrictEqual(yield* store.heartbeat(frozen, limits), { wasSilent: true })
        // Everybody may have been frozen with it, and has time to say that it is alive.
        assert.deepStrictEqual(yield* judged, [false, false])
        yield* beatSteadily(frozen, limits)
        assert.deepStrictEqual(yield* judged, [true, true])
        yield* endLapsed({ _tag: "NodeStops", nodeId: dead }, epoch, 10)
        yield* store.forgetNode({ _tag: "NodeStops", nodeId: dead })
      }))

    it.effect("shows nodes with what they say of themselves, until they are forgotten", () =>
      Effect.gen(function*() {
        const store = yield* PresenceStore
        const [one, two] = [unique("a-node"), unique("b-node")]
        const limits = { silence: 60_000, gap: 30_000 }
        const shown = Effect.map(store.nodes(limits), (nodes) =>
          nodes.filter(({ nodeId }) => [one, two].includes(nodeId)))
        const report = { startedAt: epoch, connections: 7, isDraining: true }
        yield* store.report(one, report)
        assert.deepStrictEqual(yield* shown, [])
        for (const node of [two, one]) {
          yield* store.heartbeat(node, limits)
        }
        yield* store.report(one, report)
        // The next heartbeat leaves what the node has said.
        yield* store.heartbeat(one, limits)
        const [first, second] = yield* shown
        const { heartbeatAt, ...rest } = first!
        assert.deepStrictEqual(rest, { nodeId: one, ...report, isSteady: false, isSilent: false })
        assert.strictEqual(second!.nodeId, two)
        assert.deepStrictEqual([second!.connections, second!.isDraining], [null, false])
        assert.isAtLeast(heartbeatAt, second!.heartbeatAt)
        yield* store.forgetNode({ _tag: "NodeStops", nodeId: one })
        assert.deepStrictEqual(
          (yield* shown).map(({ nodeId }) =>
            nodeId
          ),
          [two]
        )
      }))

    it.effect("sets no device offline to which the lapse applies no longer", () =>
      Effect.gen(function*() {
        const store = yield* PresenceStore
        const { device, product } = yield* insertDevice
        const { deviceId, deviceName, productKey, projectId } = device
        const [old, other] = [unique("node"), unique("node")]
        yield* store.record([online(deviceId, "c", epoch, old)])
        const lapse = { _tag: "NodeStops", nodeId: old } as const
        const lapsed = yield* store.lapsed(lapse, 10)
        assert.lengthOf(lapsed, 1)
        const { validateType } = product
        assert.deepInclude(lapsed[0], { deviceId, deviceName, productKey, projectId, validateType })
        yield* store.record([online(deviceId, "c2", epoch + 1, other)])
        assert.deepStrictEqual(yield* store.markOffline({ deviceIds: [deviceId], lapse, at: epoch + 2 }), [])
        assert.strictEqual((yield* store.connectionsOf([deviceId])).get(deviceId)?.connectionId, "c2")
      }))
  })
