import {
  defaultProjectId,
  type Device,
  DeviceCloud,
  Devices,
  DeviceSessions,
  fieldsText,
  Firmwares,
  Jobs,
  JobStore,
  Mac,
  OtaStore,
  PresenceHistory,
  PresenceStore,
  PresenceTimes,
  Shadows,
  StoreError,
  SubDeviceSessions,
  Topologies,
  upgradeMethod,
  Upgrades,
  UpgradeTasks
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import * as StoragePg from "@device-cloud/storage-pg"
import { eventually, Fixtures, LossyNodeBus, SimulatedDevice, TestKeyRing } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Clock, Effect, Latch, Layer, Queue, Random, type Scope } from "effect"
import { describe } from "vitest"
import { newDatabase } from "../../../vitest.storages.ts"

/** Shorter than those of a cloud. */
const times: PresenceTimes = { beat: 50, gap: 400, silence: 700, sweep: 300 }

const lostAnswer = new StoreError({ operation: "PresenceStore.record", retryable: true, cause: undefined })

/** Presence that waits while the node cannot reach the store. */
const reachable = (reach: Latch.Latch, answers: { readonly lost: boolean }) =>
  Layer.effect(
    PresenceStore,
    Effect.map(PresenceStore, (store) => {
      const late = <A>(effect: Effect.Effect<A, StoreError>) => Effect.andThen(reach.await, effect)
      const answered = <A>(value: A) => answers.lost ? Effect.fail(lostAnswer) : Effect.succeed(value)
      return PresenceStore.of({
        record: (changes, reactTo) => late(Effect.flatMap(store.record(changes, reactTo), answered)),
        markSeen: (sightings, reactTo) => late(store.markSeen(sightings, reactTo)),
        lapsed: (lapse, limit, after) => late(store.lapsed(lapse, limit, after)),
        markOffline: (options) => late(store.markOffline(options)),
        connectionsOf: (deviceIds) => late(store.connectionsOf(deviceIds)),
        noteDesired: (deviceId) => late(store.noteDesired(deviceId)),
        heartbeat: (nodeId, limits) => late(store.heartbeat(nodeId, limits)),
        silentNodes: (judge) => late(store.silentNodes(judge)),
        report: (nodeId, report) => late(store.report(nodeId, report)),
        nodes: (limits) => late(store.nodes(limits)),
        forgetNode: (lapse) => late(store.forgetNode(lapse))
      })
    })
  )

/** Claims of what is due that wait while the node cannot reach the store. */
const claiming = (reach: Latch.Latch) =>
  Layer.mergeAll(
    Layer.effect(
      JobStore,
      Effect.map(JobStore, (store) =>
        JobStore.of({ ...store, claimDue: (options) => Effect.andThen(reach.await, store.claimDue(options)) }))
    ),
    Layer.effect(
      OtaStore,
      Effect.map(OtaStore, (store) =>
        OtaStore.of({
          ...store,
          claimDue: (options) =>
            Effect.andThen(reach.await, store.claimDue(options))
        }))
    )
  )

/** A clock that is off by so many milliseconds. */
const clockOff = (millis: number): Clock.Clock => {
  const clock = Clock.Clock.defaultValue()
  return Object.assign(Object.create(clock) as Clock.Clock, {
    currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + millis,
    currentTimeMillis: Effect.sync(() => clock.currentTimeMillisUnsafe() + millis)
  })
}

type Storage = Layer.Layer<DeviceCloud.Stores, unknown>

