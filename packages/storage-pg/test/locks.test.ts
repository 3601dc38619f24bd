import {
  type AccessKey,
  AccessKeyStore,
  AuditStore,
  BulkCommandStore,
  CertificateStore,
  CommandStore,
  ConfigurationStore,
  ConnectRefusalStore,
  type DeviceCloud,
  type DeviceGroup,
  DeviceGroupStore,
  DeviceId,
  DeviceName,
  DeviceStore,
  type Enqueue,
  type Execution,
  ExecutionStore,
  FeedReaderStore,
  type Firmware,
  type HistoryAddition,
  HistoryStore,
  IdempotencyStore,
  JobStore,
  keptRefusals,
  type NewAuthority,
  type NewCertificate,
  type NewDevice,
  type NewFirmware,
  type NewTask,
  OtaStore,
  type PresenceOutcome,
  PresenceStore,
  ProductStore,
  ProjectId,
  ProjectStore,
  QuotaStore,
  SceneId,
  SceneStore,
  type ShadowModification,
  ShadowStore,
  type TaskCreated,
  TopologyStore,
  TraceStore
} from "@device-cloud/core"
import * as StoragePg from "@device-cloud/storage-pg"
import { eventually, TestKeyRing } from "@device-cloud/testing"
import { insertDevice, newCommand } from "@device-cloud/testing/contracts"
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, Redacted } from "effect"
import type { SqlError } from "effect/sql"
import { blockedStatements, newDatabase } from "../../../vitest.storages.ts"

type Stores = DeviceCloud.Stores

const day = 86_400_000
const now = Date.now()

/** The stores of a node, those of another one with connections of its own, and two devices in the order of their ids. */
const withNodes = <E>(
  use: (world: {
    readonly sql: PgClient.PgClient
    /** Runs an effect on the other node. */
    readonly onOther: <A, E>(effect: Effect.Effect<A, E, Stores>) => Effect.Effect<A, E>
    readonly devices: readonly [Device, Device]
  }) => Effect.Effect<void, E, Stores>,
  /** The kind of plan that the database avoids: tables are too large to be read whole. */
  avoided = "enable_seqscan"
) =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    yield* Effect.flatMap(
      PgClient.PgClient,
      (sql) => sql`ALTER DATABASE ${sql(new URL(Redacted.value(url)).pathname.slice(1))} SET ${sql(avoided)} = off`
    ).pipe(Effect.provide(PgClient.layer({ url })))
    const stores = StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer))
    const other = yield* Layer.build(Layer.fresh(stores))
    yield* Effect.gen(function*() {
      const devices = [(yield* insertDevice).device, (yield* insertDevice).device]
      const [first, second] = devices.toSorted((a, b) => a.deviceId < b.deviceId ? -1 : 1)
      yield* use({ sql: yield* PgClient.PgClient, onOther: Effect.provide(other), devices: [first!, second!] })
    }).pipe(Effect.provide(Layer.merge(stores, PgClient.layer({ url }))))
  })

type Device = Effect.Success<typeof insertDevice>["device"]

/** Waits until so many statements wait for a lock. */
const blocked = (sql: PgClient.PgClient, expected: number) =>
  eventually(blockedStatements(sql), { until: (count) => count === expected })

/**
 * Runs `lock` in a transaction, lets two effects wait for it in the order of
 * `waiting`, ends it, and returns what they made.
 */
const inTurn = <A, B, E, F, R, S>(
  sql: PgClient.PgClient,
  lock: Effect.Effect<unknown, SqlError.SqlError>,
  waiting: readonly [Effect.Effect<A, E, R>, Effect.Effect<B, F, S>]
) =>
  Effect.gen(function*() {
    const [one, two] = yield* sql.withTransaction(Effect.gen(function*() {
      yield* lock
      const one = yield* Effect.forkDetach(waiting[0])
      yield* blocked(sql, 1)
      const two = yield* Effect.forkDetach(waiting[1])
      yield* blocked(sql, 2)
      return [one, two] as const
    }))
    return [yield* Fiber.join(one), yield* Fiber.join(two)] as const
  })

/** Locks the row of the device. */
const rowOf = (sql: PgClient.PgClient, table: string, { deviceId }: Pick<Device, "deviceId">) =>
  sql`SELECT FROM ${sql(table)} WHERE device_id = ${deviceId} FOR UPDATE`

const online = ({ deviceId }: Pick<Device, "deviceId">, connectionId: string) =>
  ({ _tag: "Online", deviceId, connectionId, nodeId: "a", ip: "192.0.2.1", at: Date.now() }) as const

const connect = (devices: ReadonlyArray<Pick<Device, "deviceId">>, connectionId: string) =>
  PresenceStore.use((store) => store.record(devices.map((device) => online(device, connectionId))))

const command = (device: Device): Enqueue => ({ command: newCommand(device, { createdAt: Date.now() }) })

/** Adds one to the version. */
const next = (deviceId: DeviceId): ShadowModification<number> => ({
  deviceId,
  modify: (shadow) => [shadow.version, { ...shadow, version: shadow.version + 1, updatedAt: Date.now() }]
})

const modify = (modifications: ReadonlyArray<ShadowModification<number>>) =>
  Effect.map(
    ShadowStore.use((store) => store.modify(modifications)),
    (found) => found.map((version) => version._tag === "Some" ? version.value : -1)
  )

