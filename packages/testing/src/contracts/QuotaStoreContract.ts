/**
 * The laws of `QuotaStore`.
 */
import {
  AccessKeyStore,
  beginAt,
  type DeviceCloud,
  DeviceGroupStore,
  DeviceStore,
  emptyModel,
  JobStore,
  ProductKey,
  ProductStore,
  ProjectId,
  ProjectStore,
  QuotaStore,
  SceneStore,
  SubscriptionStore,
  ThingModelStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, type Layer, Option } from "effect"
import { newKey } from "./AccessKeyStoreContract.ts"
import { detached } from "./Detached.ts"
import { epoch, insertProductOf, insertProject, newDevice, newProduct, unique } from "./Samples.ts"
import { insert as insertScene } from "./SceneSamples.ts"

const used = (projectId: ProjectId) =>
  Effect.map(Effect.flatMap(QuotaStore, (store) => store.state(projectId)), (state) => Option.getOrThrow(state).used)

const none = {
  products: 0,
  devices: 0,
  deviceGroups: 0,
  accessKeys: 0,
  scenes: 0,
  jobs: 0,
  subscriptions: 0,
  objectBytes: 0
}

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`QuotaStore: ${name}`, (it) => {
    it.effect("keeps limits, and forgets those that are null", () =>
      Effect.gen(function*() {
        const store = yield* QuotaStore
        const project = yield* insertProject
        const { id } = project
        assert.deepStrictEqual(yield* store.state(id), Option.some({ limits: {}, used: none }))
        const { id: other } = yield* insertProject
        assert.isTrue(yield* store.set(other, { devices: 7 }))
        yield* store.take(other, 3, 10)
        assert.isTrue(yield* store.set(id, { devices: 5, objectBytes: 2 ** 50 }))
        assert.isTrue(yield* store.set(id, { devices: null, scenes: 0 }))
        assert.deepStrictEqual(Option.getOrThrow(yield* store.state(id)).limits, { objectBytes: 2 ** 50, scenes: 0 })
        const missing = ProjectId.make(unique("missing"))
        assert.isFalse(yield* store.set(missing, { devices: 1 }))
        assert.isTrue(Option.isNone(yield* store.state(missing)))
        // They go with the project.
        yield* store.take(id, 5, 10)
        const projects = yield* ProjectStore
        yield* projects.remove(id)
        assert.isFalse(yield* store.set(id, { devices: 1 }))
        yield* store.take(id, 5, 10)
        yield* projects.insert(project)
        assert.deepStrictEqual(yield* store.state(id), Option.some({ limits: {}, used: none }))
        assert.deepStrictEqual(
          yield* store.state(other),
          Option.some({ limits: { devices: 7 }, used: { ...none, objectBytes: 3 } })
        )
      }))

    it.effect("counts what other stores add and remove, in whatever way", () =>
      Effect.gen(function*() {
        const { id } = yield* insertProject
        const products = yield* ProductStore
        const devices = yield* DeviceStore
        const product = yield* insertProductOf(newProduct(id))
        const { productKey } = product
        const drafts = [newDevice(), newDevice()]
        yield* devices.insertMany(id, productKey, drafts)
        const batch = yield* devices.insertBatch(id, productKey, { description: "", createdAt: epoch }, [newDevice()])
        const named = newDevice()
        yield* devices.claimByName(productKey, named.deviceName, named)
        yield* devices.claimByName(productKey, named.deviceName, newDevice({ deviceName: named.deviceName }))
        assert.deepStrictEqual(yield* used(id), { ...none, products: 1, devices: 4 })
        yield* devices.removeBatch(id, productKey, Option.getOrThrow(batch).batchId)
        for (const { deviceId } of [...drafts, named]) yield* devices.remove(id, deviceId)
        assert.deepStrictEqual(yield* used(id), { ...none, products: 1 })
        yield* products.remove(id, productKey)
        assert.deepStrictEqual(yield* used(id), none)
        assert.strictEqual(yield* (yield* ProjectStore).remove(id), "removed")
      }))

    it.effect("counts what a project has beside products and devices, each kind for itself", () =>
      Effect.gen(function*() {
        const [keys, scenes, jobs] = [yield* AccessKeyStore, yield* SceneStore, yield* JobStore]
        const [groups, subscriptions] = [yield* DeviceGroupStore, yield* SubscriptionStore]
        const [project, stranger] = [yield* insertProject, yield* insertProject]
        const { id: projectId } = project
        const own = { projectId, name: "Own", createdAt: epoch, updatedAt: epoch }
        const key = newKey(projectId)
        yield* keys.insert(key)
        const scene = yield* insertScene(project)
        yield* insertScene(project)
        const job = { ...own, description: "", document: {}, timeout: 0, productKey: null }
        const scope = { _tag: "Named", deviceIds: [] } as const
        const made = yield* Effect.replicateEffect(jobs.create(job, scope, 5), 3)
        const group = yield* groups.insert({ ...own, desc: "", query: null })
        const draft = { ...own, filter: {}, webhook: null }
        const subscription = yield* subscriptions.insert(draft, beginAt("7"))
        yield* subscriptions.insert({ ...draft, name: "Another" }, beginAt("7"))
        assert.strictEqual(yield* subscriptions.insert(draft, beginAt("7")), "taken")
        const added = { ...none, accessKeys: 1, scenes: 2, jobs: 3, deviceGroups: 1, subscriptions: 2 }
        assert.deepStrictEqual(yield* used(projectId), added)
        assert.deepStrictEqual(yield* used(stranger.id), none)
        yield* keys.remove(projectId, key.id)
        yield* scenes.remove(projectId, scene.sceneId)
        for (const one of made) if (one._tag === "Created") yield* jobs.remove(one.job.jobId)
        if (typeof group === "object") yield* groups.remove(projectId, group.groupId)
        if (typeof subscription === "object") yield* subscriptions.remove(projectId, subscription.subscriptionId)
        assert.deepStrictEqual(yield* used(projectId), { ...none, scenes: 1, subscriptions: 1 })
      }))

    it.effect("never admits more than the limit, however many write at the same time", () =>
      Effect.gen(function*() {
        const store = yield* QuotaStore
        const devices = yield* DeviceStore
        const { id } = yield* insertProject
        const { productKey } = yield* insertProductOf(newProduct(id))
        const write = store.within(
          { projectId: id, quota: "devices", amount: 3, limit: 10 },
          Effect.suspend(() => devices.insertMany(id, productKey, [newDevice(), newDevice(), newDevice()]))
        )
        const exits = yield* Effect.forEach(Array.from({ length: 12 }), () => Effect.exit(write), {
          concurrency: "unbounded"
        })
        assert.strictEqual(exits.filter(Exit.isSuccess).length, 3)
        assert.strictEqual((yield* used(id)).devices, 9)
        assert.strictEqual((yield* devices.list(id, {}, { page: 1, pageSize: 1 })).total, 9)
        // A limit of the project's own counts in place of the default.
        yield* store.set(id, { devices: 8 })
        const refused = yield* Effect.flip(
          store.within({ projectId: id, quota: "devices", amount: 1, limit: 100 }, Effect.void)
        )
        assert.deepInclude(refused, { _tag: "QuotaExceeded", quota: "devices", limit: 8 })
        yield* store.set(id, { devices: 12 })
        assert.isTrue(Exit.isSuccess(yield* Effect.exit(write)))
      }))

    it.effect("returns the result and the failure of a write as they are", () =>
      Effect.gen(function*() {
        const store = yield* QuotaStore
        const { id } = yield* insertProject
        const options = { projectId: id, quota: "devices", amount: 1, limit: 10 } as const
        const result = { stored: new Map([["device", new Uint8Array(2)]]), none: undefined }
        assert.strictEqual(yield* store.within(options, Effect.succeed(result)), result)
        const failure = { taken: new Set(["name"]) }
        assert.strictEqual(yield* Effect.flip(store.within(options, Effect.fail(failure))), failure)
      }))

    it.effect("returns what a write makes of a refused statement", () =>
      Effect.gen(function*() {
        const store = yield* QuotaStore
        const projectId = ProjectId.make(unique("missing"))
        const model = { version: 1, model: emptyModel, createdAt: epoch }
        const write = (yield* ThingModelStore).insert(ProductKey.make("missing"), model)
        assert.isFalse(yield* store.within({ projectId, quota: "scenes", amount: 1, limit: 1 }, write))
      }))

    it.effect("takes bytes up to the limit, and gives them back", () =>
      Effect.gen(function*() {
        const store = yield* QuotaStore
        const { id } = yield* insertProject
        const takes = Array.from({ length: 8 }, () => Effect.exit(store.take(id, 30, 100)))
        const exits = yield* Effect.all(takes, { concurrency: "unbounded" })
        assert.strictEqual(exits.filter(Exit.isSuccess).length, 3)
        assert.strictEqual((yield* used(id)).objectBytes, 90)
        yield* store.set(id, { objectBytes: 10 })
        yield* store.take(id, -40, 100)
        assert.strictEqual((yield* used(id)).objectBytes, 50)
        yield* store.take(id, -4000, 100)
        assert.strictEqual((yield* used(id)).objectBytes, 0)
      }))

    it.effect("counts registrations of each product by the minute", () =>
      Effect.gen(function*() {
        const store = yield* QuotaStore
        const { id } = yield* insertProject
        const [{ productKey }, other] = [yield* insertProductOf(newProduct(id)), yield* insertProductOf(newProduct(id))]
        const all = yield* Effect.all(Array.from({ length: 8 }, () => store.register(id, productKey, 7, 3)), {
          concurrency: "unbounded"
        })
        assert.strictEqual(all.filter(Option.isNone).length, 3)
        assert.deepStrictEqual(yield* store.register(id, productKey, 7, 3), Option.some(3))
        // A leaked secret of one product stops no other.
        assert.deepStrictEqual(yield* store.register(id, other.productKey, 7, 3), Option.none())
        // A node whose clock is behind does not begin the minute before again.
        assert.deepStrictEqual(yield* store.register(id, productKey, 6, 3), Option.some(3))
        assert.deepStrictEqual(yield* store.register(id, productKey, 8, 3), Option.none())
        // A clock that was an hour ahead has filled a minute that is to come.
        yield* Effect.repeat(store.register(id, productKey, 68, 3), { times: 2 })
        assert.deepStrictEqual(yield* store.register(id, productKey, 68, 3), Option.some(3))
        assert.deepStrictEqual(yield* store.register(id, productKey, 8, 3), Option.none())
        yield* store.set(id, { registrationsPerMinute: 0 })
        assert.deepStrictEqual(yield* store.register(id, productKey, 9, 3), Option.some(0))
        assert.deepStrictEqual(yield* store.register(id, ProductKey.make(unique("missing")), 9, 3), Option.some(0))
      }))
  })
