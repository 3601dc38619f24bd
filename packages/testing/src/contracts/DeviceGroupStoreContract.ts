/**
 * The laws of `DeviceGroupStore`, and of the filters of `DeviceStore` that groups use.
 */
import {
  type DeviceCloud,
  type DeviceFilter,
  type DeviceGroup,
  DeviceGroupStore,
  DeviceId,
  DeviceName,
  DeviceStore,
  type Json,
  matchesFilter,
  type NewDeviceGroup,
  ProjectId,
  ProjectStore,
  ShadowStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
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

const newGroup = (projectId: ProjectId, fields: Partial<NewDeviceGroup> = {}): NewDeviceGroup => ({
  projectId,
  name: unique("group"),
  desc: "",
  query: null,
  createdAt: epoch,
  updatedAt: epoch,
  ...fields
})

const insertGroup = Effect.fnUntraced(function*(projectId: ProjectId, fields: Partial<NewDeviceGroup> = {}) {
  const group = yield* (yield* DeviceGroupStore).insert(newGroup(projectId, fields))
  assert.isObject(group)
  return group as DeviceGroup
})

const firstPage = { page: 1, pageSize: 100 }

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`DeviceGroupStore: ${name}`, (it) => {
    it.effect("keeps groups of a project, each name once", () =>
      Effect.gen(function*() {
        const store = yield* DeviceGroupStore
        const { id } = yield* insertProject
        const { id: stranger } = yield* insertProject
        const query = { status: "online", tags: { room: "küche" }, keyword: "lamp" } as const
        const one = yield* insertGroup(id, { name: "Lamps", desc: "All" })
        const two = yield* insertGroup(id, { query, createdAt: epoch + 1, updatedAt: epoch + 1 })
        assert.deepStrictEqual(one, { ...newGroup(id, { name: "Lamps", desc: "All" }), groupId: one.groupId })
        assert.deepStrictEqual(two.query, query)
        assert.deepStrictEqual(yield* store.get(id, two.groupId), Option.some(two))
        assert.isTrue(Option.isNone(yield* store.get(stranger, two.groupId)))
        yield* assertPages((page) => store.list(id, page), [two, one])
        assert.strictEqual(yield* store.insert(newGroup(id, { name: "Lamps" })), "taken")
        const theirs = yield* insertGroup(stranger, { name: "Lamps" })
        yield* assertPages((page) => store.list(id, page), [two, one])
        assert.deepStrictEqual(yield* store.list(stranger, firstPage), { items: [theirs], total: 1 })
        assert.strictEqual(yield* store.insert(newGroup(ProjectId.make("missing"))), "no-project")
        const attempts = yield* Effect.all(
          Array.from({ length: 5 }, () => store.insert(newGroup(id, { name: "Once" }))),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(attempts.filter((attempt) => attempt === "taken").length, 4)
      }))

    it.effect("changes and removes groups of their project only", () =>
      Effect.gen(function*() {
        const store = yield* DeviceGroupStore
        const { id } = yield* insertProject
        const { id: stranger } = yield* insertProject
        const one = yield* insertGroup(id, { name: "One", desc: "first", query: { keyword: "a" } })
        const two = yield* insertGroup(id, { name: "Two" })
        const { groupId } = one
        assert.strictEqual(yield* store.update(id, groupId, { name: "Two", updatedAt: epoch + 1 }), "taken")
        const changed = { ...one, desc: "", query: { keyword: "b" }, updatedAt: epoch + 2 }
        assert.deepStrictEqual(
          yield* store.update(id, groupId, {
            name: "One",
            desc: "",
            query: { keyword: "b" },
            updatedAt: epoch + 2
          }),
          Option.some(changed)
        )
        assert.deepStrictEqual(
          yield* store.update(id, groupId, { name: undefined, updatedAt: epoch + 3 }),
          Option.some({ ...changed, updatedAt: epoch + 3 })
        )
        assert.deepStrictEqual(
          yield* store.update(id, groupId, { name: "Three", updatedAt: epoch + 4 }),
          Option.some({ ...changed, name: "Three", updatedAt: epoch + 4 })
        )
        // The name that it had is free.
        yield* insertGroup(id, { name: "One" })
        assert.deepStrictEqual(yield* store.update(stranger, groupId, { desc: "x", updatedAt: epoch }), Option.none())
        assert.isFalse(yield* store.remove(stranger, groupId))
        assert.isTrue(yield* store.remove(id, groupId))
        assert.isFalse(yield* store.remove(id, groupId))
        const theirs = yield* insertGroup(stranger)
        assert.strictEqual(yield* (yield* ProjectStore).remove(stranger), "removed")
        assert.isTrue(Option.isNone(yield* store.get(stranger, theirs.groupId)))
        assert.deepStrictEqual(yield* store.get(id, two.groupId), Option.some(two))
      }))

    it.effect("adds devices of the project, all or none, and forgets those that are removed", () =>
      Effect.gen(function*() {
        const store = yield* DeviceGroupStore
        const devices = yield* DeviceStore
        const product = yield* insertProduct
        const { projectId } = product
        const [one, two, three] = yield* insertDevices(product, [newDevice(), newDevice(), newDevice()])
        const [foreign] = yield* insertDevices(yield* insertProduct, [newDevice()])
        const { groupId } = yield* insertGroup(projectId)
        const other = yield* insertGroup(projectId, { createdAt: epoch - 1 })
        const dynamic = yield* insertGroup(projectId, { query: { keyword: "x" }, createdAt: epoch + 1 })
        const members = Effect.map(
          devices.list(projectId, { groupId }, firstPage),
          ({ items }) => items.map(({ device }) => device.deviceId)
        )
        const missing = DeviceId.make("missing")
        assert.deepStrictEqual(
          yield* store.add(projectId, groupId, [one!.deviceId, missing, foreign!.deviceId]),
          { _tag: "Unknown", deviceIds: [missing, foreign!.deviceId] }
        )
        assert.deepStrictEqual(yield* members, [])
        const { id: stranger } = yield* insertProject
        assert.deepStrictEqual(yield* store.add(stranger, groupId, [one!.deviceId]), { _tag: "NoGroup" })
        const additions = yield* Effect.forEach(
          [[one!, two!], [two!, three!]],
          (added) => store.add(projectId, groupId, added.map((d) => d.deviceId)),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(
          additions.reduce((sum, outcome) => sum + (outcome._tag === "Added" ? outcome.added : 9), 0),
          3
        )
        assert.deepStrictEqual(yield* members, [three!, two!, one!].map((device) => device.deviceId))
        assert.deepStrictEqual(
          (yield* store.possible(projectId, one!.deviceId)).map((group) => group.groupId),
          [dynamic.groupId, groupId]
        )
        yield* store.add(projectId, other.groupId, [one!.deviceId])
        assert.deepStrictEqual(
          yield* devices.list(projectId, { groupId: other.groupId }, firstPage),
          { items: [{ device: one!, product }], total: 1 }
        )
        assert.deepStrictEqual(yield* devices.list(stranger, { groupId }, firstPage), { items: [], total: 0 })
        assert.strictEqual(yield* store.take(stranger, groupId, [one!.deviceId]), 0)
        assert.strictEqual(yield* store.take(projectId, groupId, [missing, one!.deviceId]), 1)
        assert.deepStrictEqual(
          (yield* store.possible(projectId, one!.deviceId)).map((group) => group.groupId),
          [dynamic.groupId, other.groupId]
        )
        yield* devices.remove(projectId, two!.deviceId)
        assert.deepStrictEqual(yield* members, [three!.deviceId])
        yield* store.remove(projectId, groupId)
        assert.deepStrictEqual(yield* members, [])
        assert.deepStrictEqual(yield* store.possible(projectId, three!.deviceId), [dynamic])
        assert.isTrue(Option.isSome(yield* store.get(projectId, other.groupId)))
      }))

    it.effect("finds devices by what they have reported, as the rule of the core does", () =>
      Effect.gen(function*() {
        const devices = yield* DeviceStore
        const shadows = yield* ShadowStore
        const product = yield* insertProduct
        const { productKey, projectId } = product
        const other = yield* insertProductOf(newProduct(projectId))
        const values: ReadonlyArray<Readonly<Record<string, Json>>> = [
          { mode: "auto", level: 5 },
          { mode: "\"auto\"", level: 5.5, on: true },
          { mode: "straße \\ 🚀", level: "5", on: false },
          { level: -0, mode: null, nested: { level: 5 } },
          {}
        ]
        const stored = [
          ...yield* insertDevices(
            product,
            values.map((_, i) => newDevice({ deviceName: DeviceName.make(`lamp-${i}`) }))
          ),
          ...yield* insertDevices(other, [newDevice({ deviceName: DeviceName.make("lamp-other") })])
        ]
        const reported = (i: number) =>
          Object.fromEntries(
            Object.entries(values[i] ?? { level: 5 }).map(([id, value]) => [id, { value, time: epoch }])
          )
        yield* shadows.modify(
          stored.map(({ deviceId }, i) => ({
            deviceId,
            modify: (shadow) => [undefined, { ...shadow, reported: reported(i), version: 1, updatedAt: epoch }]
          }))
        )
        yield* devices.changeTags(stored[0]!.deviceId, { set: { room: "kitchen", floor: "1" }, remove: [] })
        const filters: ReadonlyArray<DeviceFilter> = [
          { reported: { level: 5 } },
          { productKey, reported: { level: 5 } },
          { reported: { level: 5.5 } },
          { reported: { level: "5" } },
          { reported: { level: 0 } },
          { reported: { mode: "auto" } },
          { reported: { mode: "\"auto\"" } },
          { reported: { mode: "straße \\ 🚀", on: false } },
          { reported: { on: true, level: 5.5 } },
          { reported: { on: true, level: 5 } },
          { reported: { missing: 1 } },
          { reported: { "it's": "x' OR true" } },
          { reported: {} },
          { tags: { room: "kitchen", floor: "1" } },
          { tags: { room: "kitchen", floor: "2" } },
          { tags: {}, keyword: "lamp-" },
          { keyword: "lamp-o", productKey },
          { status: "unactive", enabled: true, batchId: 0 }
        ]
        for (const filter of filters) {
          const { items } = yield* devices.list(projectId, filter, firstPage)
          const tags = { room: "kitchen", floor: "1" }
          const expected = stored.filter((device, i) =>
            matchesFilter(filter, i === 0 ? { ...device, tags } : device, reported(i))
          )
          assert.sameMembers(
            items.map(({ device }) => device.deviceName),
            expected.map(({ deviceName }) => deviceName),
            JSON.stringify(filter)
          )
        }
      }))

    it.effect("finds devices beside whose values there are NUL characters and unpaired surrogates", () =>
      Effect.gen(function*() {
        const devices = yield* DeviceStore
        const shadows = yield* ShadowStore
        const product = yield* insertProduct
        const asked = ["x", "\\u0000", "\\\\u0000", "\\ud800", "\ufffd", "\\ufffd", "🚀"]
        const odd = ["\0", "\0\0", "\ud800", "x\udfff\ud800", "\\\0", "\\\\\0", ...asked]
        const inserted = yield* insertDevices(product, odd.map(() => newDevice()))
        const report = (value: Json) => ({ level: { value: 5, time: epoch }, text: { value, time: epoch } })
        yield* shadows.modify(inserted.map(({ deviceId }, i) => ({
          deviceId,
          modify: (shadow) => [undefined, { ...shadow, reported: report(odd[i]!), version: 1, updatedAt: epoch }]
        })))
        const found = (reported: DeviceFilter["reported"] & {}) =>
          Effect.map(
            devices.list(product.projectId, { productKey: product.productKey, reported }, firstPage),
            (page) => page.items.map(({ device }) => device.deviceId)
          )
        for (const reported of [{ level: 5 }, { level: 6 }, ...asked.map((text) => ({ text }))]) {
          const expected = inserted.filter((device, i) => matchesFilter({ reported }, device, report(odd[i]!)))
          assert.deepStrictEqual(
            yield* found(reported),
            expected.map(({ deviceId }) => deviceId).toReversed(),
            JSON.stringify(reported)
          )
        }
      }))
  })