/** A dynamic upgrade task for the product of the device, and its firmware. */
const upgradeOf = ({ productKey, projectId }: Device) => {
  const of = { projectId, productKey, module: "default", version: "2.0.0", createdAt: now, updatedAt: now }
  const firmware: NewFirmware = {
    ...of,
    name: "Thermostat",
    ossPath: "https://example.com/firmware.bin",
    algorithms: "md5",
    hash: "93230c3bde425a9d7984a594ac55ea1e",
    sha256: "",
    signed: null,
    size: 1000,
    remark: "",
    status: "unverified"
  }
  const draft: Omit<NewTask, "firmwareId"> = {
    ...of,
    kind: "upgrade",
    upgradeType: "static",
    upgradePolicy: "push",
    scopeMode: "all",
    isDynamic: true,
    timeout: 60,
    needAppConfirm: false,
    isAppConfirmed: false,
    downloadProtocol: "https",
    maximumPerMinute: 60,
    retryCount: 0,
    retryInterval: 600,
    abortThresholdPercent: 0,
    abortMinExecuted: 1,
    stages: [],
    stage: 1,
    stageSuccessPercent: 0,
    startWindow: null
  }
  return { draft, firmware }
}

/** A device whose name is its id. */
const named = (name: string): NewDevice => ({
  deviceId: DeviceId.make(name),
  deviceName: DeviceName.make(name),
  deviceSecret: "0123456789abcdef0123456789abcdef",
  nickname: "",
  batchId: 0,
  cloudGateway: null,
  createdAt: Date.now()
})

/** A batch of devices whose ids are, by default, not in the order of their numbers. */
const insertBatch = ({ productKey, projectId }: Device, names: ReadonlyArray<string> = ["b", "a"]) =>
  Effect.gen(function*() {
    const devices = names.map(named)
    const store = yield* DeviceStore
    const batch = yield* store.insertBatch(projectId, productKey, { description: "", createdAt: 0 }, devices)
    return {
      devices,
      remove: Effect.map(
        DeviceStore.use((store) => store.removeBatch(projectId, productKey, Option.getOrThrow(batch).batchId)),
        (removed) => Option.getOrThrow(removed).length
      )
    }
  })

it.live("a command for a device that is being removed leaves those of other devices alone", () =>
  withNodes(({ devices, sql }) =>
    Effect.gen(function*() {
      const [removed, kept] = devices
      const enqueued = yield* sql.withTransaction(Effect.gen(function*() {
        yield* sql`DELETE FROM device WHERE device_id = ${removed.deviceId}`
        const enqueued = yield* Effect.forkDetach(
          CommandStore.use((store) => store.enqueue([command(removed), command(kept)]))
        )
        yield* blocked(sql, 1)
        return enqueued
      }))
      const [refused, stored] = yield* Fiber.join(enqueued)
      assert.strictEqual(refused, "no-device")
      assert.strictEqual(typeof stored, "object")
    })
  ))

it.live(
  "a connection that waits for another one learns that it replaces that one",
  () =>
    withNodes(({ devices: [device], onOther, sql }) =>
      Effect.gen(function*() {
        yield* connect([device], "first")
        const [[one], [two]] = yield* inTurn(sql, rowOf(sql, "device", device), [
          onOther(connect([device], "second")),
          connect([device], "third")
        ])
        const claimOf = (outcome: PresenceOutcome | undefined) =>
          outcome?._tag === "Replaced" ? outcome.claim : undefined
        assert.isAbove(claimOf(one)!.epoch, 0)
        assert.strictEqual(claimOf(two)?.epochBefore, claimOf(one)?.epoch)
      })
    ),
  20_000
)

it.live("a command that is stored while a connection waits for its turn waits for the connection", () =>
  withNodes(({ devices: [device], onOther, sql }) =>
    Effect.gen(function*() {
      yield* connect([device], "first")
      const [, [outcome]] = yield* inTurn(sql, rowOf(sql, "presence", device), [
        onOther(CommandStore.use((store) => store.enqueue([command(device)]))),
        connect([device], "second")
      ])
      assert.strictEqual(outcome!._tag, "Replaced")
      const { claim } = outcome as typeof outcome & { readonly claim?: { readonly waiting: boolean } }
      assert.isTrue(claim!.waiting)
    })
  ))

it.live("connections and commands with desired values, in another order, do not wait for each other in a circle", () =>
  withNodes(({ devices, onOther, sql }) =>
    Effect.gen(function*() {
      yield* connect(devices, "first")
      const enqueue = CommandStore.use((store) =>
        store.enqueue(
          devices.toReversed().map((device) => ({ ...command(device), desire: next(device.deviceId).modify }))
        )
      )
      const [outcomes, enqueued] = yield* inTurn(sql, rowOf(sql, "presence", devices[0]), [
        connect(devices, "second"),
        onOther(AuditStore.use((store) => store.commit(enqueue, () => [])))
      ])
      assert.deepStrictEqual(outcomes.map(({ _tag }) => _tag), ["Replaced", "Replaced"])
      assert.deepStrictEqual(
        enqueued.map((result) => typeof result === "object" && result.command.deviceId),
        devices.toReversed().map(({ deviceId }) => deviceId)
      )
      assert.deepStrictEqual(yield* modify(devices.map(({ deviceId }) => next(deviceId))), [1, 1])
    })
  ))

