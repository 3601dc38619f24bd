import {
  Broadcasts,
  Commands,
  defaultProjectId,
  type Device,
  DeviceCloud,
  Devices,
  DeviceSessions,
  DeviceStore,
  fieldsText,
  Firmwares,
  Jobs,
  type Json,
  Mac,
  MeshNetworks,
  NodeBus,
  PresenceStore,
  type Shadow,
  ShadowStore,
  ThingModels,
  Topologies,
  upgradeMethod,
  Upgrades,
  type UpgradeTaskDraft,
  UpgradeTasks
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StoragePg from "@device-cloud/storage-pg"
import { eventually, Fixtures, SimulatedDevice, TestKeyRing } from "@device-cloud/testing"
import { insertDevice } from "@device-cloud/testing/contracts"
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Option, Queue, type Redacted } from "effect"
import { blockedStatements, newDatabase } from "../../../vitest.storages.ts"

const storage = (url: Redacted.Redacted) => StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer))

const epoch = Date.UTC(2026, 0, 1)

const set = (property: string, value: Json, at: number) => (shadow: Shadow) =>
  [
    shadow.version,
    {
      ...shadow,
      version: shadow.version + 1,
      reported: { ...shadow.reported, [property]: { value, time: at } },
      updatedAt: at
    }
  ] as const

it.live("several nodes on one database lose no update, whatever each remembers", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const node = Layer.build(Layer.fresh(storage(url)))
    const [first, second] = [yield* node, yield* node]
    const { device: { deviceId } } = yield* Effect.provide(insertDevice, first)
    const on = (context: Context.Context<DeviceCloud.Stores>) => ({
      modify: <A>(modify: (shadow: Shadow) => readonly [A, Shadow]) =>
        Effect.flatMap(ShadowStore, (store) => store.modify([{ deviceId, modify }])).pipe(
          Effect.map(([answer]) => Option.getOrThrow(answer!)),
          Effect.provide(context)
        )
    })
    const [one, two] = [on(first), on(second)]
    assert.strictEqual(yield* one.modify(set("a", 1, epoch + 1)), 0)
    assert.strictEqual(yield* two.modify(set("b", 2, epoch + 2)), 1)
    // What only looks sees what another node has written.
    assert.strictEqual(yield* one.modify((shadow) => [shadow.version, shadow]), 2)
    assert.strictEqual(yield* one.modify(set("c", 3, epoch + 3)), 2)
    // The version goes back and comes again, with another content.
    yield* two.modify((shadow) => [0, { ...shadow, version: 0, reported: {}, updatedAt: epoch + 4 }])
    for (let at = 5; at <= 7; at++) yield* two.modify(set("d", at, epoch + at))
    assert.strictEqual(yield* one.modify(set("e", 8, epoch + 8)), 3)
    yield* Effect.all(
      Array.from({ length: 40 }, (_, i) => [one, two][i % 2]!.modify(set(`w${i}`, i, epoch + 10 + i))),
      { concurrency: "unbounded" }
    )
    const shadow = yield* two.modify((shadow) => [shadow, shadow])
    assert.strictEqual(shadow.version, 44)
    assert.deepStrictEqual(
      Object.keys(shadow.reported).toSorted(),
      ["d", "e", ...Array.from({ length: 40 }, (_, i) => `w${i}`)].toSorted()
    )
  }).pipe(Effect.scoped))

/** A cloud of its own on the database, as on another machine. */
const cloudOn = (url: Redacted.Redacted) =>
  Layer.build(
    Layer.fresh(
      DeviceCloud.layer.pipe(
        Layer.provide(storage(url)),
        Layer.provideMerge(PlatformNode.layer)
      )
    )
  )

const createDevice = Effect.flatMap(Fixtures.createProduct({ nodeType: "gateway" }), Fixtures.createDevice)

