import {
  Batches,
  defaultProjectId,
  type Device,
  DeviceCloud,
  Devices,
  DeviceSessions,
  Feed,
  fieldsText,
  Mac,
  type Product,
  SubDeviceSessions,
  Topologies,
  TopologyStore
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { CloudState, Fixtures, SimulatedDevice, TestCloud } from "@device-cloud/testing"
import { assert, it as test, layer } from "@effect/vitest"
import { Effect, Layer, Queue, Result, Stream } from "effect"
import { TestClock } from "effect/testing"

const createGateway = Effect.gen(function*() {
  const cloud = yield* TestCloud
  return yield* cloud.createDevice(yield* cloud.createProduct({ nodeType: "gateway" }))
})

const createSubProduct = Effect.flatMap(
  TestCloud,
  (cloud) => cloud.createProduct({ nodeType: "gateway-sub", networkType: "", protocolType: "ble" })
)

const start = ({ deviceId }: Device, timeout: number, ...products: ReadonlyArray<Product>) =>
  Effect.flatMap(Topologies, (topologies) =>
    topologies.startAdding(defaultProjectId, deviceId, {
      timeout,
      productKeys: products.map(({ productKey }) => productKey)
    }))

/** What the gateway has been told of products that may join. */
const permits = ({ received }: SimulatedDevice.SimulatedDevice) =>
  Effect.andThen(
    TestClock.adjust("1 milli"),
    Effect.map(Queue.clear(received), (messages) =>
      [...messages].map(({ method, params }) => {
        assert.strictEqual(method, "thing.gateway.permit")
        return params
      }))
  )

const failure = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(effect), ({ _tag }) => _tag)

layer(TestCloud.layer)("add-sessions", (it) => {
  it.effect("end when their time is over, and can still be read", () =>
    Effect.gen(function*() {
      const topologies = yield* Topologies
      const gateway = yield* createGateway
      const product = yield* createSubProduct
      const connected = yield* SimulatedDevice.connect(gateway)
      const { productKey } = product
      const sessionId = yield* start(gateway, 30, product)
      assert.deepStrictEqual(yield* permits(connected), [{ time: 30, productKey }])
      yield* TestClock.adjust("29 seconds")
      assert.deepStrictEqual(yield* permits(connected), [])
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(yield* permits(connected), [{ time: 0, productKey }])
      const { deviceId } = gateway
      assert.strictEqual(
        yield* failure(topologies.stopAdding(defaultProjectId, deviceId, sessionId)),
        "AddSessionEnded"
      )
      const signed = { productKey, deviceName: "n", signMethod: "hmacsha1", sign: "00" } as const
      assert.strictEqual(
        yield* failure(topologies.add(defaultProjectId, deviceId, sessionId, [signed])),
        "AddSessionEnded"
      )
      assert.deepStrictEqual(yield* topologies.added(defaultProjectId, deviceId, sessionId), [])
    }))

  it.effect("reach a gateway that connects while they are open, with the time that is left", () =>
    Effect.gen(function*() {
      const gateway = yield* createGateway
      yield* start(gateway, 60)
      yield* TestClock.adjust("20 seconds")
      const connected = yield* SimulatedDevice.connect(gateway)
      assert.deepStrictEqual(yield* permits(connected), [{ time: 40, productKey: "" }])
      yield* connected.disconnect
      yield* TestClock.adjust("60 seconds")
      assert.deepStrictEqual(yield* permits(yield* SimulatedDevice.connect(gateway)), [])
    }))

  it.effect("that were stopped are not told to a gateway that connects right after", () =>
    Effect.gen(function*() {
      const gateway = yield* createGateway
      const sessionId = yield* start(gateway, 60)
      const topologies = yield* Topologies
      yield* topologies.stopAdding(defaultProjectId, gateway.deviceId, sessionId)
      assert.deepStrictEqual(yield* permits(yield* SimulatedDevice.connect(gateway)), [])
    }))

  it.effect("replace each other: products that only the earlier one admitted may join no more", () =>
    Effect.gen(function*() {
      const topologies = yield* Topologies
      const gateway = yield* createGateway
      const [both, former] = [yield* createSubProduct, yield* createSubProduct]
      const connected = yield* SimulatedDevice.connect(gateway)
      const first = yield* start(gateway, 60, both, former)
      const second = yield* start(gateway, 10, both)
      assert.deepStrictEqual(yield* permits(connected), [
        { time: 60, productKey: both.productKey },
        { time: 60, productKey: former.productKey },
        { time: 0, productKey: former.productKey },
        { time: 10, productKey: both.productKey }
      ])
      const stop = (sessionId: string) => topologies.stopAdding(defaultProjectId, gateway.deviceId, sessionId)
      assert.strictEqual(yield* failure(stop(first)), "AddSessionEnded")
      yield* stop(second)
      assert.deepStrictEqual(yield* permits(connected), [{ time: 0, productKey: both.productKey }])
      assert.strictEqual(yield* failure(stop("unknown")), "AddSessionNotFound")
    }))

  it.effect("replace each other: one for some products ends the search for all", () =>
    Effect.gen(function*() {
      const gateway = yield* createGateway
      const product = yield* createSubProduct
      const connected = yield* SimulatedDevice.connect(gateway)
      const { productKey } = product
      yield* start(gateway, 600)
      yield* start(gateway, 60, product)
      yield* start(gateway, 30)
      yield* start(gateway, 20)
      assert.deepStrictEqual(yield* permits(connected), [
        { time: 600, productKey: "" },
        { time: 0, productKey: "" },
        { time: 60, productKey },
        { time: 0, productKey },
        { time: 30, productKey: "" },
        { time: 20, productKey: "" }
      ])
    }))
})