/** Starts another node of the cloud on its stores. */
const startNode = Effect.fnUntraced(function*(storage: Storage, clock?: Clock.Clock) {
  const reach = Latch.makeUnsafe(true)
  const answers = { lost: false }
  let faults = LossyNodeBus.faultless
  const cloud = DeviceCloud.layer.pipe(
    Layer.provide(Layer.mergeAll(reachable(reach, answers), claiming(reach), LossyNodeBus.layer(() => faults))),
    Layer.provide(storage),
    Layer.provideMerge(PlatformNode.layer),
    Layer.provide(Layer.succeed(PresenceTimes, times)),
    Layer.provide(Layer.succeed(Clock.Clock, clock ?? Clock.Clock.defaultValue()))
  )
  const context = yield* Layer.build(Layer.fresh(cloud))
  return {
    /** Closed while the node cannot reach what the store knows of presence. */
    reach,
    /** Whether the node hears no more what has become of a change of presence. */
    answers,
    suffer: (next: LossyNodeBus.Faults) => void (faults = next),
    run: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provide(effect, context)
  }
})

/** A node of a cloud, and what a test does to it. */
type Node = Effect.Success<ReturnType<typeof startNode>>

const inMemory: Effect.Effect<Storage, never, Scope.Scope> = Effect.map(
  Layer.build(StorageMemory.layer),
  (stores) => Layer.provideMerge(StorageMemory.layerNode, Layer.succeedContext(stores))
)

const onPostgres: Effect.Effect<Storage, unknown> = Effect.map(
  newDatabase,
  (url) => StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer))
)

/** A connection that a test has made, and why it was closed. */
interface Connected extends SimulatedDevice.SimulatedDevice {
  readonly node: Node
  reason?: SimulatedDevice.LinkEnd
}

const connect = Effect.fnUntraced(function*(node: Node, device: Device) {
  const connected: Connected = { ...yield* node.run(SimulatedDevice.connect(device)), node }
  yield* Effect.forkScoped(Effect.map(connected.closed, (reason) => (connected.reason = reason)))
  return connected
})

const createDevices = (node: Node, count: number) => node.run(Fixtures.createDevices(count))

const statusOf = (node: Node, { deviceId }: Device) =>
  node.run(Effect.map(
    Effect.flatMap(Devices, (devices) => devices.get(defaultProjectId, { deviceId })),
    ({ device: { status, statusVersion } }) => `${status} ${statusVersion}`
  ))

/** What the history of a device says, the oldest first, with the node. */
const presenceOf = (node: Node, { deviceId }: Device) =>
  node.run(Effect.map(
    Effect.flatMap(PresenceHistory, ({ read }) => read(defaultProjectId, deviceId, { limit: 100 })),
    ({ entries }) =>
      entries.toReversed().map(({ event }) => {
        if (event._tag === "ConnectionReplaced") return ["takeover", event.link.nodeId]
        const { link, reason, status, version } = event
        return [`${status} ${version}${reason === undefined ? "" : `: ${reason}`}`, link?.nodeId]
      })
  ))

const sessionAt = (node: Node, { deviceId }: Device) =>
  node.run(Effect.map(DeviceSessions, (sessions) => sessions.session(deviceId)))

/** Waits until a device has one session on all nodes and one open connection. */
const onlyOne = (nodes: ReadonlyArray<Node>, device: Device, connections: ReadonlyArray<Connected>) =>
  eventually(
    Effect.map(Effect.forEach(nodes, (node) => sessionAt(node, device)), (sessions) => ({
      sessions: sessions.filter((session) => session !== undefined).map(({ id }) => id),
      open: connections.filter(({ reason }) => reason === undefined).length
    })),
    { until: ({ open, sessions }) => sessions.length === 1 && open === 1, timeout: "10 seconds" }
  )

const lossy: LossyNodeBus.Faults = { lost: 0.5, doubled: 0.2, latest: 30 }
const deaf: LossyNodeBus.Faults = { lost: 1, doubled: 0, latest: 0 }