const statusOf = ({ deviceId }: Device) =>
  Effect.map(
    Effect.flatMap(Devices, (devices) => devices.get(defaultProjectId, { deviceId })),
    ({ device: { status, statusVersion } }) => [status, statusVersion] as const
  )

it.live("nodes on one database act as one cloud", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const [first, second] = [yield* cloudOn(url), yield* cloudOn(url)]
    // A node hears the others some time after its start.
    const heard = Effect.gen(function*() {
      const device = yield* Effect.provide(createDevice, first)
      const connected = yield* Effect.provide(SimulatedDevice.connect(device), second)
      yield* Effect.provide(
        Effect.flatMap(Devices, (devices) => devices.disable(defaultProjectId, device.deviceId)),
        first
      )
      assert.strictEqual(yield* connected.closed, "disabled")
      assert.deepInclude(yield* Queue.take(connected.received), { method: "thing.disable" })
    })
    yield* eventually(Effect.timeout(Effect.scoped(heard), "1 second"))

    // A command that one node takes is delivered by the other.
    const device = yield* Effect.provide(createDevice, first)
    const connected = yield* Effect.provide(SimulatedDevice.connect(device), second)
    const command = yield* Effect.provide(
      Effect.flatMap(Commands, (commands) => commands.setProperties(defaultProjectId, device.deviceId, { on: 1 })),
      first
    )
    assert.deepInclude(yield* Queue.take(connected.received), { id: String(command.messageId), params: { on: 1 } })

    // A broadcast reaches the transports of both, once each.
    const broadcasts = yield* Queue.unbounded<string>()
    for (const [name, node] of [["first", first], ["second", second]] as const) {
      yield* Context.get(node, Broadcasts).listen(({ payload, topic }) =>
        void Queue.offerUnsafe(broadcasts, `${name} ${topic} ${payload.length}`)
      )
    }
    const send = (node: typeof first, topic: string, payload: string) =>
      Context.get(node, Broadcasts).send(defaultProjectId, device.productKey, { topic, payload, encoding: "utf8" })
    yield* send(first, "a", "°".repeat(2048))
    assert.deepStrictEqual((yield* Queue.takeN(broadcasts, 2)).toSorted(), ["first a 4096", "second a 4096"])
    assert.strictEqual((yield* Effect.flip(send(second, "b", "x".repeat(4097))))._tag, "InvalidInput")
    // The nodes count the broadcasts of a product together: one in a second.
    yield* eventually(send(second, "b", ""))
    assert.deepStrictEqual((yield* Queue.takeN(broadcasts, 2)).toSorted(), ["first b 0", "second b 0"])

    // A job of one node reaches the device at the other, and so does its end.
    const jobs = Context.get(first, Jobs)
    const draft = { name: "Calibrate", document: {}, deviceIds: [device.deviceId] }
    const { jobId } = yield* jobs.create(defaultProjectId, draft)
    const noticeOf = (status: string) => ({
      method: "thing.job.notify",
      params: { task: { taskId: String(jobId), status, jobDocument: {} } }
    })
    assert.deepInclude(yield* Queue.take(connected.received), noticeOf("SENT"))
    yield* eventually(jobs.get(defaultProjectId, jobId), { until: ({ counts }) => counts.sent === 1 })
    yield* jobs.cancel(defaultProjectId, jobId)
    assert.deepInclude(yield* Queue.take(connected.received), noticeOf("CANCELLED"))

    // The reply that one node stores reaches the caller that waits at the other.
    const waiting = yield* Effect.forkScoped(
      Effect.provide(
        Effect.flatMap(Commands, (commands) =>
          commands.request(defaultProjectId, device.deviceId, "ring", {}, { wait: 30 })),
        first
      )
    )
    const call = yield* Queue.take(connected.received)
    yield* connected.answer(call, 200, { rings: 3 })
    const { command: answered } = yield* Effect.timeout(Fiber.join(waiting), "20 seconds")
    assert.deepInclude(answered, { messageId: Number(call.id), state: "succeeded", data: { rings: 3 } })

    // So is an upgrade that one node is asked to start, or to let go on.
    const upgradeOf = (draft: Partial<UpgradeTaskDraft>) =>
      Effect.gen(function*() {
        const { firmware } = yield* (yield* Firmwares).create(defaultProjectId, device.productKey, {
          name: "Lamp",
          version: "2.0.0",
          ossPath: "https://cloud.example.com/firmware.bin",
          algorithms: "md5",
          hash: "93230c3bde425a9d7984a594ac55ea1e",
          module: draft.needAppConfirm === true ? "lamp" : "default"
        })
        return yield* (yield* UpgradeTasks).createUpgradeTask(defaultProjectId, firmware.firmwareId, {
          scopeMode: "all",
          ...draft
        })
      })
    const asked = yield* Effect.provide(upgradeOf({}), first)
    const onFirst = <A, E>(run: (upgrades: Upgrades["Service"]) => Effect.Effect<A, E>) =>
      Effect.provide(Effect.flatMap(Upgrades, run), first)
    yield* onFirst((upgrades) =>
      upgrades.start(defaultProjectId, device.deviceId, asked.taskId)
    )
    assert.deepInclude(yield* Queue.take(connected.received), { method: upgradeMethod })
    const unconfirmed = yield* Effect.provide(upgradeOf({ cloudPush: true, needAppConfirm: true }), first)
    yield* onFirst((upgrades) => upgrades.confirmDevice(defaultProjectId, unconfirmed.taskId, device.deviceId))
    assert.deepInclude(yield* Queue.take(connected.received), { method: upgradeMethod })

    // Bytes for a mesh network reach its gateway through the node that it is connected to, once.
    const { deviceName, deviceSecret, productKey } = device
    const sending = Effect.gen(function*() {
      const networks = yield* MeshNetworks
      const { networkKey } = yield* networks.create(defaultProjectId, {})
      const send = (rawData: string) => networks.sendRaw(defaultProjectId, networkKey, { rawData })
      const sign = (yield* Mac).sign("hmacsha1", deviceSecret, fieldsText({ deviceName, productKey }))
      yield* networks.addNode(defaultProjectId, networkKey, {
        productKey,
        deviceName,
        sign,
        signMethod: "hmacsha1",
        nodeType: 2
      })
      yield* send("01")
      yield* send("02")
      return networkKey
    })
    const network_key = yield* Effect.provide(sending, first)
    for (const raw_data of ["01", "02"]) {
      const { id: _, ...message } = yield* Queue.take(connected.received)
      assert.deepStrictEqual(message, { method: "thing.mesh.raw", params: { network_key, raw_data } })
    }

    // A model that one node changes counts at the other.
    const importing = Effect.flatMap(ThingModels, (models) =>
      models.importFrom(
        defaultProjectId,
        device.productKey,
        "metadata",
        JSON.stringify({ properties: [{ id: "on", name: "On", accessMode: "rw", dataType: { type: "int" } }] })
      ))
    assert.deepInclude(yield* connected.postProperties({ other: 1 }), { code: 200, data: {} })
    yield* Effect.provide(importing, first)
    const refused = yield* eventually(connected.postProperties({ other: 2 }), {
      until: ({ data }) => Object.keys(data as object).length > 0
    })
    assert.deepStrictEqual(Object.keys(refused.data as object), ["other"])

    // A gateway learns of its add-session and of its sub-devices from either node.
    const gateway = yield* Effect.provide(createDevice, first)
    const connectedGateway = yield* Effect.provide(SimulatedDevice.connect(gateway), second)
    yield* Effect.provide(
      Effect.flatMap(Topologies, (topologies) => topologies.startAdding(defaultProjectId, gateway.deviceId, {})),
      first
    )
    assert.deepInclude(yield* Queue.take(connectedGateway.received), {
      method: "thing.gateway.permit",
      params: { time: 60, productKey: "" }
    })

    // A device that connects to another node ends its first connection, and stays online throughout.
    assert.deepStrictEqual(yield* Effect.provide(statusOf(device), first), ["online", 1])
    yield* Effect.provide(SimulatedDevice.connect(device), first)
    assert.strictEqual(yield* connected.closed, "replaced")
    assert.deepStrictEqual(yield* Effect.provide(statusOf(device), first), ["online", 1])
  }).pipe(Effect.scoped))