/** The topology, in which something happens after the next look at it. */
const interrupted = (meanwhile: { happens: Effect.Effect<void> }) =>
  Layer.effect(
    TopologyStore,
    Effect.map(TopologyStore, (store) =>
      TopologyStore.of({
        ...store,
        attachments: (names) =>
          Effect.tap(store.attachments(names), () => {
            const { happens } = meanwhile
            meanwhile.happens = Effect.void
            return happens
          })
      }))
  ).pipe(Layer.provideMerge(StorageMemory.layer))

/** A gateway that is connected, with a sub-device that it has added, and the fields with which that logs in. */
const connectWithSub = Effect.gen(function*() {
  const create = (nodeType: Product["nodeType"]) =>
    Effect.flatMap(Fixtures.createProduct({ nodeType, validateType: "none" }), Fixtures.createDevice)
  const [gateway, sub] = [yield* create("gateway"), yield* create("gateway-sub")]
  const { deviceName, productKey } = sub
  const fields = { deviceName, productKey }
  const proof = { ...fields, sign: (yield* Mac).sign("hmacsha1", sub.deviceSecret, fieldsText(fields)) }
  const connected = yield* SimulatedDevice.connect(gateway)
  assert.strictEqual((yield* connected.send("thing.topo.add", [proof])).code, 200)
  return { gateway, sub, fields, proof, connected }
})

test.effect("a sub-device that is removed while it logs in is not online", () =>
  Effect.suspend(() => {
    const meanwhile: { happens: Effect.Effect<void> } = { happens: Effect.void }
    return Effect.gen(function*() {
      const { fields, gateway, proof, sub } = yield* connectWithSub
      const topologies = yield* Topologies
      meanwhile.happens = Effect.orDie(topologies.remove(defaultProjectId, gateway.deviceId, [fields]))
      const session = (yield* DeviceSessions).session(gateway.deviceId)!
      const { answer } = yield* SubDeviceSessions
      const reply = yield* answer(session.connection.device, session, "", "combine.login", proof)
      assert.strictEqual(reply.code, 6401)
      assert.strictEqual((yield* CloudState.device(sub)).status, "offline")
    }).pipe(Effect.provide(
      DeviceCloud.layer.pipe(Layer.provide(interrupted(meanwhile)), Layer.provideMerge(PlatformNode.layer))
    ))
  }))

test.effect("a session that begins while the topology is read is not ended by what it was before", () =>
  Effect.suspend(() => {
    let meanwhile = Effect.void
    /** Says once that a sub-device has left, and then it comes back. */
    const readEarly = Layer.effect(
      TopologyStore,
      Effect.map(TopologyStore, (store) =>
        TopologyStore.of({
          ...store,
          attachmentsOf: (ids) => {
            const happens = meanwhile
            meanwhile = Effect.void
            return happens === Effect.void ? store.attachmentsOf(ids) : Effect.as(happens, [])
          }
        }))
    ).pipe(Layer.provideMerge(StorageMemory.layer))
    return Effect.gen(function*() {
      const { connected, fields, gateway, proof, sub } = yield* connectWithSub
      const sessions = yield* DeviceSessions
      const session = sessions.session(gateway.deviceId)!
      const { answer } = yield* SubDeviceSessions
      const logIn = answer(session.connection.device, session, "", "combine.login", proof)
      const logOut = answer(session.connection.device, session, "", "combine.logout", fields)
      assert.strictEqual((yield* logIn).code, 200)
      const first = sessions.session(sub.deviceId)
      meanwhile = Effect.asVoid(Effect.andThen(logOut, logIn))
      yield* TestClock.adjust("11 seconds")
      assert.notStrictEqual(sessions.session(sub.deviceId), first)
      assert.strictEqual((yield* CloudState.device(sub)).status, "online")
      assert.notInclude([...yield* Queue.clear(connected.received)].map(({ method }) => method), "ext.error")
    }).pipe(Effect.provide(
      DeviceCloud.layer.pipe(Layer.provide(readEarly), Layer.provideMerge(PlatformNode.layer))
    ))
  }))