it.live("writers of the same shadows, in another order, do not wait for each other in a circle", () =>
  withNodes(({ devices, onOther, sql }) =>
    Effect.gen(function*() {
      const modifications = devices.map(({ deviceId }) => next(deviceId))
      yield* modify(modifications)
      const versions = yield* inTurn(sql, rowOf(sql, "shadow", devices[0]), [
        modify(modifications),
        onOther(modify(modifications.toReversed()))
      ])
      assert.sameDeepMembers([...versions], [[1, 1], [2, 2]])
    })
  ))

it.live("a device is created and another one removed: counts do not wait for each other in a circle", () =>
  withNodes(({ devices: [{ deviceId, productKey, projectId }], onOther, sql }) =>
    Effect.gen(function*() {
      const [created, removed] = yield* inTurn(
        sql,
        sql`SELECT FROM project_usage WHERE project_id = ${projectId} AND quota = 'devices' FOR UPDATE`,
        [
          DeviceStore.use((store) => store.insertMany(projectId, productKey, [named("a")])),
          onOther(DeviceStore.use((store) => store.remove(projectId, deviceId)))
        ]
      )
      assert.isTrue(Option.isSome(created) && Option.isSome(removed))
      const { unactive } = yield* DeviceStore.use((store) => store.count(projectId))
      assert.strictEqual(unactive, 1)
    })
  ))

it.live("a project is removed while something is removed that is counted of it", () =>
  withNodes(({ onOther, sql }) =>
    Effect.gen(function*() {
      const projectId = ProjectId.make("counted")
      yield* ProjectStore.use((store) => store.insert({ id: projectId, name: "counted", createdAt: now }))
      const group = { projectId, name: "a", desc: "", query: null, createdAt: now, updatedAt: now }
      const inserted = yield* DeviceGroupStore.use((store) => store.insert(group))
      assert.isObject(inserted)
      const { groupId } = inserted as DeviceGroup
      const removed = yield* inTurn(
        sql,
        sql`SELECT FROM project_usage WHERE project_id = ${projectId} AND quota = 'deviceGroups' FOR UPDATE`,
        [
          ProjectStore.use((store) => store.remove(projectId)),
          onOther(DeviceGroupStore.use((store) => store.remove(projectId, groupId)))
        ]
      )
      assert.deepStrictEqual(removed, ["removed", false])
    })
  ))

it.live("devices of the same names, in another order, are not created in a circle", () =>
  withNodes(({ devices: [{ deviceId, productKey, projectId }], onOther, sql }) =>
    Effect.gen(function*() {
      const create = (names: ReadonlyArray<string>) =>
        Effect.flip(DeviceStore.use((store) => store.insertMany(projectId, productKey, names.map(named))))
      const errors = yield* inTurn(
        sql,
        sql`INSERT INTO device (project_id, product_key, device_id, device_name, device_secret, nickname, batch_id,
            created_at, updated_at)
          SELECT project_id, product_key, 'other', 'b', device_secret, nickname, batch_id, created_at, updated_at
          FROM device WHERE device_id = ${deviceId}`,
        [create(["a", "b", "c"]), onOther(create(["c", "b", "a"]))]
      )
      assert.deepStrictEqual(errors.map(({ _tag }) => _tag), ["DeviceNamesTaken", "DeviceNamesTaken"])
    })
  ))

it.live("a device that registers while it is removed is created again", () =>
  withNodes(({ devices: [{ deviceId, deviceName, productKey, projectId }], onOther, sql }) =>
    Effect.gen(function*() {
      const draft = { ...named("a"), deviceName }
      const [removed, claimed] = yield* inTurn(sql, rowOf(sql, "device", { deviceId }), [
        onOther(DeviceStore.use((store) => store.remove(projectId, deviceId))),
        DeviceStore.use((store) => store.claimByName(productKey, deviceName, draft))
      ])
      assert.isTrue(Option.isSome(removed))
      assert.strictEqual(typeof claimed === "object" && claimed.device.deviceId, draft.deviceId)
    })
  ))

it.live("devices that register by mac wait for the lock of the only device that is left", () =>
  withNodes(({ devices: [device], onOther, sql }) =>
    Effect.gen(function*() {
      const claim = (mac: string) => DeviceStore.use((store) => store.claimByMac(device.productKey, mac))
      const claimed = yield* inTurn(sql, rowOf(sql, "device", device), [claim("a"), onOther(claim("b"))])
      assert.sameMembers(
        claimed.map((each) => typeof each === "object" ? each.device.deviceId : each),
        [device.deviceId, "none"]
      )
    })
  ))

it.live("a device does not register while its product is removed", () =>
  withNodes(({ devices: [{ deviceId, productKey, projectId }], onOther, sql }) =>
    Effect.gen(function*() {
      yield* DeviceStore.use((store) => store.remove(projectId, deviceId))
      const draft = named("a")
      const create = DeviceStore.use((store) => store.claimByName(productKey, draft.deviceName, draft))
      const [removed, claimed] = yield* inTurn(
        sql,
        sql`SELECT FROM product WHERE product_key = ${productKey} FOR UPDATE`,
        [
          onOther(ProductStore.use((store) => store.remove(projectId, productKey))),
          QuotaStore.use((store) => store.within({ projectId, quota: "devices", amount: 1, limit: 1 }, create))
        ]
      )
      assert.deepStrictEqual([removed, claimed], ["removed", "none"])
    })
  ))