for (const [name, makeStorage] of [["in memory", inMemory], ["on PostgreSQL", onPostgres]] as const) {
  describe(`nodes ${name}`, () => {
    it.live("a device that moves there and back has one session, its latest", () =>
      Effect.gen(function*() {
        const storage = yield* makeStorage
        const nodes = [yield* startNode(storage), yield* startNode(storage)] as const
        const devices = yield* createDevices(nodes[0], 20)
        for (const node of nodes) node.suffer(lossy)
        yield* Effect.forEach(devices, (device) =>
          Effect.gen(function*() {
            const connections = yield* Effect.forEach([0, 1, 0] as const, (i) => connect(nodes[i], device))
            yield* onlyOne(nodes, device, connections)
            assert.deepStrictEqual(connections.map(({ reason }) => reason), ["replaced", "replaced", undefined])
            assert.strictEqual(yield* statusOf(nodes[1], device), "online 1")
          }), { concurrency: "unbounded", discard: true })
      }).pipe(Effect.scoped))

    it.live("storms of moves leave no ghost", () =>
      Effect.gen(function*() {
        const storage = yield* makeStorage
        const nodes = [yield* startNode(storage), yield* startNode(storage), yield* startNode(storage)]
        const devices = yield* createDevices(nodes[0]!, 10)
        for (const node of nodes) node.suffer(lossy)
        yield* Effect.forEach(devices, (device) =>
          Effect.gen(function*() {
            const connections = yield* Effect.forEach(Array.from({ length: 20 }), () =>
              Effect.gen(function*() {
                yield* Effect.sleep(yield* Random.nextIntBetween(0, 200))
                return yield* connect(nodes[yield* Random.nextIntBetween(0, 2)]!, device)
              }), { concurrency: "unbounded" })
            const { sessions: [id] } = yield* onlyOne(nodes, device, connections)
            const owners = yield* nodes[0]!.run(
              Effect.flatMap(PresenceStore, (store) => store.connectionsOf([device.deviceId]))
            ).pipe(Effect.provide(yield* Layer.build(storage)))
            assert.strictEqual(owners.get(device.deviceId)?.connectionId, id)
            assert.strictEqual(yield* statusOf(nodes[0]!, device), "online 1")
          }), { concurrency: "unbounded", discard: true })
      }).pipe(Effect.scoped))

    it.live("a node that was frozen has its devices again, but for those that have moved", () =>
      Effect.gen(function*() {
        const storage = yield* makeStorage
        const [frozen, other] = [yield* startNode(storage), yield* startNode(storage)]
        const [moved, gone, kept, elsewhere] = (yield* createDevices(other, 4)) as [Device, Device, Device, Device]
        const connections = yield* Effect.forEach([moved, gone, kept], (device) => connect(frozen, device))
        yield* connect(other, elsewhere)
        frozen.suffer(deaf)
        other.suffer(deaf)
        yield* frozen.reach.close
        yield* eventually(statusOf(other, kept), { until: (status) => status === "offline 2" })
        yield* connect(other, moved)
        const left = yield* connect(other, gone)
        yield* left.disconnect
        yield* frozen.reach.open
        yield* eventually(statusOf(other, kept), { until: (status) => status === "online 3" })
        assert.strictEqual(yield* connections[0]!.closed, "replaced")
        // It has had a later owner, which has left.
        yield* connections[1]!.closed
        assert.isUndefined(connections[2]!.reason)
        assert.strictEqual(yield* statusOf(other, moved), "online 3")
        assert.strictEqual(yield* statusOf(other, gone), "offline 4")
        assert.strictEqual(yield* statusOf(other, elsewhere), "online 1")
      }).pipe(Effect.scoped))

    it.live("what became due while the node of a device was frozen is told when it is back", () =>
      Effect.gen(function*() {
        const storage = yield* makeStorage
        const [frozen, other] = [yield* startNode(storage), yield* startNode(storage)]
        const [device] = (yield* createDevices(other, 1)) as [Device]
        const { received } = yield* connect(frozen, device)
        const tellJob = Effect.flatMap(
          Jobs,
          (jobs) => jobs.create(defaultProjectId, { name: "Calibrate", document: {}, deviceIds: [device.deviceId] })
        )
        yield* frozen.run(tellJob)
        assert.strictEqual((yield* Queue.take(received)).method, "thing.job.notify")
        yield* frozen.reach.close
        yield* Effect.addFinalizer(() => frozen.reach.open)
        yield* eventually(statusOf(other, device), { until: (status) => status === "offline 2" })
        yield* other.run(tellJob)
        yield* other.run(Effect.gen(function*() {
          const { firmware } = yield* (yield* Firmwares).create(defaultProjectId, device.productKey, {
            name: "Lamp",
            version: "2.0.0",
            ossPath: "https://cloud.example.com/firmware.bin",
            algorithms: "md5",
            hash: "93230c3bde425a9d7984a594ac55ea1e"
          })
          const draft = { scopeMode: "all", cloudPush: true } as const
          yield* (yield* UpgradeTasks).createUpgradeTask(defaultProjectId, firmware.firmwareId, draft)
        }))
        // The other node finds them due, and the device away: a later job of another device is told after the first.
        const [later] = (yield* createDevices(other, 1)) as [Device]
        const connected = yield* connect(other, later)
        yield* other.run(
          Effect.flatMap(
            Jobs,
            (jobs) => jobs.create(defaultProjectId, { name: "Calibrate", document: {}, deviceIds: [later.deviceId] })
          )
        )
        assert.strictEqual((yield* Queue.take(connected.received)).method, "thing.job.notify")
        const explain = Effect.flatMap(Upgrades, (all) => all.diagnose(defaultProjectId, device.deviceId))
        yield* eventually(other.run(explain), { until: ({ assignment }) => assignment?.record.dueAt === null })
        yield* frozen.reach.open
        const told = [yield* Queue.take(received), yield* Queue.take(received)].map(({ method }) => method)
        assert.sameMembers(told, ["thing.job.notify", upgradeMethod])
      }).pipe(Effect.scoped))

    it.live("the history of presence has one end for each beginning, on whichever node, also when a node is lost", () =>
      Effect.gen(function*() {
        const storage = yield* makeStorage
        const [lost, other] = [yield* startNode(storage), yield* startNode(storage)]
        const [stays, moves, returns] = (yield* createDevices(other, 3)) as [Device, Device, Device]
        yield* connect(lost, stays)
        yield* connect(other, moves)
        yield* connect(lost, moves)
        yield* connect(lost, returns)
        yield* lost.reach.close
        yield* Effect.addFinalizer(() => lost.reach.open)
        yield* eventually(statusOf(other, returns), { until: (status) => status === "offline 2" })
        yield* connect(other, returns)
        const left = yield* connect(other, moves)
        yield* left.disconnect
        yield* eventually(statusOf(other, moves), { until: (status) => status === "offline 4" })
        const here = (yield* presenceOf(other, moves))[0]![1]
        const there = (yield* presenceOf(other, stays))[0]![1]
        assert.notStrictEqual(here, there)
        const silent = "the server that held its connection was not heard any more"
        assert.deepStrictEqual(yield* presenceOf(other, stays), [["online 1", there], [
          `offline 2: ${silent}`,
          undefined
        ]])
        assert.deepStrictEqual(yield* presenceOf(other, moves), [
          ["online 1", here],
          ["takeover", there],
          [`offline 2: ${silent}`, undefined],
          ["online 3", here],
          ["offline 4: the connection has ended", here]
        ])
        yield* lost.reach.open
        yield* eventually(statusOf(other, stays), { until: (status) => status === "online 3" })
        assert.deepStrictEqual((yield* presenceOf(other, stays)).slice(2), [["online 3", there]])
        assert.deepStrictEqual(yield* presenceOf(lost, returns), [
          ["online 1", there],
          [`offline 2: ${silent}`, undefined],
          ["online 3", here]
        ])
      }).pipe(Effect.scoped))

    it.live("a device that is disabled elsewhere ends its connection, whatever is lost", () =>
      Effect.gen(function*() {
        const storage = yield* makeStorage
        const [here, there] = [yield* startNode(storage), yield* startNode(storage)]
        const [device] = yield* createDevices(here, 1)
        const connected = yield* connect(here, device!)
        there.suffer(deaf)
        yield* there.run(Effect.flatMap(Devices, (devices) => devices.disable(defaultProjectId, device!.deviceId)))
        assert.strictEqual(yield* connected.closed, "disabled")
        yield* eventually(statusOf(there, device!), { until: (status) => status === "offline 2" })
      }).pipe(Effect.scoped))

    it.live("a sub-device has one session when its gateway moves there and back, and hears nothing false", () =>
      Effect.gen(function*() {
        const storage = yield* makeStorage
        const nodes = [yield* startNode(storage), yield* startNode(storage)] as const
        const gateway = yield* nodes[0].run(
          Effect.flatMap(Fixtures.createProduct({ nodeType: "gateway" }), Fixtures.createDevice)
        )
        const sub = yield* nodes[0].run(
          Effect.flatMap(
            Fixtures.createProduct({ nodeType: "gateway-sub", networkType: "", protocolType: "ble" }),
            Fixtures.createDevice
          )
        )
        const { deviceName, deviceSecret, productKey } = sub
        const fields = { deviceName, productKey, signMethod: "hmacSha1" }
        const sign = (yield* nodes[0].run(Mac)).sign("hmacsha1", deviceSecret, fieldsText({ deviceName, productKey }))
        const logIn = Effect.fnUntraced(function*(i: 0 | 1) {
          const connected = yield* connect(nodes[i], gateway)
          if (i === 0) yield* connected.send("thing.topo.add", [{ ...fields, sign }])
          const session = (yield* sessionAt(nodes[i], gateway))!
          const { answer } = yield* nodes[i].run(SubDeviceSessions)
          const reply = yield* answer(session.connection.device, session, "", "combine.login", { ...fields, sign })
          assert.strictEqual(reply.code, 200)
          return connected
        })
        const connections = yield* Effect.forEach([0, 1, 0, 0] as const, logIn)
        yield* onlyOne(nodes, gateway, connections)
        yield* eventually(
          Effect.forEach(nodes, (node) => sessionAt(node, sub)),
          { until: ([here, there]) => here !== undefined && there === undefined }
        )
        const { received } = connections[3]!
        assert.notInclude([...yield* Queue.clear(received)].map(({ method }) => method), "ext.error")
        assert.match(yield* statusOf(nodes[1], sub), /^online/)
      }).pipe(Effect.scoped))

    it.live("a sub-device that is removed elsewhere ends its session, whatever is lost", () =>
      Effect.gen(function*() {
        const storage = yield* makeStorage
        const [here, there] = [yield* startNode(storage), yield* startNode(storage)]
        const gateway = yield* here.run(
          Effect.flatMap(Fixtures.createProduct({ nodeType: "gateway" }), Fixtures.createDevice)
        )
        const product = yield* here.run(
          Fixtures.createProduct({ nodeType: "gateway-sub", networkType: "", protocolType: "ble" })
        )
        const [stays, removed] = [
          yield* here.run(Fixtures.createDevice(product)),
          yield* here.run(Fixtures.createDevice(product))
        ]
        const mac = yield* here.run(Mac)
        const proofs = [stays, removed].map(({ deviceName, deviceSecret, productKey }) => ({
          deviceName,
          productKey,
          signMethod: "hmacSha1",
          sign: mac.sign("hmacsha1", deviceSecret, fieldsText({ deviceName, productKey }))
        }))
        const { received, send } = yield* connect(here, gateway)
        yield* send("thing.topo.add", proofs)
        const session = (yield* sessionAt(here, gateway))!
        const { answer } = yield* here.run(SubDeviceSessions)
        const reply = yield* answer(session.connection.device, session, "", "combine.batch_login", {
          deviceList: proofs
        })
        assert.strictEqual(reply.code, 200)
        there.suffer(deaf)
        const { deviceName, productKey } = removed
        yield* there.run(Effect.flatMap(Topologies, (topologies) =>
          topologies.remove(defaultProjectId, gateway.deviceId, [{ deviceName, productKey }])))
        yield* eventually(sessionAt(here, removed), {
          until: (session) =>
            session === undefined
        })
        assert.isDefined(yield* sessionAt(here, stays))
        yield* eventually(statusOf(there, removed), { until: (status) => status === "offline 2" })
        assert.deepNestedInclude((yield* Queue.takeAll(received)).at(-1), {
          method: "ext.error",
          "params.data": { deviceName, productKey }
        })
      }).pipe(Effect.scoped))

    it.live("what is desired through another node reaches the device, whatever is lost, and once", () =>
      Effect.gen(function*() {
        const storage = yield* makeStorage
        const [here, there] = [yield* startNode(storage), yield* startNode(storage)]
        const [device] = yield* createDevices(here, 1)
        const { received } = yield* connect(here, device!)
        const desire = (node: Node, power: number) =>
          node.run(Effect.flatMap(Shadows, (shadows) => shadows.desire(defaultProjectId, device!.deviceId, { power })))
        yield* desire(there, 1)
        assert.nestedInclude(yield* Queue.take(received), { "params.state.desired.power": 1 })
        there.suffer(deaf)
        yield* desire(there, 2)
        assert.nestedInclude(yield* Queue.take(received), { "params.state.desired.power": 2 })
        there.suffer({ ...deaf, lost: 0, doubled: 1 })
        yield* desire(there, 3)
        yield* desire(here, 4)
        yield* Effect.sleep(2 * times.sweep)
        const powers = (yield* Queue.takeAll(received)).map(({ params }) =>
          (params as { readonly state: { readonly desired: { readonly power: number } } }).state.desired.power
        )
        // What it knows already it is not told again, whichever node was quicker.
        assert.include([[4], [3, 4], [4, 4]].map(String), String(powers))
      }).pipe(Effect.scoped))
  })
}