it.live("a roll-out reaches the devices of all nodes in its time, whichever finds it due", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const nodes = [yield* cloudOn(url), yield* cloudOn(url)] as const
    const on = <A, E, R>(i: number, effect: Effect.Effect<A, E, R>) => Effect.provide(effect, nodes[i % 2]!)
    const { productKey } = yield* on(0, Fixtures.createProduct({ nodeType: "gateway" }))
    const devices = yield* on(0, Fixtures.createDevices(12, { productKey }))
    const connected = yield* Effect.forEach(devices, (device, i) => on(i, SimulatedDevice.connect(device)))
    const { firmware } = yield* on(
      0,
      Effect.flatMap(Firmwares, (all) =>
        all.create(defaultProjectId, productKey, {
          name: "Lamp",
          version: "2.0.0",
          ossPath: "https://cloud.example.com/firmware.bin",
          algorithms: "md5",
          hash: "93230c3bde425a9d7984a594ac55ea1e"
        }))
    )
    // Nodes hear each other some time after their start; what was told before is told again in a minute.
    const heard = (from: number) =>
      Effect.gen(function*() {
        const probe = yield* on(from, createDevice)
        const { closed } = yield* on(from + 1, SimulatedDevice.connect(probe))
        yield* on(from, Effect.flatMap(Devices, (all) => all.disable(defaultProjectId, probe.deviceId)))
        yield* closed
      }).pipe(Effect.scoped, Effect.timeout("1 second"), eventually)
    yield* heard(0)
    yield* heard(1)
    const task = yield* on(
      0,
      Effect.flatMap(UpgradeTasks, (all) =>
        all.createUpgradeTask(defaultProjectId, firmware.firmwareId, {
          scopeMode: "all",
          cloudPush: true,
          maximumPerMinute: 100_000
        }))
    )
    for (const { received } of connected) {
      assert.deepInclude(yield* Queue.take(received), { method: upgradeMethod })
    }
    const { counts } = yield* on(1, Effect.flatMap(UpgradeTasks, (all) => all.get(defaultProjectId, task.taskId)))
    assert.deepStrictEqual([counts.pending, counts.upgrading], [0, 12])
  }).pipe(Effect.scoped))