it.live("a batch is removed while its devices connect", () =>
  withNodes(({ devices: [device], onOther, sql }) =>
    Effect.gen(function*() {
      const { devices, remove } = yield* insertBatch(device)
      const [outcomes, removed] = yield* inTurn(sql, rowOf(sql, "device", devices[1]!), [
        connect(devices, "first"),
        onOther(remove)
      ])
      assert.deepStrictEqual(outcomes.map(({ _tag }) => _tag), ["Changed", "Changed"])
      assert.strictEqual(removed, 2)
    })
  ))

for (const names of [["a", "b"], ["b", "a"]]) {
  it.live(`a batch of devices, ${names.join(" before ")}, is removed while their shadows are written`, () =>
    withNodes(({ devices: [device], onOther, sql }) =>
      Effect.gen(function*() {
        const { remove } = yield* insertBatch(device, names)
        const [a, b] = [DeviceId.make("a"), DeviceId.make("b")]
        const modifications = [next(a), next(b)]
        yield* modify(modifications)
        const [removed, versions] = yield* inTurn(sql, rowOf(sql, "shadow", { deviceId: b }), [
          remove,
          onOther(modify(modifications))
        ])
        assert.strictEqual(removed, 2)
        assert.deepStrictEqual(versions, [-1, -1])
      }), "enable_nestloop"))
}

it.live("a batch of devices is removed while the first shadow of one is written with that of another", () =>
  withNodes(({ devices: [device], onOther, sql }) =>
    Effect.gen(function*() {
      const { remove } = yield* insertBatch(device)
      const [a, b] = [DeviceId.make("a"), DeviceId.make("b")]
      yield* modify([next(b)])
      const [versions, removed] = yield* inTurn(sql, rowOf(sql, "shadow", { deviceId: b }), [
        modify([next(a), next(b)]),
        onOther(remove)
      ])
      assert.deepStrictEqual(versions, [0, 1])
      assert.strictEqual(removed, 2)
    })
  ))

it.live("a device is removed while it, and another one, are commanded with desired values", () =>
  withNodes(({ devices, onOther, sql }) =>
    Effect.gen(function*() {
      const [{ deviceId, projectId }, other] = devices
      yield* connect(devices, "first")
      yield* modify(devices.map((device) => next(device.deviceId)))
      const items = devices.map((device) => ({ ...command(device), desire: next(device.deviceId).modify }))
      const [enqueued, removed] = yield* inTurn(sql, rowOf(sql, "presence", other), [
        onOther(CommandStore.use((store) => store.enqueue(items))),
        DeviceStore.use((store) => store.remove(projectId, deviceId))
      ])
      assert.deepStrictEqual(enqueued.map((result) => typeof result), ["object", "object"])
      assert.isTrue(Option.isSome(removed))
    })
  ))

it.live("a batch is removed while a job is created for the product", () =>
  withNodes(({ devices: [device], onOther, sql }) =>
    Effect.gen(function*() {
      const { devices, remove } = yield* insertBatch(device)
      const { productKey, projectId } = device
      const job = { projectId, name: "a", description: "", document: {}, timeout: 0, productKey, createdAt: Date.now() }
      const [removed, created] = yield* inTurn(sql, rowOf(sql, "device", devices[1]!), [
        remove,
        onOther(JobStore.use((store) => store.create(job, { _tag: "Product", productKey }, 0)))
      ])
      assert.strictEqual(removed, 2)
      assert.strictEqual(created._tag, "Created")
    })
  ))

it.live("a batch is removed while two jobs of its devices go on", () =>
  withNodes(({ devices: [device], onOther, sql }) =>
    Effect.gen(function*() {
      const { remove } = yield* insertBatch(device)
      const [a, b] = [DeviceId.make("a"), DeviceId.make("b")]
      const { productKey, projectId } = device
      const job = { projectId, name: "a", description: "", document: {}, timeout: 0, productKey, createdAt: now }
      const create = JobStore.use((store) => store.create(job, { _tag: "Named", deviceIds: [a, b] }, 0))
      const created = [yield* create, yield* create]
      const [first, second] = created.map((each) => each._tag === "Created" ? each.job.jobId : 0)
      const report = (jobId: number, deviceId: DeviceId) =>
        ({ jobId, deviceId, state: "in_progress", progress: undefined, details: undefined, at: now }) as const
      const [removed, reported] = yield* inTurn(
        sql,
        sql`SELECT FROM job_task WHERE job_id = ${second!} AND device_id = ${a} FOR UPDATE`,
        [remove, onOther(JobStore.use((store) => store.report([report(first!, b), report(second!, a)])))]
      )
      assert.lengthOf(reported, 2)
      assert.strictEqual(removed, 2)
    })
  ))

