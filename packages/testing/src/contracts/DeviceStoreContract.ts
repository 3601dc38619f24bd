/**
 * The laws of `DeviceStore`.
 */
import {
  type Device,
  type DeviceCloud,
  type DeviceDetail,
  type DeviceFilter,
  DeviceId,
  deviceIdentity,
  DeviceName,
  DeviceStore,
  maxTags,
  PresenceStore,
  ProductKey,
  ShadowStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import {
  epoch,
  insertDevice,
  insertDevices,
  insertProduct,
  insertProductOf,
  insertProject,
  newDevice,
  newProduct,
  unique
} from "./Samples.ts"
import { randomInt } from "node:crypto"

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`DeviceStore: ${name}`, (it) => {
    it.effect("keeps what was inserted, in order, with neutral values", () =>
      Effect.gen(function*() {
        const store = yield* DeviceStore
        const product = yield* insertProduct
        const { productKey, projectId } = product
        const cloudGateway = { clientId: "c", username: "u", password: "", deviceUuid: "" }
        const drafts = [newDevice(), newDevice({ batchId: 7, cloudGateway, nickname: "" }), newDevice()]
        const inserted = yield* insertDevices(product, drafts)
        inserted.forEach((device, i) => {
          const neutral = {
            status: "unactive",
            statusVersion: 0,
            statusChangedAt: null,
            enabled: true,
            bound: false,
            ip: "",
            firmwareVersion: "",
            timeZone: "",
            mac: null,
            diagnosisEnabled: false,
            tags: {},
            activatedAt: null,
            previousSecret: null
          } as const
          const expected: Device = { ...drafts[i]!, ...neutral, id: device.id, projectId, productKey, updatedAt: epoch }
          assert.deepStrictEqual(device, expected)
          assert.isTrue(device.id > (inserted[i - 1]?.id ?? 0))
        })
        for (const device of inserted) {
          const expected = Option.some({ device, product })
          const { deviceId, deviceName } = device
          assert.deepStrictEqual(yield* store.get(projectId, { deviceId }), expected)
          assert.deepStrictEqual(yield* store.get(projectId, { productKey, deviceName }), expected)
          const { deviceSecret } = device
          const credentials = {
            identity: deviceIdentity({ device, product }),
            deviceSecret,
            previousSecret: null,
            enabled: true,
            nodeType: product.nodeType,
            authType: product.authType,
            uplinkSignature: product.uplinkSignature
          }
          assert.deepStrictEqual(yield* store.credentials(productKey, deviceName), Option.some(credentials))
        }
      }))

    it.effect("keeps the two latest secrets of a device", () =>
      Effect.gen(function*() {
        const store = yield* DeviceStore
        const { device, product } = yield* insertDevice
        const { deviceId, deviceName, productKey, projectId } = device
        const [sibling] = yield* insertDevices(product, [newDevice()])
        const rotate = (secret: string, previousUntil: number | null, at: number) =>
          store.rotateSecret(projectId, deviceId, { secret, previousUntil, at })
        const first = { secret: device.deviceSecret, until: epoch + 10 }
        assert.deepStrictEqual(
          yield* rotate("a".repeat(32), epoch + 10, epoch + 1),
          Option.some({
            device: { ...device, deviceSecret: "a".repeat(32), previousSecret: first, updatedAt: epoch + 1 },
            product
          })
        )
        const rotated = yield* rotate("b".repeat(32), epoch + 20, epoch + 2)
        const second = { deviceSecret: "b".repeat(32), previousSecret: { secret: "a".repeat(32), until: epoch + 20 } }
        assert.deepStrictEqual(
          rotated,
          Option.some({ device: { ...device, ...second, updatedAt: epoch + 2 }, product })
        )
        assert.deepStrictEqual(yield* store.get(projectId, { deviceId }), rotated)
        assert.deepStrictEqual(yield* store.get(projectId, { productKey, deviceName }), rotated)
        const { items } = yield* store.list(projectId, {}, { page: 1, pageSize: 10 })
        assert.deepStrictEqual(items, [{ device: sibling!, product }, Option.getOrThrow(rotated)])
        assert.deepStrictEqual(
          yield* store.credentials(productKey, deviceName),
          Option.some({
            identity: deviceIdentity({ device, product }),
            ...second,
            enabled: true,
            nodeType: product.nodeType,
            authType: product.authType,
            uplinkSignature: product.uplinkSignature
          })
        )
        const last = Option.getOrThrow(yield* rotate("c".repeat(32), null, epoch + 3))
        assert.deepInclude(last.device, { deviceSecret: "c".repeat(32), previousSecret: null })
        const { id: stranger } = yield* insertProject
        const theft = { secret: "d".repeat(32), previousUntil: null, at: epoch }
        assert.isTrue(Option.isNone(yield* store.rotateSecret(stranger, deviceId, theft)))
        assert.isTrue(Option.isNone(yield* store.rotateSecret(projectId, DeviceId.make("missing"), theft)))
        assert.deepStrictEqual(yield* store.get(projectId, { deviceId }), Option.some(last))
      }))

    it.effect("rotations at once take turns: each secret but the last becomes the previous one", () =>
      Effect.gen(function*() {
        const store = yield* DeviceStore
        const { device: { deviceId, deviceSecret, projectId } } = yield* insertDevice
        const secrets = Array.from({ length: 10 }, (_, i) => `${i}`.repeat(32))
        const rotated = yield* Effect.forEach(
          secrets,
          (secret) => store.rotateSecret(projectId, deviceId, { secret, previousUntil: epoch + 10, at: epoch + 1 }),
          { concurrency: "unbounded" }
        )
        const previous = rotated.map((detail) => Option.getOrThrow(detail).device.previousSecret!.secret)
        const { device } = Option.getOrThrow(yield* store.get(projectId, { deviceId }))
        assert.sameMembers([...previous, device.deviceSecret], [deviceSecret, ...secrets])
      }))

    it.effect("inserts nothing for a product that is missing or of another project", () =>
      Effect.gen(function*() {
        const store = yield* DeviceStore
        const { productKey, projectId } = yield* insertProduct
        const { id: stranger } = yield* insertProject
        assert.isTrue(Option.isNone(yield* store.insertMany(projectId, ProductKey.make("missing"), [newDevice()])))
        const draft = newDevice()
        assert.isTrue(Option.isNone(yield* store.insertMany(stranger, productKey, [draft])))
        assert.isTrue(Option.isNone(yield* store.credentials(productKey, draft.deviceName)))
      }))

    it.effect("shows a device to its own project only", () =>
      Effect.gen(function*() {
        const store = yield* DeviceStore
        const { device: { deviceId, deviceName, productKey, projectId } } = yield* insertDevice
        const { id: stranger } = yield* insertProject
        assert.isTrue(Option.isNone(yield* store.get(stranger, { deviceId })))
        assert.isTrue(Option.isNone(yield* store.get(stranger, { productKey, deviceName })))
        assert.isTrue(Option.isNone(yield* store.update(stranger, deviceId, { enabled: false, updatedAt: epoch })))
        assert.isTrue(Option.isNone(yield* store.remove(stranger, deviceId)))
        const before = yield* store.get(projectId, { deviceId })
        assert.isTrue(Option.isSome(before))
        const page = { page: 1, pageSize: 10 }
        const { batchId } = Option.getOrThrow(
          yield* store.insertBatch(projectId, productKey, { description: "", createdAt: epoch }, [newDevice()])
        )
        for (const filter of [{ productKey }, { batchId }, { productKey, batchId }]) {
          assert.deepStrictEqual(yield* store.list(stranger, filter, page), { items: [], total: 0 })
        }
        const other = yield* insertProductOf(newProduct(projectId))
        const [namesake] = yield* insertDevices(other, [newDevice({ deviceName })])
        assert.deepStrictEqual(
          yield* store.get(projectId, { productKey: other.productKey, deviceName }),
          Option.some({ device: namesake!, product: other })
        )
        assert.deepStrictEqual(yield* store.get(projectId, { productKey, deviceName }), before)
      }))

    it.effect("walks through the devices of a product in the order of their numbers", () =>
      Effect.gen(function*() {
        const store = yield* DeviceStore
        const product = yield* insertProduct
        const { productKey } = product
        const first = yield* insertDevices(product, [newDevice({ createdAt: epoch + 1 })])
        const others = yield* insertDevices(product, Array.from({ length: 3 }, () => newDevice()))
        const all = [...first, ...others].map(({ createdAt, deviceId, deviceName, id }) => ({
          createdAt,
          deviceId,
          deviceName,
          id
        }))
        const pick = (devices: ReadonlyArray<(typeof all)[number]>) =>
          devices.map(({ createdAt, deviceId, deviceName, id }) => ({ createdAt, deviceId, deviceName, id }))
        const start = pick(yield* store.ofProduct(productKey, { after: undefined, limit: 2 }))
        assert.deepStrictEqual(start, all.slice(0, 2))
        assert.deepStrictEqual(
          pick(yield* store.ofProduct(productKey, { after: start[1]!.id, limit: 9 })),
          all.slice(2)
        )
        assert.deepStrictEqual(yield* store.ofProduct(productKey, { after: all[3]!.id, limit: 9 }), [])
        assert.deepStrictEqual(yield* store.ofProduct(ProductKey.make("missing"), { after: undefined, limit: 9 }), [])
      }))

    it.effect("finds nothing under a name that is missing", () =>
      Effect.gen(function*() {
        const store = yield* DeviceStore
        const { device: { deviceName, productKey, projectId } } = yield* insertDevice
        const missing = DeviceName.make("missing")
        assert.isTrue(Option.isNone(yield* store.credentials(productKey, missing)))
        assert.isTrue(Option.isNone(yield* store.credentials(ProductKey.make("missing"), deviceName)))
        assert.isTrue(Option.isNone(yield* store.get(projectId, { deviceId: DeviceId.make("missing") })))
      }))

    it.effect("filters by every field, combined with and, newest first", () =>
      Effect.gen(function*() {
        const store = yield* DeviceStore
        const presence = yield* PresenceStore
        const { id: projectId } = yield* insertProject
        const products = yield* Effect.forEach([0, 1], () => insertProductOf(newProduct(projectId)))
        const firstBatch = randomInt(1, 2 ** 47)
        const batches = [0, firstBatch, firstBatch + 1]
        const inserted: Array<Device> = []
        for (const [i, product] of products.entries()) {
          inserted.push(
            ...yield* insertDevices(
              product,
              Array.from(
                { length: 12 },
                (_, j) => newDevice({ batchId: batches[j % 3]!, createdAt: epoch + ((j * 7 + i) % 5) * 1000 })
              )
            )
          )
        }
        const devices = yield* Effect.forEach(inserted, (device, i) =>
          Effect.gen(function*() {
            const { deviceId } = device
            if (i % 4 === 1) yield* store.update(projectId, deviceId, { enabled: false, updatedAt: epoch })
            else if (i % 4 === 2) {
              yield* presence.record([{
                _tag: "Online",
                deviceId,
                connectionId: unique(""),
                nodeId: "n",
                ip: "127.0.0.1",
                at: epoch
              }])
            }
            return Option.getOrThrow(yield* store.get(projectId, { deviceId }))
          }))
        const expected = devices.toSorted((a, b) => b.device.id - a.device.id)
        const productKeys = [undefined, ...products.map(({ productKey }) => productKey), ProductKey.make("missing")]
        for (const productKey of productKeys) {
          for (const batchId of [undefined, ...batches]) {
            for (const enabled of [undefined, true, false]) {
              for (const status of [undefined, "online", "offline", "unactive"] as const) {
                const filter: DeviceFilter = { productKey, batchId, enabled, status }
                const matching = expected.filter(({ device }) =>
                  (productKey === undefined || device.productKey === productKey) &&
                  (batchId === undefined || device.batchId === batchId) &&
                  (enabled === undefined || device.enabled === enabled) &&
                  (status === undefined || device.status === status)
                )
                const { items, total } = yield* store.list(projectId, filter, { page: 1, pageSize: 100 })
                assert.deepStrictEqual(items, matching)
                assert.strictEqual(total, matching.length)
              }
            }
          }
        }
        for (let page = 1; page <= 6; page++) {
          const { items } = yield* store.list(projectId, {}, { page, pageSize: 5 })
          assert.deepStrictEqual(items, expected.slice((page - 1) * 5, page * 5))
        }
        const { id } = expected[4]!.device
        for (const enabled of [undefined, true]) {
          const { items, total } = yield* store.list(projectId, { before: id, enabled }, { page: 1, pageSize: 100 })
          const following = expected.slice(5).filter(({ device }) => enabled === undefined || device.enabled)
          assert.deepStrictEqual(items, following)
          assert.strictEqual(total, following.length)
        }
      }))

    it.effect("counts the devices of a project by status", () =>
      Effect.gen(function*() {
        const store = yield* DeviceStore
        const product = yield* insertProduct
        const [one, two] = yield* insertDevices(product, [newDevice(), newDevice(), newDevice()])
        const online = { connectionId: "c", nodeId: "n", ip: "192.0.2.1", at: epoch }
        const presence = yield* PresenceStore
        yield* presence.record([one!, two!].map(({ deviceId }) => ({ _tag: "Online", deviceId, ...online })))
        yield* presence.record([{ _tag: "Offline", deviceId: two!.deviceId, connectionId: "c", at: epoch }])
        yield* store.update(product.projectId, two!.deviceId, { enabled: false, updatedAt: epoch })
        assert.deepStrictEqual(yield* store.count(product.projectId), {
          online: 1,
          offline: 1,
          unactive: 1,
          disabled: 1
        })
        const { projectId } = yield* insertProduct
        assert.deepStrictEqual(yield* store.count(projectId), { online: 0, offline: 0, unactive: 0, disabled: 0 })
      }))

    it.effect("changes exactly the given fields", () =>
      Effect.gen(function*() {
        const store = yield* DeviceStore
        const { device, product } = yield* insertDevice
        const { deviceId, projectId } = device
        const disabled = { ...device, enabled: false, updatedAt: epoch + 1 }
        assert.deepStrictEqual(
          yield* store.update(projectId, deviceId, { enabled: false, updatedAt: epoch + 1 }),
          Option.some({ device: disabled, product })
        )
        yield* store.update(projectId, deviceId, { bound: true, nickname: "", updatedAt: epoch + 2 })
        assert.deepStrictEqual(
          yield* store.get(projectId, { deviceId }),
          Option.some({ device: { ...disabled, bound: true, nickname: "", updatedAt: epoch + 2 }, product })
        )
      }))

    it.effect("stores a batch with its devices, or nothing, and removes it with them", () =>
      Effect.gen(function*() {
        const store = yield* DeviceStore
        const product = yield* insertProduct
        const { productKey, projectId } = product
        const { id: stranger } = yield* insertProject
        const drafts = Array.from({ length: 25 }, () => newDevice())
        const draft = { description: "First run", createdAt: epoch + 3 }
        assert.isTrue(Option.isNone(yield* store.insertBatch(stranger, productKey, draft, drafts)))
        const batch = Option.getOrThrow(yield* store.insertBatch(projectId, productKey, draft, drafts))
        const { batchId } = batch
        assert.deepStrictEqual(batch, { ...draft, batchId, productKey, size: 25 })
        assert.deepStrictEqual(yield* store.getBatch(projectId, productKey, batchId), Option.some(batch))
        assert.isTrue(Option.isNone(yield* store.getBatch(stranger, productKey, batchId)))
        const sibling = yield* insertProductOf(newProduct(projectId))
        assert.isTrue(Option.isNone(yield* store.getBatch(projectId, sibling.productKey, batchId)))
        assert.isTrue(Option.isNone(yield* store.removeBatch(projectId, sibling.productKey, batchId)))
        const next = Option.getOrThrow(yield* store.insertBatch(projectId, productKey, draft, [newDevice()]))
        assert.isTrue(next.batchId > batchId)
        const first = yield* store.devicesOfBatch(projectId, batchId, { after: undefined, limit: 20 })
        const rest = yield* store.devicesOfBatch(projectId, batchId, { after: first.at(-1)!.id, limit: 20 })
        assert.deepStrictEqual([first.length, rest.length], [20, 5])
        assert.deepStrictEqual(
          [...first, ...rest].map(({ deviceId, deviceName, deviceSecret }) => ({ deviceId, deviceName, deviceSecret })),
          drafts.map(({ deviceId, deviceName, deviceSecret }) => ({ deviceId, deviceName, deviceSecret }))
        )
        const stored = yield* store.get(projectId, { deviceId: drafts[19]!.deviceId })
        assert.strictEqual(first.at(-1)!.id, Option.getOrThrow(stored).device.id)
        assert.deepStrictEqual(yield* store.devicesOfBatch(stranger, batchId, { after: undefined, limit: 20 }), [])
        const { device } = Option.getOrThrow(yield* store.get(projectId, { deviceId: drafts[3]!.deviceId }))
        assert.deepInclude(device, { batchId, createdAt: epoch + 3, status: "unactive", mac: null })
        const listed = yield* store.list(projectId, { batchId }, { page: 2, pageSize: 10 })
        assert.deepStrictEqual([listed.total, listed.items.length], [25, 10])

        assert.isTrue(Option.isNone(yield* store.removeBatch(stranger, productKey, batchId)))
        const removed = Option.getOrThrow(yield* store.removeBatch(projectId, productKey, batchId))
        assert.sameDeepMembers(
          removed.map(({ deviceId, deviceName }) => ({ deviceId, deviceName })),
          drafts.map(({ deviceId, deviceName }) => ({ deviceId, deviceName }))
        )
        assert.deepInclude(removed[0]!, { projectId, productKey, validateType: product.validateType })
        assert.isTrue(Option.isNone(yield* store.getBatch(projectId, productKey, batchId)))
        assert.isTrue(Option.isNone(yield* store.get(projectId, { deviceId: drafts[0]!.deviceId })))
        assert.strictEqual(
          (yield* store.devicesOfBatch(projectId, next.batchId, { after: undefined, limit: 20 })).length,
          1
        )
      }))

    it.effect("stores nothing of devices whose names are taken, also at the same moment, and names them", () =>
      Effect.gen(function*() {
        const store = yield* DeviceStore
        const product = yield* insertProduct
        const { productKey, projectId } = product
        const named = (names: ReadonlyArray<string>) =>
          names.map((deviceName) => newDevice({ deviceName: DeviceName.make(deviceName) }))
        const insert = (names: ReadonlyArray<string>) =>
          store.insertBatch(projectId, productKey, { description: "", createdAt: epoch }, named(names)).pipe(
            Effect.as("stored" as const),
            Effect.catchTag("DeviceNamesTaken", ({ deviceNames }) => Effect.succeed(deviceNames))
          )
        yield* insertDevices(product, named(["lamp-2"]))
        assert.deepStrictEqual(yield* insert(["lamp-1", "lamp-2", "lamp-3"]), ["lamp-2"])
        const taken = yield* Effect.flip(store.insertMany(projectId, productKey, named(["lamp-4", "lamp-2"])))
        assert.deepInclude(taken, { _tag: "DeviceNamesTaken", productKey, deviceNames: ["lamp-2"] })
        const names = Array.from({ length: 20 }, (_, i) => `row-${i}`)
        const outcomes = yield* Effect.forEach(
          [names, names.toReversed(), [...names.slice(10), "row-x"]],
          insert,
          { concurrency: "unbounded" }
        )
        assert.strictEqual(outcomes.filter((outcome) => outcome === "stored").length, 1)
        const { total } = yield* store.list(projectId, { productKey }, { page: 1, pageSize: 1 })
        assert.include([1 + names.length, 1 + 11], total)
        const other = yield* insertProduct
        yield* insertDevices(other, named(["lamp-2"]))
      }))

    it.effect("stores a large batch in the order of its devices, or nothing where any of its names are taken", () =>
      Effect.gen(function*() {
        const store = yield* DeviceStore
        const product = yield* insertProduct
        const { productKey, projectId } = product
        const draft = { description: "", createdAt: epoch }
        const drafts = Array.from({ length: 2500 }, () => newDevice())
        const { batchId } = Option.getOrThrow(yield* store.insertBatch(projectId, productKey, draft, drafts))
        const stored = yield* store.devicesOfBatch(projectId, batchId, { after: undefined, limit: 3000 })
        assert.deepStrictEqual(stored.map(({ deviceId }) => deviceId), drafts.map(({ deviceId }) => deviceId))
        const taken = [drafts[2400]!.deviceName, drafts[5]!.deviceName]
        const others = Array.from({ length: 2500 }, () => newDevice())
        const more = others.map((each, i) => ({
          ...each,
          deviceName: { 7: taken[0], 2450: taken[1] }[i] ?? each.deviceName
        }))
        const refused = yield* store.insertBatch(projectId, productKey, draft, more).pipe(
          Effect.as([]),
          Effect.catchTag("DeviceNamesTaken", ({ deviceNames }) => Effect.succeed(deviceNames))
        )
        assert.deepStrictEqual(new Set(refused), new Set(taken))
        assert.strictEqual((yield* store.list(projectId, { productKey }, { page: 1, pageSize: 1 })).total, 2500)
        assert.strictEqual((yield* store.listBatches(projectId, productKey, { page: 1, pageSize: 1 })).total, 1)
      }))

    it.effect("lists the batches of a product, the newest first", () =>
      Effect.gen(function*() {
        const store = yield* DeviceStore
        const { productKey, projectId } = yield* insertProduct
        const insert = (description: string, createdAt: number) =>
          Effect.map(
            store.insertBatch(projectId, productKey, { description, createdAt }, [newDevice()]),
            Option.getOrThrow
          )
        const [old, first, second] = [
          yield* insert("old", epoch),
          yield* insert("one", epoch + 1),
          yield* insert("two", epoch + 1)
        ]
        assert.deepStrictEqual(yield* store.listBatches(projectId, productKey, { page: 1, pageSize: 2 }), {
          items: [second, first],
          total: 3
        })
        assert.deepStrictEqual((yield* store.listBatches(projectId, productKey, { page: 2, pageSize: 2 })).items, [old])
        const { id: stranger } = yield* insertProject
        assert.strictEqual((yield* store.listBatches(stranger, productKey, { page: 1, pageSize: 2 })).total, 0)
      }))

    it.effect("finds devices by a tag, and by what their names begin with", () =>
      Effect.gen(function*() {
        const store = yield* DeviceStore
        const product = yield* insertProduct
        const { projectId } = product
        const [first, second, third] = yield* insertDevices(product, [
          newDevice({ deviceName: DeviceName.make("lamp-1"), nickname: "Küche" }),
          newDevice({ deviceName: DeviceName.make("lamp-2"), nickname: "" }),
          newDevice({ deviceName: DeviceName.make("Lamp%3"), nickname: "lamp" })
        ])
        yield* store.changeTags(first!.deviceId, { set: { room: "kitchen", floor: "1" }, remove: [] })
        yield* store.changeTags(third!.deviceId, { set: { room: "kitchen:old" }, remove: [] })
        const found = (filter: DeviceFilter) =>
          Effect.map(
            store.list(projectId, filter, { page: 1, pageSize: 10 }),
            ({ items }) => items.map(({ device }) => device.deviceName)
          )
        assert.deepStrictEqual(yield* found({ tags: { room: "kitchen" } }), [first!.deviceName])
        assert.deepStrictEqual(yield* found({ tags: { room: "kitchen:old" } }), [third!.deviceName])
        assert.deepStrictEqual(yield* found({ tags: { room: "" } }), [])
        assert.deepStrictEqual(yield* found({ tags: Object.fromEntries([["__proto__", "x"]]) }), [])
        assert.deepStrictEqual(yield* found({ keyword: "lamp" }), [third!, second!, first!].map((d) => d.deviceName))
        assert.deepStrictEqual(yield* found({ keyword: "lamp-1" }), [first!.deviceName])
        assert.deepStrictEqual(yield* found({ keyword: "Lamp%" }), [third!.deviceName])
        assert.deepStrictEqual(yield* found({ keyword: "K" }), [first!.deviceName])
        assert.deepStrictEqual(yield* found({ keyword: "%" }), [])
        assert.deepStrictEqual(yield* found({ keyword: "lamp", tags: { floor: "1" } }), [first!.deviceName])
      }))

    it.effect("gives each mac a device of its own, and the same one again until it has been active", () =>
      Effect.gen(function*() {
        const store = yield* DeviceStore
        const product = yield* insertProduct
        const { productKey, projectId } = product
        const macOf = (claimed: DeviceDetail | "active" | "none") =>
          typeof claimed === "string" ? claimed : [claimed.device.deviceId, claimed.device.mac]
        // The oldest has been active, and is not registered.
        const [connected] = yield* insertDevices(product, [newDevice()])
        yield* (yield* PresenceStore).record([
          {
            _tag: "Online",
            deviceId: connected!.deviceId,
            connectionId: "c",
            nodeId: unique("node"),
            ip: "",
            at: epoch
          }
        ])
        const devices = yield* insertDevices(product, Array.from({ length: 42 }, () => newDevice()))
        const [first, disabled, ...others] = devices.map(({ deviceId }) => deviceId)
        yield* store.update(projectId, disabled!, { enabled: false, updatedAt: epoch + 1 })
        assert.deepStrictEqual(yield* store.claimByMac(productKey, "aa"), {
          device: { ...devices[0]!, mac: "aa" },
          product
        })
        const asked = Array.from({ length: 41 }, (_, i) => `mac${i}`).flatMap((mac) => [mac, mac])
        const claimed = yield* Effect.forEach(
          asked,
          (mac) => Effect.map(store.claimByMac(productKey, mac), (answer) => [mac, macOf(answer)] as const),
          { concurrency: "unbounded" }
        )
        const byMac = new Map(claimed.map(([mac, answer]) => [mac, answer]))
        for (const [mac, answer] of claimed) assert.deepStrictEqual(byMac.get(mac), answer)
        const given = [...byMac.values()].filter((answer) => answer !== "none")
        assert.strictEqual(given.length, 40)
        assert.deepStrictEqual(new Set(given.map(([deviceId]) => deviceId!)), new Set<string>(others))
        assert.deepStrictEqual(macOf(yield* store.claimByMac(productKey, "aa")), [first!, "aa"])
        assert.deepStrictEqual(macOf(yield* store.claimByName(productKey, devices[0]!.deviceName)), [first!, "aa"])
        assert.deepStrictEqual(macOf(yield* store.claimByMac(productKey, "aa")), [first!, "aa"])
        const at = epoch + 2
        yield* (yield* PresenceStore).record([
          { _tag: "Online", deviceId: first!, connectionId: "c", nodeId: unique("node"), ip: "", at }
        ])
        assert.strictEqual(yield* store.claimByMac(productKey, "aa"), "active")
        // A change leaves what is known of its presence as it is.
        const active = Option.getOrThrow(yield* store.get(projectId, { deviceId: first! }))
        const change = { nickname: "Desk", updatedAt: epoch + 3 }
        assert.deepStrictEqual(
          yield* store.update(projectId, first!, change),
          Option.some({ ...active, device: { ...active.device, ...change } })
        )
        assert.strictEqual(yield* store.claimByMac(ProductKey.make("missing"), "aa"), "none")
      }))

    it.effect("gives a device by its name, which nobody else gets by a mac", () =>
      Effect.gen(function*() {
        const store = yield* DeviceStore
        const product = yield* insertProduct
        const { productKey } = product
        const [known] = yield* insertDevices(product, [newDevice()])
        const detailOf = (claimed: DeviceDetail | "active" | "none") => {
          assert.isObject(claimed)
          return claimed as DeviceDetail
        }
        const named = detailOf(yield* store.claimByName(productKey, known!.deviceName))
        assert.deepStrictEqual(named, { device: { ...known!, mac: "" }, product })
        const draft = newDevice()
        assert.strictEqual(yield* store.claimByName(productKey, draft.deviceName), "none")
        const made = yield* Effect.forEach(
          [draft, newDevice({ deviceName: draft.deviceName })],
          (each) => Effect.map(store.claimByName(productKey, draft.deviceName, each), detailOf),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(made[0], made[1])
        const { createdAt, deviceName, deviceSecret, nickname } = draft
        assert.deepInclude(made[0]!.device, { createdAt, deviceName, deviceSecret, nickname, mac: "" })
        assert.deepStrictEqual(detailOf(yield* store.claimByName(productKey, draft.deviceName)), made[0])
        assert.strictEqual(yield* store.claimByMac(productKey, "aa"), "none")
        assert.strictEqual(yield* store.claimByName(ProductKey.make("missing"), draft.deviceName, draft), "none")
        yield* (yield* PresenceStore).record([{
          _tag: "Online",
          deviceId: known!.deviceId,
          connectionId: "c",
          nodeId: unique("node"),
          ip: "",
          at: epoch
        }])
        assert.strictEqual(yield* store.claimByName(productKey, known!.deviceName), "active")
      }))

    it.effect("removes and sets tags, also those of callers at the same time, up to their number", () =>
      Effect.gen(function*() {
        const store = yield* DeviceStore
        const { device: { deviceId, projectId } } = yield* insertDevice
        const tags = Effect.map(store.get(projectId, { deviceId }), (found) => Option.getOrThrow(found).device.tags)
        const change = (set: Readonly<Record<string, string>>, remove: ReadonlyArray<string> | "all" = []) =>
          store.changeTags(deviceId, { set, remove })
        assert.deepStrictEqual(yield* change({ a: "1", b: "2", c: "é 漢 😀" }), { a: "1", b: "2", c: "é 漢 😀" })
        assert.deepStrictEqual(yield* change({ b: "3" }, ["missing", "b", "c"]), { a: "1", b: "3" })
        assert.deepStrictEqual(yield* tags, { a: "1", b: "3" })
        const many = Object.fromEntries(Array.from({ length: maxTags }, (_, i) => [`t${i}`, ""]))
        assert.strictEqual(yield* change(many, ["a"]), "full")
        assert.deepStrictEqual(yield* tags, { a: "1", b: "3" })
        assert.deepStrictEqual(yield* change(many, ["a", "b"]), many)
        assert.deepStrictEqual(yield* change({}, "all"), {})
        const names = Array.from({ length: 10 }, (_, i) => `n${i}`)
        yield* Effect.forEach(names, (name) => change({ [name]: name }), { concurrency: "unbounded" })
        assert.deepStrictEqual(yield* tags, Object.fromEntries(names.map((name) => [name, name])))
        const missing = DeviceId.make("missing")
        assert.strictEqual(yield* store.changeTags(missing, { set: {}, remove: [] }), "no-device")
      }))

    it.effect("removes a device with its shadow", () =>
      Effect.gen(function*() {
        const store = yield* DeviceStore
        const shadows = yield* ShadowStore
        const { device, product } = yield* insertDevice
        const { deviceId, projectId } = device
        const [sibling] = yield* insertDevices(product, [newDevice()])
        yield* shadows.modify([{
          deviceId,
          modify: (shadow) => [undefined, { ...shadow, version: 1, updatedAt: epoch }]
        }])
        assert.deepStrictEqual(yield* store.remove(projectId, deviceId), Option.some({ device, product }))
        assert.isTrue(Option.isNone(yield* store.get(projectId, { deviceId })))
        assert.isTrue(Option.isNone(yield* store.credentials(device.productKey, device.deviceName)))
        assert.isTrue(Option.isNone(yield* shadows.get(deviceId)))
        assert.isTrue(Option.isNone(yield* store.remove(projectId, deviceId)))
        assert.deepStrictEqual(
          yield* store.get(projectId, { deviceId: sibling!.deviceId }),
          Option.some({ device: sibling!, product })
        )
      }))
  })