it.live("of two nodes that are asked to remove the same at once, one has removed it, and the other finds nothing", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const [first, second] = [yield* cloudOn(url), yield* cloudOn(url)]
    const sql = Context.get(yield* Layer.build(PgClient.layer({ url })), PgClient.PgClient)
    /** Both have found what they remove when the first of them removes it. */
    const atOnce = <A, E extends { readonly _tag: string }>(
      table: string,
      remove: Effect.Effect<A, E, DeviceCloud.DeviceCloud>
    ) =>
      Effect.gen(function*() {
        const removals = yield* sql.withTransaction(Effect.gen(function*() {
          yield* sql`SELECT FROM ${sql(table)} FOR UPDATE`
          const removals = yield* Effect.forEach([first, second], (node) =>
            remove.pipe(
              Effect.match({ onFailure: ({ _tag }) => _tag, onSuccess: () => "removed" }),
              Effect.provide(node),
              Effect.forkDetach
            ))
          yield* eventually(blockedStatements(sql), { until: (count) => count === 2 })
          return removals
        }))
        return (yield* Effect.forEach(removals, Fiber.join)).toSorted()
      })

    const { gateway, sub, taskId } = yield* Effect.gen(function*() {
      const gateway = yield* createDevice
      const firmware = yield* (yield* Firmwares).create(defaultProjectId, gateway.productKey, {
        name: "Lamp",
        version: "2.0.0",
        ossPath: "https://cloud.example.com/firmware.bin",
        algorithms: "md5",
        hash: "93230c3bde425a9d7984a594ac55ea1e"
      })
      const tasks = yield* UpgradeTasks
      const { taskId } = yield* tasks.createUpgradeTask(defaultProjectId, firmware.firmware.firmwareId, {
        scopeMode: "all",
        cloudPush: true
      })
      yield* tasks.cancel(defaultProjectId, taskId)
      const sub = yield* Effect.flatMap(
        Fixtures.createProduct({ nodeType: "gateway-sub", validateType: "none" }),
        Fixtures.createDevice
      )
      yield* sql`INSERT INTO sub_device (device_id, gateway_id, attached_at)
        VALUES (${sub.deviceId}, ${gateway.deviceId}, now())`
      return { gateway, sub, taskId }
    }).pipe(Effect.provide(first))
    assert.deepStrictEqual(
      yield* atOnce("ota_task", UpgradeTasks.use((tasks) => tasks.remove(defaultProjectId, taskId))),
      ["TaskNotFound", "removed"]
    )
    assert.deepStrictEqual(
      yield* atOnce(
        "sub_device",
        Topologies.use((topologies) => topologies.remove(defaultProjectId, gateway.deviceId, [sub]))
      ),
      ["NotInTopology", "removed"]
    )
  }).pipe(Effect.scoped))