it.live("a batch of sub-devices is removed while its gateway detaches them", () =>
  withNodes(({ devices: [gateway], onOther, sql }) =>
    Effect.gen(function*() {
      const { devices, remove } = yield* insertBatch(gateway)
      const subDeviceIds = devices.map(({ deviceId }) => deviceId)
      const { deviceId: gatewayId } = gateway
      const store = yield* TopologyStore
      yield* store.attach({ gatewayId, subDeviceIds, by: { _tag: "Cloud" }, at: now })
      const [detached, removed] = yield* inTurn(sql, rowOf(sql, "sub_device", devices[0]!), [
        onOther(TopologyStore.use((store) => store.detach({ gatewayId, subDeviceIds, state: "released", at: now }))),
        remove
      ])
      assert.lengthOf(detached, 2)
      assert.strictEqual(removed, 2)
    })
  ))

for (const by of ["a task that is created", "a task that it joins"]) {
  it.live(`a device that is removed while it is given an upgrade by ${by} has a record that can be ended`, () =>
    withNodes(({ devices: [device], onOther, sql }) =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, remove } = yield* insertBatch(device)
        const { draft, firmware } = upgradeOf(device)
        const stored = yield* store.insertFirmware(firmware)
        assert.isObject(stored)
        const task = { ...draft, firmwareId: (stored as Firmware).firmwareId }
        const existing = yield* store.createTask(task, { _tag: "Named", deviceIds: [] }, now)
        assert.strictEqual(existing._tag, "Created")
        const { taskId } = (existing as TaskCreated & { readonly _tag: "Created" }).task
        const give = by === "a task that it joins"
          ? store.join(taskId, devices, now)
          : store.createTask(task, { _tag: "All" }, now)
        const deviceIds = devices.map(({ deviceId }) => deviceId)
        const [, open] = yield* inTurn(sql, rowOf(sql, "device", devices[1]!), [
          give,
          onOther(Effect.andThen(remove, OtaStore.use((store) => store.unfinished(deviceIds))))
        ])
        assert.deepStrictEqual(open.map(({ record }) => record.deviceId).toSorted(), deviceIds.toSorted())
      })
    ))
}

it.live("devices are removed while they, and another one, say their versions", () =>
  withNodes(({ devices: [device], onOther, sql }) =>
    Effect.gen(function*() {
      const { devices, remove } = yield* insertBatch(device)
      const reports = [device, ...devices].map(({ deviceId }) => ({ deviceId, module: "modem", version: "2", at: now }))
      yield* inTurn(sql, rowOf(sql, "device", devices[0]!), [
        remove,
        onOther(OtaStore.use((store) => store.reportVersions(reports)))
      ])
      const versions = yield* OtaStore.use((store) => store.versions(device.deviceId))
      assert.deepStrictEqual(versions, { modem: "2" })
    })
  ))

it.live("a device is removed while its configuration is noted", () =>
  withNodes(({ devices: [{ deviceId, projectId }], onOther, sql }) =>
    Effect.gen(function*() {
      const offered = { deviceId, configurationId: "c", at: now }
      yield* inTurn(sql, rowOf(sql, "device", { deviceId }), [
        DeviceStore.use((store) => store.remove(projectId, deviceId)),
        onOther(ConfigurationStore.use((store) => store.note(offered)))
      ])
      const noted = yield* sql`SELECT FROM configuration_progress WHERE device_id = ${deviceId}`
      assert.isEmpty(noted)
    })
  ))

it.live("versions of the same devices, in another order, do not wait for each other in a circle", () =>
  withNodes(({ devices, onOther, sql }) =>
    Effect.gen(function*() {
      const report = (version: string, devices: ReadonlyArray<Device>) =>
        OtaStore.use((store) =>
          store.reportVersions(
            devices.map(({ deviceId }) => ({ deviceId, module: "default", version, at: Date.now() }))
          )
        )
      const reports = [report("2", devices), onOther(report("3", devices.toReversed()))] as const
      yield* report("1", devices)
      yield* inTurn(sql, rowOf(sql, "device_module", devices[0]), reports)
      yield* report("1", devices)
      yield* inTurn(sql, rowOf(sql, "device", devices[0]), reports)
      const versions = yield* Effect.forEach(
        devices,
        ({ deviceId }) => OtaStore.use((store) => store.versions(deviceId))
      )
      // Two that share the lock of a device go on in any order, but in the same for all devices.
      assert.include(["2", "3"], versions[0]!["default"])
      assert.deepStrictEqual(versions[1], versions[0])
    })
  ))

it.live("uses of the same access keys, in another order, do not wait for each other in a circle", () =>
  withNodes(({ devices: [{ projectId }], onOther, sql }) =>
    Effect.gen(function*() {
      const store = yield* AccessKeyStore
      const ids = ["a", "b"]
      yield* Effect.forEach(ids, (id) =>
        store.insert(
          {
            id,
            projectId,
            name: id,
            role: "admin",
            hash: id,
            createdAt: 0,
            expiresAt: null,
            scopes: {},
            addresses: null,
            createdBy: null,
            lastUsedAt: null
          } satisfies AccessKey
        ))
      const markUsed = (ids: ReadonlyArray<string>, at: number) =>
        AccessKeyStore.use((store) => store.markUsed(ids.map((id) => ({ id, at }))))
      yield* inTurn(sql, sql`SELECT FROM access_key WHERE id = 'a' FOR UPDATE`, [
        markUsed(ids, 1000),
        onOther(markUsed(ids.toReversed(), 2000))
      ])
      const found = yield* Effect.forEach(ids, (id) => store.find(id))
      assert.deepStrictEqual(found.map((key) => Option.getOrThrow(key).lastUsedAt), [2000, 2000])
    })
  ))