layer(TestCloud.layer)("the topology", (it) => {
  it.effect("whoever follows events learns of each change, also when a device or its gateway is deleted", () =>
    Effect.gen(function*() {
      const [cloud, devices, mac, topologies] = [
        yield* TestCloud,
        yield* Devices,
        yield* Mac,
        yield* Topologies
      ]
      const gateway = yield* createGateway
      const product = yield* createSubProduct
      const subDevices = yield* Effect.forEach([1, 2, 3], () => cloud.createDevice(product))
      const published = yield* CloudState.follow(defaultProjectId)
      yield* topologies.add(
        defaultProjectId,
        gateway.deviceId,
        yield* start(gateway, 60),
        subDevices.map(({ deviceName, deviceSecret, productKey }) => ({
          deviceName,
          productKey,
          signMethod: "hmacsha1",
          sign: mac.sign("hmacsha1", deviceSecret, `deviceName${deviceName}productKey${productKey}`)
        }))
      )
      const [removed, deleted, left] = subDevices as [Device, Device, Device]
      yield* topologies.remove(defaultProjectId, gateway.deviceId, [removed])
      yield* devices.remove(defaultProjectId, deleted.deviceId)
      yield* devices.remove(defaultProjectId, gateway.deviceId)
      const changes = yield* published.pipe(
        Stream.filterMap((each) =>
          each._tag === "TopologyChanged"
            ? Result.succeed([each.action, ...each.subDevices.map(({ deviceId }) => deviceId)])
            : Result.failVoid
        ),
        Stream.take(4),
        Stream.runCollect
      )
      assert.deepStrictEqual(changes, [
        ["create", ...subDevices.map(({ deviceId }) => deviceId)],
        ["delete", removed.deviceId],
        ["delete", deleted.deviceId],
        ["delete", left.deviceId]
      ])
    }))
})

layer(TestCloud.layer)("the end of gateways", (it) => {
  it.effect("a batch of gateways that is deleted publishes what it detaches, as each of them would", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const batches = yield* Batches
      const { productKey } = yield* cloud.createProduct({ nodeType: "gateway" })
      const batch = yield* batches.create(defaultProjectId, productKey, { num: 3 })
      const gateways = yield* batches.devices(defaultProjectId, productKey, batch.batchId)
      const subDevice = yield* cloud.createDevice(yield* createSubProduct)
      const { device } = yield* Devices.use((devices) =>
        devices.get(defaultProjectId, { deviceId: gateways[1]!.deviceId })
      )
      const gateway = yield* cloud.connect(device)
      const names = { deviceName: subDevice.deviceName, productKey: subDevice.productKey }
      const sign = (yield* Mac).sign("hmacsha1", subDevice.deviceSecret, fieldsText(names))
      const added = yield* gateway.send("thing.topo.add", [{ ...names, signMethod: "hmacSha1", sign }])
      assert.strictEqual(added.code, 200)
      const feed = yield* Feed
      const after = yield* feed.end
      yield* batches.remove(defaultProjectId, productKey, batch.batchId)
      const { entries } = yield* feed.read({ projectId: undefined, after, limit: 100 })
      const all = entries.map(({ event }) => event)
      const detached = all.flatMap((event) =>
        event._tag === "TopologyChanged"
          ? [[event.action, event.device.deviceId, event.subDevices.map(({ deviceId }) => deviceId)]]
          : []
      )
      assert.deepStrictEqual(detached, [["delete", gateways[1]!.deviceId, [subDevice.deviceId]]])
      assert.lengthOf(all.filter((event) => event._tag === "DeviceLifecycle" && event.action === "delete"), 3)
    }).pipe(Effect.scoped))
})