it.live("a node that did not hear the others finds out what became of its devices", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const deaf = yield* cloudOn(url)
    const devices = yield* Effect.provide(Effect.all([createDevice, createDevice]), deaf)
    const [released, disabled] = yield* Effect.provide(
      Effect.forEach(devices, (device) => SimulatedDevice.connect(device)),
      deaf
    )
    const sighted = yield* Effect.provide(createDevice, deaf)
    const see = Effect.flatMap(DeviceSessions, (sessions) =>
      sessions.markSeen({ ...sighted, validateType: "weak" }, "192.0.2.8")).pipe(Effect.provide(deaf))
    yield* see
    const sql = yield* Layer.build(PgClient.layer({ url }))
    const listeners = Effect.flatMap(
      PgClient.PgClient,
      (client) =>
        client<{ readonly pid: number }>`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND query LIKE 'LISTEN%'`
    )
    // Another node has counted it out, and set the devices offline.
    const other = yield* Layer.build(Layer.fresh(storage(url)))
    yield* Effect.gen(function*() {
      const store = yield* PresenceStore
      const deviceIds = devices.map(({ deviceId }) =>
        deviceId
      )
      const { nodeId } = (yield* store.connectionsOf(deviceIds)).get(deviceIds[0]!)!
      yield* store.markOffline({ deviceIds, lapse: { _tag: "NodeStops", nodeId }, at: epoch })
      const sightedIds = [sighted.deviceId]
      const lapse = { _tag: "NotConnected", deviceIds: sightedIds } as const
      yield* store.markOffline({ deviceIds: sightedIds, lapse, at: epoch })
    }).pipe(Effect.provide(other))
    yield* Effect.flatMap(DeviceStore, (store) =>
      store.update(defaultProjectId, devices[1].deviceId, { enabled: false, updatedAt: epoch })).pipe(
        Effect.provide(other)
      )
    assert.deepStrictEqual(yield* Effect.provide(statusOf(devices[0]), deaf), ["offline", 2])
    yield* eventually(Effect.provide(listeners, sql), {
      until: (rows) =>
        rows.length > 0
    })
    yield* eventually(Effect.provide(statusOf(devices[0]), deaf), {
      until: ([status]) => status === "online"
    })
    assert.deepStrictEqual(yield* Effect.provide(statusOf(devices[0]), deaf), ["online", 3])
    assert.deepInclude(yield* released!.postProperties({ on: 1 }), { code: 200 })
    assert.strictEqual(yield* disabled!.closed, "disabled")
    yield* eventually(Effect.andThen(see, Effect.provide(statusOf(sighted), deaf)), {
      until: ([status, version]) => status === "online" && version === 3
    })
  }).pipe(Effect.scoped))