it.live("the oldest refusal of a device goes while it happens again at another node", () =>
  withNodes(({ devices, onOther, sql }) =>
    Effect.gen(function*() {
      const [first, second] = devices
      const refusal = ({ deviceName, productKey }: Device, address: number, at: number) => ({
        productKey,
        deviceName,
        address: `${100 + address}`,
        reason: "",
        returnCode: 5,
        times: 1,
        firstAt: at,
        at
      })
      const add = (refusals: ReadonlyArray<ReturnType<typeof refusal>>) =>
        ConnectRefusalStore.use((store) => store.add(refusals))
      const last = keptRefusals + 1
      for (const device of devices) {
        yield* add([0, ...Array.from({ length: keptRefusals - 2 }, (_, i) => i + 2), last]
          .map((address) => refusal(device, address, address)))
      }
      // Each has one that is new, and the oldest of the other's; both wait for the last.
      yield* inTurn(
        sql,
        sql`SELECT FROM connect_refusal WHERE device_id = ${second.deviceId} AND address = ${String(100 + last)}
          FOR UPDATE`,
        [
          add([refusal(first, 1, 1000), refusal(second, 0, 1000), refusal(second, last, 1000)]),
          onOther(add([refusal(first, 0, 1000), refusal(second, 1, 1000), refusal(second, last, 1000)]))
        ]
      )
      const refusals = yield* Effect.forEach(devices, ({ deviceId }) =>
        ConnectRefusalStore.use((store) => store.of(deviceId)))
      for (const of of refusals) {
        assert.lengthOf(of, keptRefusals)
        assert.includeMembers(
          of.map(({ address }) =>
            address
          ),
          ["100", "101"]
        )
      }
    })
  ))

it.live("executions that two nodes save, in another order, do not wait for each other in a circle", () =>
  withNodes(({ devices: [{ projectId }], onOther, sql }) =>
    Effect.gen(function*() {
      const sceneId = SceneId.make("scene")
      const rules = { triggers: [], conditions: [], actions: [] }
      const times = { createdAt: now, updatedAt: now }
      yield* SceneStore.use((store) =>
        store.insert(
          {
            sceneId,
            projectId,
            name: "a",
            desc: "",
            status: "enable",
            ...rules,
            pausedUntil: null,
            revision: 1,
            ...times
          },
          []
        )
      )
      const store = yield* ExecutionStore
      yield* store.enqueue(["a", "b"].map((executionId) => ({
        executionId,
        sceneId,
        projectId,
        at: now,
        event: { _tag: "RunByHand", at: now },
        chain: []
      })))
      const claimed = yield* store.claim({ now, again: now, limit: 2, except: [] })
      assert.deepStrictEqual(claimed.map(({ executionId }) => executionId), ["a", "b"])
      const save = (executions: ReadonlyArray<Execution>) =>
        ExecutionStore.use((store) => store.save(executions.map((each) => ({ ...each, dueAt: null })), now))
      const saved = yield* inTurn(sql, sql`SELECT FROM scene_execution WHERE execution_id = 'a' FOR UPDATE`, [
        save(claimed),
        onOther(save(claimed.toReversed()))
      ])
      assert.deepStrictEqual(saved, [[true, true], [true, true]])
    })
  ))

it.live("traces that have ended go while entries are added to them", () =>
  withNodes(({ devices, onOther, sql }) =>
    Effect.gen(function*() {
      const store = yield* TraceStore
      // In the other order.
      for (const { deviceId, projectId } of devices.toReversed()) {
        yield* store.start({ deviceId, projectId, now: 0, until: 1000, max: 1 })
      }
      yield* inTurn(sql, rowOf(sql, "device_trace", devices[0]), [
        store.append(devices.map(({ deviceId }) => ({ deviceId, entries: [], dropped: 1 })), 10),
        onOther(TraceStore.use((store) => store.prune(2000)))
      ])
      for (const { deviceId } of devices) {
        assert.deepStrictEqual(yield* store.read(deviceId, { after: undefined, limit: 1 }), Option.none())
      }
    })
  ))

/** The keys that two nodes need for entries of the history, in orders of their own, and a transaction that makes the middle one. */
const histories: ReadonlyArray<{
  readonly of: string
  readonly lock: (sql: PgClient.PgClient) => Effect.Effect<unknown, SqlError.SqlError>
  readonly additions: (device: Device, order: ReadonlyArray<number>) => ReadonlyArray<HistoryAddition>
}> = [
  {
    of: "names",
    lock: (sql) => sql`INSERT INTO history_name (name) VALUES ('p2')`,
    additions: ({ deviceId }, order) => [{
      deviceId,
      samples: order.map((i) => ({ propertyId: `p${i}`, time: now, value: 1 })),
      events: []
    }]
  },
  {
    of: "devices",
    lock: (sql) => sql`INSERT INTO history_device (device_id) VALUES ('d2')`,
    additions: (_, order) =>
      order.map((i) => ({
        deviceId: DeviceId.make(`d${i}`),
        samples: [{ propertyId: "p", time: now, value: 1 }],
        events: []
      }))
  },
  {
    of: "days",
    lock: (sql) => sql`INSERT INTO history_unmerged (day) VALUES (${Math.floor(now / day) - 2})`,
    additions: ({ deviceId }, order) => [{
      deviceId,
      samples: order.map((i) => ({ propertyId: "p", time: now - (4 - i) * day, value: 1 })),
      events: []
    }]
  }
]

