/**
 * The laws of `OtaStore`.
 */
import {
  advanceUpgrade,
  type Device,
  type DeviceCloud,
  deviceCount,
  type DeviceFilter,
  DeviceId,
  DeviceStore,
  type Firmware,
  isOngoing,
  type NewTask,
  OtaStore,
  PresenceStore,
  ProductStore,
  type RecordStatus,
  taskStatus,
  type UpgradeTaskStatus
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option, Schema } from "effect"
import { detached } from "./Detached.ts"
import {
  all,
  changed,
  created,
  insertFirmware,
  newTask,
  prepare,
  recordOf,
  rollout,
  upgradeTask
} from "./OtaSamples.ts"
import {
  assertPages,
  epoch,
  insertDevices,
  insertProduct,
  insertProductOf,
  insertProject,
  newDevice,
  newProduct,
  unique
} from "./Samples.ts"

const Event = Schema.Union([
  Schema.TaggedStruct("HandedOut", {}),
  Schema.TaggedStruct("Progressed", { step: Schema.Literals([-1, 0, 50, 100]), description: Schema.Literal("") }),
  Schema.TaggedStruct("VersionReported", { version: Schema.Literals(["1.0.0", "2.0.0"]) }),
  Schema.TaggedStruct("Due", {}),
  Schema.TaggedStruct("Cancelled", { whole: Schema.Boolean })
])