it.live("a sighting replaces an end that was stored while the clock of the database was ahead", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const stores = yield* Layer.build(storage(url))
    const sql = Context.get(yield* Layer.build(PgClient.layer({ url })), PgClient.PgClient)
    const { device: { deviceId } } = yield* Effect.provide(insertDevice, stores)
    const presence = Context.get(stores, PresenceStore)
    const see = presence.markSeen([{ deviceId, ip: "192.0.2.8", at: epoch, lasts: 60_000 }])
    yield* see
    yield* sql`UPDATE presence SET online_until = now() + interval '1 hour'`
    yield* see
    assert.deepStrictEqual(
      yield* sql`SELECT online_until < now() + interval '2 minutes' AS "isRight" FROM presence`,
      [{ isRight: true }]
    )
  }).pipe(Effect.scoped))

it.live("what is told right after a node has said that it may have missed something reaches it", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const busOf = Effect.map(
      Layer.build(Layer.fresh(storage(url))),
      (stores) => Context.get(stores, NodeBus)
    )
    const first = yield* busOf
    for (let round = 0; round < 5; round++) {
      const second = yield* busOf
      const heard = yield* Queue.unbounded<string>()
      yield* second.listen((notice) => void Queue.offerUnsafe(heard, notice === "missed" ? notice : notice.channel))
      assert.strictEqual(yield* Queue.take(heard), "missed")
      yield* first.publish([{ channel: "nodes", payload: String(round) }])
      assert.strictEqual(yield* Queue.take(heard), "nodes")
    }
  }).pipe(Effect.scoped))

it.live(
  "a node whose connection has ended is silent after the gap of a steady one, another one stays",
  () =>
    Effect.gen(function*() {
      const url = yield* newDatabase
      const limits = { gap: 10_000, silence: 3_600_000 }
      const presenceOf = Effect.map(Layer.build(Layer.fresh(storage(url))), Context.get(PresenceStore))
      const [judges, lives] = [yield* presenceOf, yield* presenceOf]
      const sql = Context.get(yield* Layer.build(PgClient.layer({ url })), PgClient.PgClient)
      const judge = { nodeId: "judges", limits }
      const silent = judges.silentNodes(judge)
      yield* judges.heartbeat("judges", limits)
      yield* lives.heartbeat("lives", limits)
      yield* Effect.scoped(Effect.flatMap(presenceOf, (ends) => ends.heartbeat("ends", limits)))
      yield* sql`UPDATE node SET steady_since = steady_since - interval '2 hours'`
      assert.deepStrictEqual(yield* silent, [])
      const pass = sql`UPDATE node SET heartbeat_at = heartbeat_at - interval '1 minute' WHERE id <> 'judges'`
      yield* pass
      yield* eventually(Effect.map(silent, (nodes) => assert.deepStrictEqual(nodes, ["ends"])))
      // A version that does not say through which connection it speaks.
      yield* sql`INSERT INTO node (id, heartbeat_at) SELECT 'older', heartbeat_at FROM node WHERE id = 'lives'`
      assert.deepStrictEqual(yield* silent, ["ends"])
      // Whoever was thought dead, and speaks again, hears of it; whoever was only late does not.
      assert.deepStrictEqual(yield* lives.heartbeat("lives", limits), { wasSilent: false })
      assert.deepStrictEqual(yield* lives.heartbeat("ends", limits), { wasSilent: true })
      assert.deepStrictEqual(yield* silent, [])
    }),
  { timeout: 60_000 }
)