for (const { additions, lock, of } of histories) {
  it.live(`the history of ${of} that are new, in another order, is not stored in a circle`, () =>
    withNodes(({ devices: [one, two], onOther, sql }) =>
      Effect.gen(function*() {
        const append = (device: Device, order: ReadonlyArray<number>) =>
          HistoryStore.use((store) => store.append(additions(device, order)))
        yield* inTurn(sql, lock(sql), [append(one, [1, 2, 3]), onOther(append(two, [3, 2, 1]))])
      })
    ))
}

it.live("a reader of the feed keeps a lease that it prolongs while another node waits to claim it", () =>
  withNodes(({ onOther, sql }) =>
    Effect.gen(function*() {
      const lease = { name: "locks", leaseMillis: day }
      const claim = FeedReaderStore.use((store) => store.claim(lease))
      const held = Option.getOrThrow(yield* claim)
      const claimed = yield* sql.withTransaction(Effect.gen(function*() {
        yield* sql`SELECT FROM feed_reader WHERE name = ${lease.name} FOR UPDATE`
        const waiting = yield* Effect.forkDetach(onOther(claim))
        yield* blocked(sql, 1)
        yield* sql`UPDATE feed_reader SET leased_until = clock_timestamp() + interval '1 day' WHERE name = ${lease.name}`
        return waiting
      }))
      assert.isTrue(Option.isNone(yield* Fiber.join(claimed)))
      assert.isTrue(yield* FeedReaderStore.use((store) => store.advance({ ...held, ...lease })))
    })
  ))

it.live("a request that another node claims at the same moment is in progress, with the fingerprint of that node", () =>
  withNodes(({ devices: [{ projectId }], onOther, sql }) =>
    Effect.gen(function*() {
      const request = { projectId, key: "at-once", at: now, claimExpiredBefore: 0, answerExpiredBefore: 0 }
      const claimed = yield* sql.withTransaction(Effect.gen(function*() {
        yield* sql`INSERT INTO request (project_id, key, fingerprint, claimed_at)
          VALUES (${projectId}, ${request.key}, 'first', now())`
        const claim = IdempotencyStore.use((store) => store.claim({ ...request, fingerprint: "second" }))
        const waiting = yield* Effect.forkDetach(onOther(claim))
        yield* blocked(sql, 1)
        return waiting
      }))
      assert.deepStrictEqual(yield* Fiber.join(claimed), { _tag: "InProgress", fingerprint: "first" })
    })
  ))

it.live("a trace of a device that is removed at the same moment is not started", () =>
  withNodes(({ devices: [{ deviceId, projectId }], onOther, sql }) =>
    Effect.gen(function*() {
      const started = yield* sql.withTransaction(Effect.gen(function*() {
        yield* sql`DELETE FROM device WHERE device_id = ${deviceId}`
        const start = TraceStore.use((store) => store.start({ deviceId, projectId, max: 1, now, until: now + day }))
        const waiting = yield* Effect.forkDetach(onOther(start))
        yield* blocked(sql, 1)
        return waiting
      }))
      assert.isFalse(yield* Fiber.join(started))
    })
  ))

it.live("an audited change of a shadow whose device is removed at the same moment changes nothing", () =>
  withNodes(({ devices: [{ deviceId }], onOther, sql }) =>
    Effect.gen(function*() {
      const changed = yield* sql.withTransaction(Effect.gen(function*() {
        yield* sql`DELETE FROM device WHERE device_id = ${deviceId}`
        const audited = AuditStore.use((audit) => audit.commit(modify([next(deviceId)]), () => []))
        const waiting = yield* Effect.forkDetach(onOther(audited))
        yield* blocked(sql, 1)
        return waiting
      }))
      assert.deepStrictEqual(yield* Fiber.join(changed), [-1])
    })
  ))

/** A registered authority. */
const authority = (projectId: ProjectId, fields: Partial<NewAuthority> = {}): NewAuthority => ({
  authorityId: "a",
  projectId,
  kind: "registered",
  name: "Factory",
  state: "active",
  verificationCode: "code",
  certificate: "-----BEGIN CERTIFICATE-----",
  fingerprint: "a",
  subject: "CN=Factory",
  notBefore: now,
  notAfter: now + day,
  createdAt: now,
  ...fields
})

it.live("of two lists of an authority that come at once, the later one stays", () =>
  withNodes(({ devices: [{ projectId }], onOther, sql }) =>
    Effect.gen(function*() {
      yield* CertificateStore.use((store) =>
        store.insertAuthority(authority(projectId), { privateKey: null, limit: 10 })
      )
      const put = (issuedAt: number) =>
        CertificateStore.use((store) =>
          store.putRevocationList(projectId, "a", { issuedAt, nextAt: null, size: 0 }, [])
        )
      const outcomes = yield* inTurn(sql, sql`SELECT FROM certificate_authority WHERE authority_id = 'a' FOR UPDATE`, [
        put(now + 1),
        onOther(put(now))
      ])
      assert.deepStrictEqual(outcomes, ["stored", "older"])
    })
  ))

