/**
 * The laws of `TopologyStore`.
 */
import {
  type AddSession,
  type Device,
  type DeviceCloud,
  type DeviceId,
  DeviceName,
  DeviceStore,
  maxSubDevices,
  type Product,
  TopologyStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import { epoch, insertDevices, insertProductOf, insertProject, newDevice, newProduct, unique } from "./Samples.ts"

/** Stores a project with two gateways, and sub-devices of one product. */
const insertTopology = Effect.fnUntraced(function*(count: number) {
  const { id } = yield* insertProject
  const gatewayProduct = yield* insertProductOf(newProduct(id, { nodeType: "gateway" }))
  const product = yield* insertProductOf(
    newProduct(id, { nodeType: "gateway-sub", networkType: "", protocolType: "ble" })
  )
  const [first, second] = yield* insertDevices(gatewayProduct, [newDevice(), newDevice()])
  const subDevices = yield* insertDevices(product, Array.from({ length: count }, () => newDevice()))
  return { gatewayProduct, product, gateway: first!, other: second!, subDevices }
})

const newSession = (gateway: Device, fields: Partial<AddSession> = {}): AddSession => ({
  sessionId: unique("s"),
  projectId: gateway.projectId,
  gatewayId: gateway.deviceId,
  productKeys: [],
  startedAt: epoch,
  endsAt: epoch + 60_000,
  ...fields
})

const ids = (devices: ReadonlyArray<{ readonly deviceId: DeviceId }>) => devices.map(({ deviceId }) => deviceId)

/** Attaches on the word of the application. */
const attach = (gateway: Device, subDevices: ReadonlyArray<Device>) =>
  Effect.flatMap(
    TopologyStore,
    (store) =>
      store.attach({
        gatewayId: gateway.deviceId,
        subDeviceIds: ids(subDevices),
        by: { _tag: "Cloud" },
        at: epoch
      })
  )

/** Attaches with proofs of a time after the epoch; undefined: with plain ones. */
const attachProved = (
  gateway: Device,
  subDevices: ReadonlyArray<Device>,
  time: number | undefined,
  at = time ?? 0
) =>
  Effect.flatMap(TopologyStore, (store) =>
    store.attach({
      gatewayId: gateway.deviceId,
      subDeviceIds: ids(subDevices),
      by: {
        _tag: "Gateway",
        provedAt: new Map(time === undefined ? [] : subDevices.map(({ deviceId }) => [deviceId, epoch + time]))
      },
      at: epoch + at
    }))

const attached = (gateway: Device) =>
  Effect.flatMap(TopologyStore, (store) => Effect.map(store.subDevices(gateway.deviceId), ids))

const identity = (device: Device, product: Product) => ({
  deviceId: device.deviceId,
  projectId: device.projectId,
  productKey: device.productKey,
  deviceName: device.deviceName,
  validateType: product.validateType
})

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`TopologyStore: ${name}`, (it) => {
    it.effect("attaches sub-devices once, and finds them by name and by id", () =>
      Effect.gen(function*() {
        const store = yield* TopologyStore
        const { gateway, gatewayProduct, other, product, subDevices: [a, b, c, d] } = yield* insertTopology(4)
        assert.deepStrictEqual(yield* attach(gateway, [b!, a!]), {
          _tag: "Attached",
          added: ids([b!, a!]),
          moved: []
        })
        assert.deepStrictEqual(yield* attach(gateway, [a!, c!]), { _tag: "Attached", added: ids([c!]), moved: [] })
        assert.deepStrictEqual(
          yield* store.subDevices(gateway.deviceId),
          [b!, a!, c!].map((device) => identity(device, product))
        )
        const named = yield* store.attachments([
          a!,
          { ...a!, deviceName: DeviceName.make("unknown") },
          c!,
          { ...a!, productKey: gatewayProduct.productKey }
        ])
        assert.deepStrictEqual(named.map(Option.isSome), [true, false, true, false])
        const whole = (subDevice: Device) => ({
          gateway: identity(gateway, gatewayProduct),
          subDevice: identity(subDevice, product)
        })
        assert.deepInclude(Option.getOrThrow(named[0]!), whole(a!))
        const ofC = yield* store.attachmentsOf(ids([c!]))
        assert.strictEqual(ofC.length, 1)
        assert.deepInclude(ofC[0], whole(c!))
        // A gateway without sub-devices, and a device that is none, are left out.
        const amounts = Effect.map(store.amounts(ids([other, gateway, a!])), (amounts) => [...amounts])
        assert.deepStrictEqual(yield* amounts, [[gateway.deviceId, 3]])
        yield* attach(other, [d!])
        assert.sameDeepMembers(yield* amounts, [[gateway.deviceId, 3], [other.deviceId, 1]])
        yield* store.detach({ subDeviceIds: ids([d!]), state: "closed", at: epoch })
        assert.deepStrictEqual(yield* amounts, [[gateway.deviceId, 3]])
      }))

    it.effect("leaves a sub-device with its gateway unless it moves", () =>
      Effect.gen(function*() {
        const store = yield* TopologyStore
        const { gateway, other, subDevices: [a, b, c] } = yield* insertTopology(3)
        yield* attach(gateway, [a!])
        assert.deepStrictEqual(yield* attach(other, [b!, c!, a!]), { _tag: "OtherGateway", deviceId: a!.deviceId })
        assert.deepStrictEqual(yield* attached(other), [])
        // The refused attempt is not remembered of the others: a plain proof attaches one that has had no gateway.
        assert.strictEqual((yield* attachProved(gateway, [c!], undefined, 0))._tag, "Attached")
        yield* store.detach({ subDeviceIds: ids([c!]), state: "closed", at: epoch })
        const before = yield* store.attachmentsOf(ids([a!]))
        const moved = yield* attachProved(other, [b!, a!], 1)
        if (moved._tag !== "Attached") return assert.fail(moved._tag)
        assert.deepStrictEqual(moved.added, ids([b!, a!]))
        assert.deepStrictEqual(moved.moved, before)
        assert.deepStrictEqual([yield* attached(gateway), yield* attached(other)], [[], ids([b!, a!])])
        for (const each of [b!, a!]) {
          assert.deepStrictEqual(yield* attachProved(gateway, [each], 1), { _tag: "Spent", deviceId: each.deviceId })
        }
        const [ofA, ofB] = [yield* store.attachmentsOf(ids([a!])), yield* store.attachmentsOf(ids([b!]))]
        const detach = (subDevices: ReadonlyArray<Device>, from?: Device) =>
          store.detach({
            subDeviceIds: ids(subDevices),
            ...from === undefined ? {} : { gatewayId: from.deviceId },
            state: "closed",
            at: epoch
          })
        assert.deepStrictEqual(yield* detach([a!], gateway), [])
        assert.deepStrictEqual(yield* detach([a!], other), ofA)
        assert.deepStrictEqual(yield* detach([a!, b!]), ofB)
      }))

    it.effect("takes a proof with a time once, and never one from before the latest change", () =>
      Effect.gen(function*() {
        const store = yield* TopologyStore
        const { gateway, other, subDevices: [a] } = yield* insertTopology(1)
        const { deviceId } = a!
        const detach = (state: "released" | "closed", at: number) =>
          store.detach({ subDeviceIds: [deviceId], state, at: epoch + at })
        const add = (to: Device, time: number | undefined, at?: number) =>
          Effect.map(attachProved(to, [a!], time, at), ({ _tag }) => _tag)
        assert.strictEqual(yield* add(gateway, 10, 20), "Attached")
        // The same again changes nothing; another gateway cannot use it, nor an earlier or a plain one.
        assert.strictEqual(yield* add(gateway, 10), "Attached")
        assert.strictEqual(yield* add(other, 10), "Spent")
        assert.strictEqual(yield* add(other, 19), "Spent")
        assert.strictEqual(yield* add(other, undefined), "OtherGateway")
        assert.strictEqual(yield* add(other, 20, 21), "Attached")
        assert.strictEqual(yield* add(gateway, 20), "Spent")
        // What its own gateway releases, that gateway adds again with any later proof, any other with a plain one.
        yield* detach("released", 30)
        assert.strictEqual(yield* add(gateway, 29), "Spent")
        assert.strictEqual(yield* add(other, 20), "Spent")
        assert.strictEqual(yield* add(other, 21, 40), "Attached")
        yield* detach("released", 50)
        assert.strictEqual(yield* add(gateway, undefined, 60), "Attached")
        // What the cloud takes away comes back with a later proof, or into an add-session.
        yield* detach("closed", 70)
        for (const to of [gateway, other]) {
          assert.strictEqual(yield* add(to, undefined), "Spent")
          assert.strictEqual(yield* add(to, 69), "Spent")
        }
        yield* store.openSession(newSession(other, { productKeys: [gateway.productKey] }))
        assert.strictEqual(yield* add(other, undefined), "Spent")
        yield* store.openSession(newSession(other))
        assert.strictEqual(yield* add(gateway, undefined), "Spent")
        assert.strictEqual(yield* add(other, undefined, 80), "Attached")
        assert.strictEqual(yield* add(gateway, 80, 81), "Attached")
        assert.deepStrictEqual(yield* attached(gateway), [deviceId])
        // A gateway that does not have it releases nothing.
        assert.deepStrictEqual(
          yield* store.detach({
            subDeviceIds: [deviceId],
            gatewayId: other.deviceId,
            state: "released",
            at: epoch + 100
          }),
          []
        )
        assert.strictEqual(yield* add(other, 90, 110), "Attached")
      }))

    it.effect("gives a sub-device that two gateways want at once to one of them", () =>
      Effect.gen(function*() {
        const { gateway, other, subDevices } = yield* insertTopology(8)
        const outcomes = yield* Effect.forEach(
          subDevices.flatMap((subDevice) => [[gateway, subDevice], [other, subDevice]] as const),
          ([to, subDevice]) => attach(to, [subDevice]),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(outcomes.filter(({ _tag }) => _tag === "Attached").length, subDevices.length)
        const all = [...yield* attached(gateway), ...yield* attached(other)]
        assert.deepStrictEqual(all.toSorted(), ids(subDevices).toSorted())
      }))

    it.effect(`takes ${maxSubDevices} sub-devices and no more`, () =>
      Effect.gen(function*() {
        const { gateway, subDevices } = yield* insertTopology(maxSubDevices + 1)
        assert.strictEqual((yield* attach(gateway, subDevices))._tag, "Full")
        assert.deepStrictEqual(yield* attached(gateway), [])
        // The refused attempt is not remembered.
        assert.strictEqual((yield* attachProved(gateway, subDevices.slice(0, 1), undefined, 0))._tag, "Attached")
        assert.strictEqual((yield* attach(gateway, subDevices.slice(0, maxSubDevices)))._tag, "Attached")
        assert.strictEqual((yield* attach(gateway, subDevices.slice(maxSubDevices)))._tag, "Full")
        assert.strictEqual((yield* attach(gateway, subDevices.slice(0, 2)))._tag, "Attached")
      }))

    it.effect("forgets what belongs to a device that is gone", () =>
      Effect.gen(function*() {
        const store = yield* TopologyStore
        const devices = yield* DeviceStore
        const { gateway, other, subDevices: [a, b] } = yield* insertTopology(2)
        yield* attach(gateway, [a!, b!])
        const session = newSession(gateway)
        yield* store.openSession(session)
        yield* devices.remove(a!.projectId, a!.deviceId)
        assert.deepStrictEqual(yield* attached(gateway), ids([b!]))
        assert.deepStrictEqual(yield* attach(gateway, [a!]), { _tag: "Gone" })
        const ofOther = newSession(other)
        yield* store.openSession(ofOther)
        yield* devices.remove(gateway.projectId, gateway.deviceId)
        assert.deepStrictEqual(yield* store.openSessions(other.deviceId), [ofOther])
        assert.deepStrictEqual(yield* store.attachmentsOf(ids([b!])), [])
        assert.deepStrictEqual(yield* store.session(gateway.deviceId, session.sessionId), Option.none())
        assert.deepStrictEqual(yield* attach(gateway, [b!]), { _tag: "Gone" })
        assert.deepStrictEqual(yield* store.openSession(newSession(gateway)), Option.none())
        assert.deepStrictEqual(yield* store.openSessions(gateway.deviceId), [])
        assert.strictEqual((yield* attach(other, [b!]))._tag, "Attached")
      }))

    it.effect("collects what is added while a session is open and admits the product", () =>
      Effect.gen(function*() {
        const store = yield* TopologyStore
        const { gateway, other, product, subDevices: [before, a, b, after] } = yield* insertTopology(4)
        const members = (sessionId: string) =>
          Effect.map(store.session(gateway.deviceId, sessionId), (found) => ids(Option.getOrThrow(found).members))
        yield* attach(gateway, [before!])
        const session = newSession(gateway, { productKeys: [product.productKey] })
        assert.deepStrictEqual(yield* store.openSession(session), Option.none())
        yield* attach(gateway, [before!, b!])
        yield* attach(gateway, [a!])
        assert.deepStrictEqual(Option.getOrThrow(yield* store.session(gateway.deviceId, session.sessionId)), {
          session,
          isOpen: true,
          members: [identity(b!, product), identity(a!, product)]
        })
        const next = newSession(gateway, { productKeys: [gateway.productKey], startedAt: epoch + 5 })
        assert.deepStrictEqual(yield* store.openSession(next), Option.some(session))
        yield* attach(gateway, [after!])
        assert.deepStrictEqual([yield* members(session.sessionId), yield* members(next.sessionId)], [ids([b!, a!]), []])
        assert.deepStrictEqual(yield* store.openSessions(gateway.deviceId), [next])
        const isOpen = ({ sessionId }: AddSession) =>
          Effect.map(store.session(gateway.deviceId, sessionId), Option.map(({ isOpen }) => isOpen))
        assert.deepStrictEqual([yield* isOpen(session), yield* isOpen(next)], [Option.some(false), Option.some(true)])
        assert.isTrue(Option.isNone(yield* store.session(other.deviceId, next.sessionId)))
        // Who has left the gateway since was added all the same.
        yield* store.detach({ subDeviceIds: ids([b!]), state: "closed", at: epoch })
        assert.deepStrictEqual(yield* members(session.sessionId), ids([b!, a!]))
      }))

    it.effect("ends a session once, by hand or when its time is over", () =>
      Effect.gen(function*() {
        const store = yield* TopologyStore
        const { gateway, other } = yield* insertTopology(0)
        const session = newSession(gateway)
        const due = newSession(other, { endsAt: epoch + 10 })
        yield* store.openSession(session)
        yield* store.openSession(due)
        const mine = (sessions: ReadonlyArray<AddSession>) =>
          sessions.filter(({ projectId }) => projectId === gateway.projectId)
        assert.sameDeepMembers(mine(yield* store.openSessions()), [session, due])
        const endDue = (now: number) => Effect.map(store.endDue({ now, limit: 100 }), mine)
        assert.deepStrictEqual(yield* endDue(epoch + 9), [])
        const claims = yield* Effect.all([endDue(epoch + 10), endDue(epoch + 10)], { concurrency: 2 })
        assert.deepStrictEqual(claims.flat(), [due])
        assert.isFalse(yield* store.endSession(other.deviceId, due.sessionId, epoch + 11))
        assert.isFalse(yield* store.endSession(other.deviceId, session.sessionId, epoch + 11))
        assert.isTrue(yield* store.endSession(gateway.deviceId, session.sessionId, epoch + 12))
        assert.isFalse(yield* store.endSession(gateway.deviceId, session.sessionId, epoch + 12))
        assert.deepStrictEqual(mine(yield* store.openSessions()), [])
        yield* store.forgetSessions(epoch + 12)
        assert.isTrue(Option.isNone(yield* store.session(other.deviceId, due.sessionId)))
        assert.isTrue(Option.isSome(yield* store.session(gateway.deviceId, session.sessionId)))
      }))

    it.effect("ends no more sessions at once than it returns, and forgets none that is open", () =>
      Effect.gen(function*() {
        const store = yield* TopologyStore
        // Over before those of all other tests.
        const past = epoch - 1_000_000
        const [a, b] = [yield* insertTopology(0), yield* insertTopology(0)]
        const sessions = [a.gateway, a.other, b.gateway].map((gateway) =>
          newSession(gateway, { startedAt: past, endsAt: past + 10 })
        )
        for (const session of sessions) yield* store.openSession(session)
        yield* store.forgetSessions(past + 100)
        const endTwo = store.endDue({ now: past + 20, limit: 2 })
        const ended = [yield* endTwo, yield* endTwo, yield* endTwo]
        assert.deepStrictEqual(ended.map(({ length }) => length), [2, 1, 0])
        assert.deepStrictEqual(
          ended.flat().map(({ sessionId }) => sessionId).toSorted(),
          sessions.map(({ sessionId }) => sessionId).toSorted()
        )
        // They have ended when they were ended.
        yield* store.forgetSessions(past + 20)
        for (const { gatewayId, sessionId } of sessions) {
          const found = yield* store.session(gatewayId, sessionId)
          assert.deepStrictEqual(Option.map(found, ({ isOpen }) => isOpen), Option.some(false))
        }
      }))
  })