/** Something that happens to a task, or to some of its devices. */
const Step = Schema.Struct({
  at: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 })),
  /** Which of the devices. */
  chosen: Schema.Tuple(Array.from({ length: 4 }, () => Schema.Boolean)),
  event: Schema.Union([Event, Event, Event, Event, Schema.Literals(["end", "confirm"])])
})
type StepType = typeof Step.Type

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`OtaStore: ${name}`, (it) => {
    it.effect("keeps one firmware of a version for a module, in its project", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { firmware, product } = yield* prepare(0)
        const { id: stranger } = yield* insertProject
        const { firmwareId, projectId } = firmware
        const expected = { firmware, productName: product.name, ongoing: false }
        assert.deepStrictEqual(yield* store.firmware(projectId, firmwareId), Option.some(expected))
        assert.isTrue(Option.isNone(yield* store.firmware(stranger, firmwareId)))
        const { firmwareId: _, ...draft } = firmware
        assert.strictEqual(yield* store.insertFirmware(draft), "taken")
        assert.strictEqual(
          yield* store.insertFirmware({ ...draft, projectId: stranger, version: "3.0.0" }),
          "no-product"
        )
        const signed = { signature: "AAEC", keyId: "f".repeat(64), algorithm: "ECDSA-SHA256" } as const
        const other = yield* insertFirmware(product, { module: "MCU", name: "50% faster", signed })
        yield* insertFirmware((yield* prepare(0)).product, { version: "3.0.0", name: "50% faster" })
        assert.deepStrictEqual(other.signed, signed)
        const listed = (filter: object) =>
          Effect.map(
            store.listFirmwares(projectId, filter, all),
            ({ items }) => items.map((item) => item.firmware.firmwareId)
          )
        assert.deepStrictEqual(yield* listed({}), [other.firmwareId, firmwareId])
        yield* assertPages(
          (page) => store.listFirmwares(projectId, {}, page),
          (yield* store.listFirmwares(projectId, {}, all)).items
        )
        assert.deepStrictEqual(yield* store.listFirmwares(stranger, {}, all), { items: [], total: 0 })
        assert.deepStrictEqual(yield* listed({ name: "0% f" }), [other.firmwareId])
        assert.deepStrictEqual(yield* listed({ name: "%" }), [other.firmwareId])
        const sibling = yield* insertProductOf(newProduct(projectId))
        yield* insertFirmware(sibling)
        assert.deepStrictEqual(yield* listed({ productKey: product.productKey }), [other.firmwareId, firmwareId])
        assert.strictEqual(yield* store.removeFirmware(stranger, firmwareId), "not-found")
        assert.strictEqual(yield* store.removeFirmware(projectId, firmwareId), "removed")
        assert.strictEqual(yield* store.removeFirmware(projectId, firmwareId), "not-found")
        assert.deepStrictEqual(yield* listed({ productKey: product.productKey }), [other.firmwareId])
      }))

    it.effect("keeps one signing key for a product, which goes with it", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { product: { productKey, projectId } } = yield* prepare(0)
        const { id: stranger } = yield* insertProject
        const key = {
          productKey,
          keyId: "a",
          algorithm: "RSA-SHA256",
          publicKey: "-----BEGIN PUBLIC KEY-----",
          createdAt: epoch
        } as const
        assert.isFalse(yield* store.setSigningKey(stranger, key))
        assert.isTrue(Option.isNone(yield* store.signingKey(projectId, productKey)))
        assert.isTrue(yield* store.setSigningKey(projectId, key))
        const next = { ...key, keyId: "b", algorithm: "ECDSA-SHA256", createdAt: epoch + 1 } as const
        const { productKey: siblingKey } = yield* insertProductOf(newProduct(projectId))
        const ofSibling = { ...key, productKey: siblingKey, keyId: "c" }
        assert.isTrue(yield* store.setSigningKey(projectId, ofSibling))
        assert.isTrue(yield* store.setSigningKey(projectId, next))
        assert.deepStrictEqual(yield* store.signingKey(projectId, productKey), Option.some(next))
        assert.deepStrictEqual(yield* store.signingKey(projectId, siblingKey), Option.some(ofSibling))
        assert.isTrue(Option.isNone(yield* store.signingKey(stranger, productKey)))
        assert.isFalse(yield* store.removeSigningKey(stranger, productKey))
        assert.deepStrictEqual([
          yield* store.removeSigningKey(projectId, productKey),
          yield* store.removeSigningKey(projectId, productKey)
        ], [
          true,
          false
        ])
        assert.deepStrictEqual(yield* store.signingKey(projectId, siblingKey), Option.some(ofSibling))
        yield* store.setSigningKey(projectId, key)
        yield* (yield* ProductStore).remove(projectId, productKey)
        assert.isTrue(Option.isNone(yield* store.signingKey(projectId, productKey)))
      }))

    it.effect("makes a record for each device that has not the version, due one after the other", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware } = yield* prepare(5)
        const [current, ...others] = devices
        yield* store.reportVersions([
          { deviceId: current!.deviceId, module: "default", version: "2.0.0", at: epoch },
          { deviceId: others[0]!.deviceId, module: "default", version: "1.0.0", at: epoch },
          { deviceId: others[1]!.deviceId, module: "MCU", version: "2.0.0", at: epoch }
        ])
        const { task } = created(yield* store.createTask(newTask(firmware), { _tag: "All" }, epoch + 1000))
        assert.deepStrictEqual(task.counts, { pending: 4, upgrading: 0, succeeded: 0, failed: 0, cancelled: 0 })
        assert.strictEqual(task.status, "pending")
        assert.deepStrictEqual(yield* store.task(task.projectId, task.taskId), Option.some(task))
        const due = yield* Effect.forEach(
          others,
          (device) => Effect.map(recordOf(device, task.taskId), ({ dueAt }) => dueAt)
        )
        assert.deepStrictEqual(due, rollout(task.taskId, epoch + 1000, 4))
        const page = (page: number) =>
          Effect.map(store.records(task.taskId, {}, { page, pageSize: 3 }), ({ items, total }) => [
            items.map(({ record }) => record.deviceId),
            total
          ])
        const newest = others.map(({ deviceId }) => deviceId).toReversed()
        assert.deepStrictEqual(yield* page(1), [newest.slice(0, 3), 4])
        assert.deepStrictEqual(yield* page(2), [newest.slice(3), 4])
        assert.deepStrictEqual(yield* page(3), [[], 4])
        const { items, total } = yield* store.records(task.taskId, { rejected: "unactive" }, { page: 1, pageSize: 3 })
        assert.deepStrictEqual([items, total], [[], 0])
        const { device } = Option.getOrThrow(
          yield* (yield* DeviceStore).get(firmware.projectId, { deviceId: current!.deviceId })
        )
        assert.strictEqual(device.firmwareVersion, "2.0.0")
        assert.deepStrictEqual(yield* store.versions(others[1]!.deviceId), { MCU: "2.0.0" })
        assert.strictEqual(yield* store.removeFirmware(firmware.projectId, firmware.firmwareId), "ongoing")
      }))

    it.effect("makes records of named devices that have not the version, the oldest device first", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices: [first, second, current], firmware } = yield* prepare(3)
        const gone = { deviceId: DeviceId.make("missing"), module: "default", version: "1.0.0", at: epoch }
        yield* store.reportVersions([
          gone,
          { ...gone, deviceId: current!.deviceId, version: "2.0.0" },
          { ...gone, deviceId: current!.deviceId, module: "MCU", version: "9.0.0" },
          { ...gone, deviceId: first!.deviceId, module: "MCU", version: "2.0.0" }
        ])
        assert.deepStrictEqual(yield* store.versions(current!.deviceId), { default: "2.0.0", MCU: "9.0.0" })
        const { device } = Option.getOrThrow(
          yield* (yield* DeviceStore).get(firmware.projectId, { deviceId: current!.deviceId })
        )
        assert.strictEqual(device.firmwareVersion, "2.0.0")
        const scope = { _tag: "Named", deviceIds: [current!, second!, first!].map(({ deviceId }) => deviceId) } as const
        const { task: { taskId } } = created(yield* store.createTask(newTask(firmware), scope, epoch))
        const { items } = yield* store.records(taskId, {}, all)
        assert.deepStrictEqual(items.map(({ record }) => record.deviceId), [second!.deviceId, first!.deviceId])
        assert.deepStrictEqual(items.map(({ record }) => record.dueAt), rollout(taskId, epoch, 2).toReversed())
        assert.deepStrictEqual(items.map(({ currentVersion }) => currentVersion), ["", ""])
      }))

    it.effect("takes devices of the product alone, whatever the filter selects", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware: { productKey, projectId }, firmware } = yield* prepare(2)
        const other = yield* insertProductOf(newProduct(projectId))
        yield* insertDevices(other, [newDevice()])
        const { product } = yield* prepare(0)
        const [alone] = yield* insertDevices(yield* insertProductOf(newProduct(product.projectId)), [newDevice()])
        const ofAll = yield* store.createTask(newTask(yield* insertFirmware(product, { version: "3.0.0" })), {
          _tag: "All"
        }, epoch)
        assert.deepStrictEqual(created(ofAll).deviceIds, [])
        assert.deepStrictEqual(yield* store.unfinished([alone!.deviceId]), [])
        const chosen = (filter: DeviceFilter) =>
          Effect.map(
            store.createTask(newTask(firmware), { _tag: "All", filter }, epoch),
            (outcome) => created(outcome).deviceIds
          )
        assert.deepStrictEqual(yield* chosen({ productKey: other.productKey }), [])
        const [first] = devices
        yield* (yield* DeviceStore).changeTags(first!.deviceId, { remove: [], set: { site: "a" } })
        assert.deepStrictEqual(yield* chosen({ productKey, tags: { site: "b" } }), [])
        assert.deepStrictEqual(yield* chosen({ productKey, tags: { site: "a" } }), [first!.deviceId])
        assert.strictEqual((yield* store.underWay(projectId, 10)).total, 1)
      }))

    it.effect("keeps the record of a device that is removed, and not the versions that it runs", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices: [device], firmware } = yield* prepare(1)
        const { deviceId } = device!
        const { task } = created(yield* store.createTask(newTask(firmware), { _tag: "All" }, epoch))
        yield* store.reportVersions([{ deviceId, module: "default", version: "1.0.0", at: epoch }])
        yield* (yield* DeviceStore).remove(firmware.projectId, deviceId)
        assert.deepStrictEqual(yield* store.versions(deviceId), {})
        const { items } = yield* store.records(task.taskId, {}, all)
        assert.deepStrictEqual(
          items.map(({ currentVersion, deviceStatus, record }) => [record.deviceId, deviceStatus, currentVersion]),
          [[deviceId, "offline", ""]]
        )
        assert.deepStrictEqual(yield* store.records(task.taskId, { rejected: "unactive" }, all), { items, total: 1 })
      }))

    it.effect("gives a device one unfinished record for a module, also when several want it at once", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware, product } = yield* prepare(3)
        const { product: foreign } = yield* prepare(0)
        const [stranger] = yield* insertDevices(foreign, [newDevice()])
        const deviceIds = devices.map(({ deviceId }) => deviceId)
        const named = (ids: ReadonlyArray<Device["deviceId"]>, of = firmware) =>
          store.createTask(newTask(of), { _tag: "Named", deviceIds: ids }, epoch)
        const missing = DeviceId.make("missing")
        assert.deepStrictEqual(yield* named([...deviceIds, stranger!.deviceId, missing]), {
          _tag: "Unknown",
          deviceIds: [stranger!.deviceId, missing]
        })
        const outcomes = yield* Effect.forEach(Array.from({ length: 4 }), () => named(deviceIds.slice(0, 2)), {
          concurrency: "unbounded"
        })
        assert.deepStrictEqual(outcomes.map(({ _tag }) => _tag).toSorted(), ["Busy", "Busy", "Busy", "Created"])
        const rest = created(yield* store.createTask(newTask(firmware), { _tag: "All" }, epoch))
        assert.strictEqual(rest.task.counts.pending, 1)
        const mcu = yield* insertFirmware(product, { module: "MCU" })
        const { task: { taskId } } = created(yield* named(deviceIds, mcu))
        const reported = { deviceId: deviceIds[0]!, at: epoch }
        yield* store.reportVersions([
          { ...reported, module: "default", version: "1.0.0" },
          { ...reported, module: "MCU", version: "0.9.0" }
        ])
        const { items } = yield* store.records(taskId, {}, all)
        assert.deepStrictEqual(items.map(({ currentVersion }) => currentVersion), ["", "", "0.9.0"])
        const open = yield* store.unfinished(deviceIds, "MCU")
        assert.strictEqual(open.length, 3)
        assert.strictEqual((yield* store.unfinished(deviceIds)).length, 6)
        // What has ended is in nobody's way.
        const [first] = open
        yield* store.save([changed(first!.record, "failed")])
        assert.strictEqual((yield* store.unfinished(deviceIds, "MCU")).length, 2)
        assert.strictEqual((yield* store.unfinished(deviceIds)).length, 5)
        const next = created(yield* named([first!.record.deviceId], mcu))
        assert.deepStrictEqual(next.deviceIds, [first!.record.deviceId])
      }))

    it.effect("finds what has not ended of devices that are gone, and nothing else", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware } = yield* prepare(4)
        const { task: { taskId } } = created(yield* store.createTask(newTask(firmware), { _tag: "All" }, epoch))
        const [ended, begun, waits] = devices as [Device, Device, Device]
        yield* store.save([
          changed(yield* recordOf(ended, taskId), "succeeded"),
          changed(yield* recordOf(begun, taskId), "upgrading")
        ])
        const orphans = Effect.map(store.orphaned(10_000), (all) => all.filter(({ task }) => task.taskId === taskId))
        assert.deepStrictEqual(yield* orphans, [])
        for (const { deviceId } of [ended, begun, waits]) {
          assert.isTrue(Option.isSome(yield* (yield* DeviceStore).remove(firmware.projectId, deviceId)))
        }
        const found = yield* orphans
        assert.sameMembers(found.map(({ record }) => record.deviceId), [begun.deviceId, waits.deviceId])
        assert.deepStrictEqual(found.map(({ firmware }) => firmware), [firmware, firmware])
        assert.strictEqual((yield* store.orphaned(1)).length, 1)
        const { saved } = yield* store.save(found.map(({ record }) => changed(record, "cancelled")))
        assert.deepStrictEqual(saved, [true, true])
        assert.deepStrictEqual(yield* orphans, [])
        yield* store.endTask(taskId, "cancelled", ["pending"], epoch)
      }))

    it.effect("finds the record of a device in its newest task for a module, also when both have ended", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices: [device], firmware, product } = yield* prepare(1)
        const { deviceId } = device!
        const newestOf = (module: string) =>
          Effect.map(store.newest(deviceId, module), Option.map(({ record }) => record.taskId))
        const endedTask = Effect.fnUntraced(function*(of: Firmware) {
          const { task: { taskId } } = created(yield* store.createTask(newTask(of), { _tag: "All" }, epoch))
          yield* store.endTask(taskId, "cancelled", ["pending"], epoch)
          return taskId
        })
        assert.deepStrictEqual(yield* newestOf("default"), Option.none())
        yield* endedTask(firmware)
        const newest = yield* endedTask(firmware)
        const mcu = yield* endedTask(yield* insertFirmware(product, { module: "MCU" }))
        assert.deepStrictEqual(yield* newestOf("default"), Option.some(newest))
        assert.deepStrictEqual(yield* newestOf("MCU"), Option.some(mcu))
        assert.deepStrictEqual(yield* newestOf("other"), Option.none())
        assert.strictEqual(Option.getOrThrow(yield* store.record(deviceId)).record.taskId, mcu)
        // Those of other tasks stay when a task goes.
        assert.isTrue(yield* store.removeTask(mcu))
        assert.strictEqual(Option.getOrThrow(yield* store.record(deviceId)).record.taskId, newest)
        assert.deepStrictEqual(yield* newestOf("MCU"), Option.none())
      }))

    it.effect("stores changes of records that are as they were, and counts them", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware } = yield* prepare(3)
        const { task } = created(yield* store.createTask(newTask(firmware), { _tag: "All" }, epoch))
        const { taskId } = task
        const [before, second, third] = yield* Effect.forEach(devices, (device) => recordOf(device, taskId))
        // A change within a status is no change of the task.
        const waiting = changed(before!, "pending", epoch + 60_000)
        assert.deepStrictEqual(yield* store.save([waiting]), { saved: [true], tasks: [] })
        // By somebody who has read it before.
        assert.deepStrictEqual(yield* store.save([waiting]), { saved: [false], tasks: [] })
        assert.deepStrictEqual(Option.getOrThrow(yield* store.task(task.projectId, taskId)), task)
        const first = waiting.after
        const begun = changed(first, "upgrading", epoch + 60_000)
        const { saved, tasks } = yield* store.save([begun, changed(second!, "succeeded"), {
          ...begun,
          before: { ...first, revision: 7 }
        }])
        assert.deepStrictEqual(saved, [true, true, false])
        assert.deepStrictEqual(tasks.map(({ counts, status }) => [counts, status]), [
          [{ pending: 1, upgrading: 1, succeeded: 1, failed: 0, cancelled: 0 }, "in-progress"]
        ])
        assert.deepStrictEqual(yield* recordOf(devices[0]!, taskId), begun.after)
        // Of two that change it at the same moment, one does.
        const twice = yield* Effect.forEach(
          [changed(begun.after, "succeeded"), changed(begun.after, "failed")],
          (change) => store.save([change]),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(twice.map(({ saved: [one] }) => one).toSorted(), [false, true])
        yield* store.save([changed(third!, "cancelled")])
        const ended = Option.getOrThrow(yield* store.task(task.projectId, taskId))
        assert.strictEqual(ended.status, "completed")
        const { counts } = ended
        assert.strictEqual(counts.succeeded + counts.failed + counts.cancelled, 3)
        assert.strictEqual(counts.pending + counts.upgrading, 0)
      }))

    it.effect("shows the upgrade tasks of a project that have not ended, newest first", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const product = yield* insertProduct
        const devices = yield* insertDevices(product, [newDevice(), newDevice(), newDevice()])
        const firmware = yield* insertFirmware(product)
        const verify = created(
          yield* store.createTask(newTask(firmware, { kind: "verify" }), { _tag: "Named", deviceIds: [] }, epoch)
        )
        const tasks = yield* Effect.forEach(devices, ({ deviceId }) =>
          Effect.map(
            store.createTask(newTask(firmware), { _tag: "Named", deviceIds: [deviceId] }, epoch),
            (outcome) => created(outcome).task
          ))
        yield* store.endTask(tasks[0]!.taskId, "cancelled", ["pending"], epoch + 1)
        assert.deepStrictEqual(yield* store.underWay(product.projectId, 1), {
          items: [upgradeTask(tasks[2]!)],
          total: 2
        })
        assert.deepStrictEqual(yield* store.verifyTask(firmware.firmwareId), Option.some(verify.task))
        const ended = yield* store.task(product.projectId, tasks[0]!.taskId)
        assert.deepInclude(Option.getOrThrow(ended), { status: "cancelled", updatedAt: epoch + 1 })
        assert.deepStrictEqual(yield* store.underWay((yield* insertProduct).projectId, 1), { items: [], total: 0 })
      }))

    it.effect("a task takes devices that another module is upgraded on", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware, product } = yield* prepare(2)
        const mcu = yield* insertFirmware(product, { module: "MCU" })
        for (const each of [firmware, mcu]) {
          const { deviceIds } = created(yield* store.createTask(newTask(each), { _tag: "All" }, epoch))
          assert.deepStrictEqual(deviceIds, devices.map(({ deviceId }) => deviceId))
        }
      }))

    it.effect("lists the upgrade tasks of a firmware, newest first", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware, product } = yield* prepare(3)
        const { firmwareId, projectId } = firmware
        const [first, second, verified] = devices.map(({ deviceId }) =>
          ({ _tag: "Named", deviceIds: [deviceId] }) as const
        )
        const create = (of: Firmware, scope: typeof first, fields: Partial<NewTask> = {}) =>
          Effect.map(store.createTask(newTask(of, fields), scope!, epoch), (outcome) => created(outcome).task)
        const { taskId: older } = yield* create(firmware, first)
        const newer = upgradeTask(yield* create(firmware, second))
        yield* create(firmware, verified, { kind: "verify" })
        yield* create(yield* insertFirmware(product, { module: "MCU" }), first)
        yield* store.endTask(older, "cancelled", ["pending"], epoch)
        const listed = (filter: { readonly status?: UpgradeTaskStatus; readonly taskId?: number }, page = all) =>
          Effect.map(
            store.listTasks(projectId, { firmwareId, ...filter }, page),
            ({ items, total }) => [items.map(({ taskId }) => taskId), total]
          )
        assert.deepStrictEqual(yield* listed({}), [[newer.taskId, older], 2])
        assert.deepStrictEqual(yield* listed({}, { page: 2, pageSize: 1 }), [[older], 2])
        assert.deepStrictEqual(yield* listed({ status: "cancelled" }), [[older], 1])
        assert.deepStrictEqual(yield* listed({ taskId: older, status: "pending" }), [[], 0])
        assert.deepStrictEqual(yield* store.listTasks(projectId, { firmwareId, taskId: newer.taskId }, all), {
          items: [newer],
          total: 1
        })
        const { id: stranger } = yield* insertProject
        assert.deepStrictEqual(yield* store.listTasks(stranger, { firmwareId }, all), { items: [], total: 0 })
      }))

    it.effect("gives what is due to one caller, and again later", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware, product } = yield* prepare(6)
        const { task } = created(
          // Earlier than everything else in this suite.
          yield* store.createTask(newTask(firmware, { maximumPerMinute: 60_000 }), { _tag: "All" }, 1000)
        )
        yield* (yield* PresenceStore).record([{
          _tag: "Online",
          deviceId: devices[0]!.deviceId,
          connectionId: "c",
          nodeId: unique("node"),
          ip: "",
          at: epoch
        }])
        const waiting = yield* insertFirmware(product, { module: "MCU" })
        const pulled = created(
          yield* store.createTask(newTask(waiting, { upgradePolicy: "pull" }), { _tag: "All" }, 1000)
        )
        const claim = (now: number, again = 90_000) => store.claimDue({ now, again, limit: 4 })
        assert.deepStrictEqual(yield* claim(999), [])
        const claims = yield* Effect.forEach([0, 1, 2], () => claim(50_000), { concurrency: "unbounded" })
        const claimed = claims.flat()
        assert.strictEqual(claimed.length, 6)
        assert.strictEqual(new Set(claimed.map(({ record }) => record.deviceId)).size, 6)
        for (const { isConnected, record, task: of } of claimed) {
          assert.strictEqual(of.taskId, task.taskId)
          assert.isAtMost(record.dueAt!, 50_000)
          assert.strictEqual(isConnected, record.deviceId === devices[0]!.deviceId)
        }
        assert.deepStrictEqual(yield* claim(89_999), [])
        assert.strictEqual((yield* claim(90_000, 100_000)).length, 4)
        const { record } = claimed[0]!
        assert.deepStrictEqual((yield* store.save([changed(record, "failed")])).saved, [true])
        yield* store.endTask(task.taskId, "cancelled", ["pending", "upgrading"], epoch)
        assert.deepStrictEqual(yield* claim(200_000), [])
        yield* store.endTask(pulled.task.taskId, "cancelled", ["pending", "upgrading"], epoch)
      }))

    it.effect("gives what has been due for the longest first", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware } = yield* prepare(3)
        const { task: { taskId } } = created(yield* store.createTask(newTask(firmware), { _tag: "All" }, 1000))
        const [first, second, third] = yield* Effect.forEach(devices, (device) => recordOf(device, taskId))
        // Earlier than everything else in this suite.
        yield* store.save([
          changed(first!, "pending", 3000),
          changed(second!, "pending", 1000),
          changed(third!, "pending", 2000)
        ])
        const claim = Effect.map(
          store.claimDue({ now: 3000, again: 90_000, limit: 2 }),
          (claimed) => claimed.map(({ record }) => record.dueAt).toSorted((a, b) => a! - b!)
        )
        assert.deepStrictEqual([yield* claim, yield* claim, yield* claim], [[1000, 2000], [3000], []])
        yield* store.endTask(taskId, "cancelled", ["pending"], epoch)
      }))

    it.effect("tasks that are made at the same moment share the devices, and show all of theirs", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware, product } = yield* prepare(40)
        const other = yield* insertFirmware(product, { version: "3.0.0" })
        const tasks = yield* Effect.forEach(
          [firmware, other, firmware, other],
          (each) =>
            Effect.map(store.createTask(newTask(each), { _tag: "All" }, epoch), (outcome) => created(outcome).task),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(tasks.reduce((sum, { counts }) => sum + counts.pending, 0), devices.length)
        for (const { counts, taskId } of tasks) {
          const { items, total } = yield* store.records(taskId, {}, all)
          assert.deepStrictEqual([items.length, total], [counts.pending, counts.pending])
        }
      }))

    it.effect("a firmware goes with its ended tasks and never from under one that has not ended", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware } = yield* prepare(2)
        const { firmwareId, projectId } = firmware
        const [outcome, removed] = yield* Effect.all([
          store.createTask(newTask(firmware), { _tag: "All" }, epoch),
          store.removeFirmware(projectId, firmwareId)
        ], { concurrency: "unbounded" })
        if (outcome._tag === "Created") {
          assert.strictEqual(removed, "ongoing")
          yield* store.endTask(outcome.task.taskId, "cancelled", ["pending", "upgrading"], epoch)
          assert.strictEqual(yield* store.removeFirmware(projectId, firmwareId), "removed")
        } else assert.deepStrictEqual([outcome._tag, removed], ["NoFirmware", "removed"])
        const ids = devices.map(({ deviceId }) => deviceId)
        const gone = yield* store.createTask(newTask(firmware), { _tag: "Named", deviceIds: ids }, epoch)
        assert.strictEqual(gone._tag, "NoFirmware")
        assert.deepStrictEqual(yield* store.unfinished(ids), [])
      }))

    it.effect("a task that has ended goes with its records; one that has not, or whose devices finish, stays", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware } = yield* prepare(2)
        const { firmwareId, ossPath, projectId } = firmware
        const { task: { taskId } } = created(yield* store.createTask(newTask(firmware), { _tag: "All" }, epoch))
        const upgrading = Effect.map(store.upgradingFrom(projectId, ossPath.slice(8)), Option.isSome)
        assert.isTrue(yield* upgrading)
        assert.isTrue(Option.isSome(yield* store.upgradingFrom(projectId, ossPath.slice(8, -4))))
        assert.isTrue(Option.isNone(yield* store.upgradingFrom((yield* insertProject).id, ossPath)))
        assert.isTrue(Option.isNone(yield* store.upgradingFrom(projectId, `${ossPath}%`)))
        assert.isFalse(yield* store.removeTask(taskId))
        const before = yield* recordOf(devices[0]!, taskId)
        yield* store.save([changed(before, "upgrading")])
        yield* store.endTask(taskId, "cancelled", ["pending"], epoch)
        // It does not wait for another attempt of a task that has ended.
        const failed = changed(yield* recordOf(devices[0]!, taskId), "pending")
        assert.deepStrictEqual(yield* store.save([failed]), { saved: [false], tasks: [] })
        assert.isTrue(yield* upgrading)
        assert.isFalse(yield* store.removeTask(taskId))
        assert.strictEqual(yield* store.removeFirmware(projectId, firmwareId), "ongoing")
        yield* store.save([changed(yield* recordOf(devices[0]!, taskId), "succeeded")])
        assert.isFalse(yield* upgrading)
        const removed = yield* Effect.all([store.removeTask(taskId), store.removeTask(taskId)], {
          concurrency: "unbounded"
        })
        assert.deepStrictEqual(removed.toSorted(), [false, true])
        assert.isTrue(Option.isNone(yield* store.task(projectId, taskId)))
        assert.isTrue(Option.isNone(yield* store.record(devices[0]!.deviceId)))
        assert.isTrue(Option.isSome(yield* store.firmware(projectId, firmwareId)))
        assert.deepStrictEqual((yield* store.save([changed(before, "upgrading")])).saved, [false])
      }))

    it.effect("removes upgrade tasks that ended long ago, a part at a time, and no other", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        // This time is earlier than the tasks of other tests.
        const old = epoch - 2_000_000
        const make = Effect.fnUntraced(function*(fields: Partial<NewTask> = {}) {
          const { devices, firmware } = yield* prepare(3)
          const { projectId } = firmware
          const draft = newTask(firmware, { createdAt: old, updatedAt: old, ...fields })
          const { task: { taskId } } = created(yield* store.createTask(draft, { _tag: "All" }, old))
          return { device: devices[0]!, isStored: Effect.map(store.task(projectId, taskId), Option.isSome), taskId }
        })
        const [ended, alsoEnded, lastEnded, open, later, finishing, verified] = [
          yield* make(),
          yield* make(),
          yield* make(),
          yield* make(),
          yield* make(),
          yield* make(),
          yield* make({ kind: "verify" })
        ]
        const { after, before } = changed(yield* recordOf(finishing.device, finishing.taskId), "upgrading")
        yield* store.save([{ before, after: { ...after, updatedAt: old } }])
        for (const { taskId } of [ended, alsoEnded, lastEnded, finishing]) {
          yield* store.endTask(taskId, "cancelled", ["pending"], old + 1)
        }
        yield* store.endTask(verified.taskId, "passed", ["pending"], old + 1)
        yield* store.endTask(later.taskId, "cancelled", ["pending"], old + 2)
        const prune = (before: number) => store.pruneTasks({ before, limit: 2 })
        assert.strictEqual(yield* prune(old + 1), 0)
        assert.deepStrictEqual([yield* prune(old + 2), yield* prune(old + 2), yield* prune(old + 2)], [2, 1, 0])
        assert.isTrue(Option.isNone(yield* store.record(ended.device.deviceId)))
        assert.deepStrictEqual(
          yield* Effect.all(
            [ended, alsoEnded, lastEnded, open, later, finishing, verified].map(({ isStored }) => isStored)
          ),
          [false, false, false, true, true, true, true]
        )
      }))

    it.effect("a product takes its firmware and their tasks with it", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { firmware } = yield* prepare(0)
        const { firmware: other } = yield* prepare(0)
        const { firmwareId, productKey, projectId } = firmware
        const { task } = created(yield* store.createTask(newTask(firmware), { _tag: "All" }, epoch))
        assert.strictEqual(yield* (yield* ProductStore).remove(projectId, productKey), "removed")
        assert.isTrue(Option.isNone(yield* store.firmware(projectId, firmwareId)))
        assert.isTrue(Option.isNone(yield* store.task(projectId, task.taskId)))
        assert.deepStrictEqual(yield* store.listFirmwares(projectId, { productKey }, all), { items: [], total: 0 })
        assert.isTrue(Option.isSome(yield* store.firmware(other.projectId, other.firmwareId)))
      }))

    it.effect("keeps what a task says", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { firmware } = yield* prepare(1)
        const draft = newTask(firmware, {
          isDynamic: true,
          timeout: 61,
          needAppConfirm: true,
          isAppConfirmed: true,
          downloadProtocol: "mqtt",
          maximumPerMinute: 59,
          retryCount: 2,
          retryInterval: 601,
          abortThresholdPercent: 30,
          abortMinExecuted: 4,
          stages: [10, 50],
          stageSuccessPercent: 90,
          createdAt: epoch + 1,
          updatedAt: epoch + 1
        })
        const { task } = created(yield* store.createTask(draft, { _tag: "All" }, epoch))
        assert.deepInclude(task, draft)
        assert.deepStrictEqual(yield* store.task(firmware.projectId, task.taskId), Option.some(task))
      }))

    it.effect("of verify tasks that want a device at once, all but one hear that it is busy", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware } = yield* prepare(2)
        const scope = { _tag: "Named", deviceIds: devices.map(({ deviceId }) => deviceId) } as const
        const outcomes = yield* Effect.forEach(
          Array.from({ length: 4 }),
          () => store.createTask(newTask(firmware, { kind: "verify" }), scope, epoch),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(outcomes.map(({ _tag }) => _tag).toSorted(), ["Busy", "Busy", "Busy", "Created"])
      }))

    it.effect("the firmware of a verify task is where the task is, whatever happens at once", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { firmware, product } = yield* prepare(1)
        const { firmwareId, projectId } = firmware
        const other = yield* insertFirmware(product, { module: "MCU" })
        const detail = Effect.map(store.firmware(projectId, firmwareId), Option.getOrThrow)
        const draft = newTask(firmware, { kind: "verify", createdAt: epoch + 1, updatedAt: epoch + 1 })
        const { task: { taskId } } = created(yield* store.createTask(draft, { _tag: "All" }, epoch + 1))
        const verifying = { ...firmware, status: "verifying", updatedAt: epoch + 1 } as const
        assert.deepInclude(yield* detail, { firmware: verifying, ongoing: true })
        const again = yield* store.createTask(newTask(firmware, { kind: "verify" }), { _tag: "All" }, epoch)
        assert.strictEqual(again._tag, "NotVerifiable")
        assert.strictEqual(yield* store.removeFirmware(projectId, firmwareId), "ongoing")
        const ends = yield* Effect.forEach(
          ["passed", "failed", "cancelled"] as const,
          (to) => store.endTask(taskId, to, ["pending", "upgrading"], epoch + 2),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(ends.filter(Boolean).length, 1)
        const ended = Option.getOrThrow(yield* store.task(projectId, taskId))
        const { firmware: { status, updatedAt }, ongoing } = yield* detail
        assert.deepStrictEqual([status, updatedAt, ongoing], [ended.status, epoch + 2, false])
        assert.strictEqual(ended.updatedAt, epoch + 2)
        const untouched = Option.getOrThrow(yield* store.firmware(projectId, other.firmwareId))
        assert.deepStrictEqual(untouched.firmware, other)
        assert.isTrue(Option.isSome(yield* store.verifyTask(firmwareId)))
        assert.isTrue(Option.isNone(yield* store.verifyTask(other.firmwareId)))
      }))

    it.effect.prop(
      "a task is at any time what its records imply",
      {
        steps: Schema.Tuple(Array.from({ length: 24 }, () => Step)),
        needAppConfirm: Schema.Boolean
      },
      ({ needAppConfirm, steps }) =>
        Effect.gen(function*() {
          const store = yield* OtaStore
          const { devices, firmware } = yield* prepare(4)
          const draft = newTask(firmware, { needAppConfirm, retryCount: 1 })
          let task = upgradeTask(created(yield* store.createTask(draft, { _tag: "All" }, epoch)).task)
          const { projectId, taskId } = task
          /** As somebody read them, maybe long ago. */
          const seen = yield* Effect.forEach(devices, (device) => recordOf(device, taskId))
          for (const { at, chosen, event } of steps as ReadonlyArray<StepType>) {
            if (event === "end") yield* store.endTask(taskId, "cancelled", ["pending"], epoch + at)
            else if (event === "confirm") yield* store.confirmTask(taskId, epoch + at)
            else {
              const changes = chosen.flatMap((isChosen, place) => isChosen ? [place] : []).map((place) => ({
                place,
                before: seen[place]!,
                // By somebody who has not heard yet that the task has ended.
                after: advanceUpgrade(seen[place]!, { ...task, status: "pending" }, { ...event, at: epoch + at })
              })).filter(({ after, before }) => after !== before)
              const { saved } = yield* store.save(changes)
              for (let i = 0; i < changes.length; i++) {
                const { after, place } = changes[i]!
                seen[place] = saved[i] === true ? after : yield* recordOf(devices[place]!, taskId)
                assert.deepStrictEqual(yield* recordOf(devices[place]!, taskId), seen[place])
              }
            }
            const before = task.status
            task = upgradeTask(Option.getOrThrow(yield* store.task(projectId, taskId)))
            const { items } = yield* store.records(taskId, {}, all)
            const count = (status: RecordStatus) => items.filter(({ record }) => record.status === status).length
            assert.deepStrictEqual(task.counts, {
              pending: count("pending"),
              upgrading: count("upgrading"),
              succeeded: count("succeeded"),
              failed: count("failed"),
              cancelled: count("cancelled")
            })
            assert.strictEqual(
              task.status,
              event === "end" && isOngoing({ status: before })
                ? "cancelled"
                : taskStatus({ status: before, isDynamic: false }, task.counts)
            )
            if (!isOngoing(task)) assert.strictEqual(task.counts.pending, 0)
          }
        }),
      { arbitrary: { runs: 10 } }
    )

    it.effect("a task that ends while its devices move on loses no record and blocks nobody", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware } = yield* prepare(30)
        const { task: { projectId, taskId } } = created(
          yield* store.createTask(newTask(firmware), { _tag: "All" }, epoch)
        )
        const records = yield* Effect.forEach(devices, (device) => recordOf(device, taskId))
        const half = records.slice(0, 15)
        yield* Effect.all([
          ...half.map((record, i) => store.save([changed(record, i % 2 === 0 ? "upgrading" : "failed")])),
          store.save(records.slice(15).toReversed().map((record) => changed(record, "pending"))),
          store.endTask(taskId, "cancelled", ["pending", "upgrading"], epoch + 1),
          store.save(records.toReversed().map((record) => changed(record, "succeeded")))
        ], { concurrency: "unbounded" })
        const { items } = yield* store.records(taskId, {}, all)
        const count = (status: RecordStatus) => items.filter(({ record }) => record.status === status).length
        const { counts, status } = Option.getOrThrow(yield* store.task(projectId, taskId))
        assert.deepStrictEqual(counts, {
          pending: count("pending"),
          upgrading: count("upgrading"),
          succeeded: count("succeeded"),
          failed: count("failed"),
          cancelled: count("cancelled")
        })
        assert.strictEqual(deviceCount(counts), devices.length)
        assert.oneOf(status, ["completed", "failed", "cancelled"])
      }))

    it.effect("a task cancels its records as the state machine does it", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware } = yield* prepare(4)
        const { task } = created(yield* store.createTask(newTask(firmware), { _tag: "All" }, epoch))
        const { projectId, taskId } = task
        const [first, second, third] = yield* Effect.forEach(devices, (device) => recordOf(device, taskId))
        yield* store.save([
          changed(first!, "upgrading", epoch + 60_000),
          changed(second!, "failed"),
          changed(third!, "succeeded")
        ])
        const before = yield* Effect.forEach(devices, (device) => recordOf(device, taskId))
        // What a verification ends with is no end of an upgrade.
        assert.isFalse(yield* store.endTask(taskId, "passed", ["pending"], epoch + 20))
        assert.isTrue(yield* store.endTask(taskId, "cancelled", ["pending"], epoch + 20))
        assert.deepStrictEqual(
          yield* Effect.forEach(devices, (device) => recordOf(device, taskId)),
          before.map((record) => advanceUpgrade(record, task, { _tag: "Cancelled", at: epoch + 20, whole: true }))
        )
        assert.deepInclude(Option.getOrThrow(yield* store.task(projectId, taskId)), {
          status: "cancelled",
          updatedAt: epoch + 20,
          counts: { pending: 0, upgrading: 1, succeeded: 1, failed: 1, cancelled: 1 }
        })
      }))

    it.effect("a verification ends its records as the state machine does it", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware } = yield* prepare(2)
        const create = Effect.map(
          store.createTask(newTask(firmware, { kind: "verify" }), { _tag: "All" }, epoch),
          created
        )
        const { task: earlier } = yield* create
        yield* store.endTask(earlier.taskId, "failed", ["pending"], epoch + 10)
        const { task } = yield* create
        const { projectId, taskId } = task
        yield* store.save([changed(yield* recordOf(devices[0]!, taskId), "upgrading", epoch + 60_000)])
        const before = yield* Effect.forEach(devices, (device) => recordOf(device, taskId))
        assert.isTrue(yield* store.endTask(taskId, "passed", ["pending", "upgrading"], epoch + 20))
        assert.deepStrictEqual(
          yield* Effect.forEach(devices, (device) => recordOf(device, taskId)),
          before.map((record) => advanceUpgrade(record, task, { _tag: "Cancelled", at: epoch + 20, whole: false }))
        )
        const verified = yield* store.verifyTask(firmware.firmwareId)
        assert.deepInclude(Option.getOrThrow(verified), { status: "passed" })
        assert.deepStrictEqual(yield* store.task(projectId, taskId), verified)
      }))

    it.effect("tells nobody who is not to be told of a task that is confirmed", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        for (const fields of [{ upgradePolicy: "pull" }, { stages: [50] }] as const) {
          const { devices, firmware } = yield* prepare(2)
          const draft = newTask(firmware, { needAppConfirm: true, ...fields })
          const { task: { taskId } } = created(yield* store.createTask(draft, { _tag: "All" }, epoch))
          assert.isTrue(yield* store.confirmTask(taskId, epoch + 10))
          assert.deepStrictEqual(
            yield* Effect.forEach(devices, (device) => Effect.map(recordOf(device, taskId), ({ dueAt }) => dueAt)),
            "stages" in fields ? [...rollout(taskId, epoch + 10, 1), null] : [null, null]
          )
        }
      }))

    it.effect("ends and confirms a task once", () =>
      Effect.gen(function*() {
        const store = yield* OtaStore
        const { devices, firmware } = yield* prepare(4)
        const draft = newTask(firmware, { needAppConfirm: true })
        const { task: { projectId, taskId } } = created(yield* store.createTask(draft, { _tag: "All" }, epoch))
        const unconfirmed = yield* recordOf(devices[0]!, taskId)
        assert.isNull(unconfirmed.dueAt)
        // It was confirmed by itself, has failed, and tries again later.
        const waiting = changed(yield* recordOf(devices[3]!, taskId), "pending", epoch + 600_000)
        yield* store.save([{ ...waiting, after: { ...waiting.after, isConfirmed: true } }])
        assert.isTrue(yield* store.confirmTask(taskId, epoch + 10))
        assert.isFalse(yield* store.confirmTask(taskId, epoch + 20))
        const due = yield* Effect.forEach(
          devices,
          (device) => Effect.map(recordOf(device, taskId), ({ dueAt }) => dueAt)
        )
        assert.deepStrictEqual(due, [...rollout(taskId, epoch + 10, 3), epoch + 600_000])
        // What was read before is no longer as it was.
        assert.deepStrictEqual((yield* store.save([changed(unconfirmed, "upgrading")])).saved, [false])
        yield* store.save([changed(yield* recordOf(devices[0]!, taskId), "upgrading")])
        assert.isTrue(yield* store.endTask(taskId, "cancelled", ["pending"], epoch + 30))
        assert.isFalse(yield* store.endTask(taskId, "cancelled", ["pending"], epoch + 40))
        const { counts, status } = Option.getOrThrow(yield* store.task(projectId, taskId))
        assert.deepStrictEqual([status, counts], [
          "cancelled",
          { pending: 0, upgrading: 1, succeeded: 0, failed: 0, cancelled: 3 }
        ])
        // One that had begun finishes by itself; the task stays cancelled.
        yield* store.save([changed(yield* recordOf(devices[0]!, taskId), "succeeded")])
        assert.deepInclude(Option.getOrThrow(yield* store.task(projectId, taskId)), {
          status: "cancelled",
          counts: { pending: 0, upgrading: 0, succeeded: 1, failed: 0, cancelled: 3 }
        })
      }))
  })