it.live("of two authorities of its own that a project gets at once, one is stored", () =>
  withNodes(({ devices: [{ projectId }], onOther, sql }) =>
    Effect.gen(function*() {
      const insert = (authorityId: string) =>
        CertificateStore.use((store) =>
          store.insertAuthority(authority(projectId, { authorityId, fingerprint: authorityId, kind: "own" }), {
            privateKey: "key",
            limit: 10
          })
        )
      const outcomes = yield* inTurn(sql, sql`SELECT FROM project WHERE id = ${projectId} FOR UPDATE`, [
        insert("b"),
        onOther(insert("c"))
      ])
      assert.deepStrictEqual(outcomes, ["inserted", "taken"])
    })
  ))

it.live("a device gets no more certificates than it may have when two come at once", () =>
  withNodes(({ devices: [{ deviceId, projectId }], onOther, sql }) =>
    Effect.gen(function*() {
      const store = yield* CertificateStore
      yield* store.insertAuthority(authority(projectId), { privateKey: null, limit: 10 })
      const insert = (serial: string) => {
        const certificate: NewCertificate = {
          fingerprint: serial,
          serial,
          deviceId,
          authorityId: "a",
          subject: "CN=unit",
          certificate: "-----BEGIN CERTIFICATE-----",
          notBefore: now,
          notAfter: now + day,
          endsAt: null,
          createdAt: now
        }
        return CertificateStore.use((store) => store.insert(certificate, { othersEndAt: null, limit: 1 }))
      }
      const outcomes = yield* inTurn(sql, rowOf(sql, "device", { deviceId }), [insert("1"), onOther(insert("2"))])
      assert.deepStrictEqual(outcomes, ["inserted", "full"])
    })
  ))

it.live("a bulk command is cancelled while an outcome of it is stored", () =>
  withNodes(({ devices: [{ deviceId, projectId }], onOther, sql }) =>
    Effect.gen(function*() {
      const store = yield* BulkCommandStore
      const created = yield* store.insert(
        { projectId, serviceId: null, params: {}, ttl: 60, createdAt: now },
        { _tag: "Named", deviceIds: [deviceId] }
      )
      assert.strictEqual(created._tag, "Created")
      const [turn] = yield* store.claim({ now, again: now + day, bulks: 1, perBulk: 1 })
      const { bulk: { bulkId } } = turn!
      const [cancelled] = yield* inTurn(sql, sql`SELECT FROM bulk_command WHERE bulk_id = ${bulkId} FOR UPDATE`, [
        store.cancel(bulkId, now),
        onOther(BulkCommandStore.use((store) => store.settle([{ turn: turn!, messageId: 1, reason: "" }], now)))
      ])
      assert.isTrue(cancelled)
      const cancels = yield* store.claim({ now, again: now + day, bulks: 1, perBulk: 1 })
      assert.deepStrictEqual(cancels.map((turn) => turn.cancels), [1])
    })
  ))

it.live("versions of a configuration that two nodes store at once have numbers of their own", () =>
  withNodes(({ devices: [{ deviceId }], onOther, sql }) =>
    Effect.gen(function*() {
      const insert = (configurationId: string) =>
        ConfigurationStore.use((store) =>
          store.insert({ deviceId }, {
            configurationId,
            format: "json",
            content: "{}",
            size: 2,
            sha256: "",
            url: "",
            createdAt: now
          })
        )
      const stored = yield* inTurn(sql, rowOf(sql, "device", { deviceId }), [insert("a"), onOther(insert("b"))])
      assert.deepStrictEqual(stored.map((each) => Option.getOrThrow(each).stored.version), [1, 2])
    })
  ))

it.live("of two add-sessions that a gateway gets at once, the second one replaces the first", () =>
  withNodes(({ devices: [{ deviceId, projectId }], onOther, sql }) =>
    Effect.gen(function*() {
      const open = (sessionId: string) =>
        TopologyStore.use((store) =>
          store.openSession({
            sessionId,
            projectId,
            gatewayId: deviceId,
            productKeys: [],
            startedAt: now,
            endsAt: now + day
          })
        )
      const replaced = yield* inTurn(sql, rowOf(sql, "device", { deviceId }), [open("a"), onOther(open("b"))])
      assert.deepStrictEqual(
        replaced.map(Option.map(({ sessionId }) => sessionId)),
        [Option.none(), Option.some("a")]
      )
    })
  ))

it.live("a product secret that two nodes replace at once stays the previous one of the next", () =>
  withNodes(({ devices: [{ productKey, projectId }], onOther, sql }) =>
    Effect.gen(function*() {
      const rotate = (secret: string) =>
        ProductStore.use((store) =>
          store.rotateSecret(projectId, productKey, { secret, previousUntil: now + day, at: now })
        )
      const [, last] = yield* inTurn(sql, sql`SELECT FROM product WHERE product_key = ${productKey} FOR UPDATE`, [
        rotate("first"),
        onOther(rotate("second"))
      ])
      assert.deepInclude(Option.getOrThrow(last).previousSecret, { secret: "first" })
    })
  ))