it.live("clocks of nodes that are off make nobody offline, and a dead node is found all the same", () =>
  Effect.gen(function*() {
    const storage = yield* onPostgres
    const [ahead, behind] = [
      yield* startNode(storage, clockOff(3_600_000)),
      yield* startNode(storage, clockOff(-3_600_000))
    ]
    const dead = yield* startNode(storage)
    const devices = yield* createDevices(ahead, 3)
    yield* Effect.forEach([ahead, behind, dead], (node, i) => connect(node, devices[i]!))
    yield* Effect.sleep(times.silence + 300)
    for (const device of devices) assert.strictEqual(yield* statusOf(behind, device), "online 1")
    yield* dead.reach.close
    yield* eventually(statusOf(ahead, devices[2]!), { until: (status) => status === "offline 2" })
    for (const device of devices.slice(0, 2)) assert.strictEqual(yield* statusOf(behind, device), "online 1")
    yield* dead.reach.open
  }).pipe(Effect.scoped))

it.live("nobody flaps when no node could reach the store for a time", () =>
  Effect.gen(function*() {
    const storage = yield* onPostgres
    const nodes = [yield* startNode(storage), yield* startNode(storage)] as const
    const devices = yield* createDevices(nodes[0], 2)
    yield* Effect.forEach(nodes, (node, i) => connect(node, devices[i]!))
    yield* Effect.sleep(times.silence)
    for (const node of nodes) yield* node.reach.close
    yield* Effect.sleep(times.silence + 300)
    yield* nodes[0].reach.open
    yield* Effect.sleep(times.gap)
    yield* nodes[1].reach.open
    yield* Effect.sleep(times.silence)
    for (const device of devices) assert.strictEqual(yield* statusOf(nodes[0], device), "online 1")
  }).pipe(Effect.scoped))

// On PostgreSQL a test cannot lose the answer to a COMMIT.
it.live("a device whose connection has failed though it was stored is offline", () =>
  Effect.gen(function*() {
    const storage = yield* inMemory
    const node = yield* startNode(storage)
    const [device] = yield* createDevices(node, 1)
    node.answers.lost = true
    assert.strictEqual((yield* Effect.flip(connect(node, device!)))._tag, "StoreError")
    node.answers.lost = false
    yield* eventually(statusOf(node, device!), { until: (status) => status === "offline 2" })
  }).pipe(Effect.scoped))
