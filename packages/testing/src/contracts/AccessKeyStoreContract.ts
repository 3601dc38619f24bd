/**
 * The laws of `AccessKeyStore`.
 */
import {
  type AccessKey,
  AccessKeyStore,
  defaultProjectId,
  type DeviceCloud,
  ProjectId,
  ProjectStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import { assertPages, epoch, insertProject, newProject, unique } from "./Samples.ts"

/** A key of a project. */
export const newKey = (projectId: ProjectId, fields: Partial<AccessKey> = {}): AccessKey => ({
  id: unique(""),
  projectId,
  name: "Deployment",
  role: "operator",
  hash: "a".repeat(64),
  createdAt: epoch,
  expiresAt: epoch + 86_400_000,
  scopes: {},
  addresses: null,
  createdBy: null,
  lastUsedAt: null,
  ...fields
})

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`AccessKeyStore: ${name}`, (it) => {
    it.effect("keeps what was inserted, with and without expiry", () =>
      Effect.gen(function*() {
        const store = yield* AccessKeyStore
        const { id: projectId } = yield* insertProject
        const narrow = newKey(projectId, {
          scopes: { products: ["a", "b"], actions: ["devices:read"] },
          addresses: ["192.0.2.0/24", "2001:db8::/32"]
        })
        for (const key of [newKey(projectId), newKey(projectId, { expiresAt: null }), narrow]) {
          assert.strictEqual(yield* store.insert(key), "inserted")
          assert.deepStrictEqual(yield* store.find(key.id), Option.some(key))
        }
      }))

    it.effect("refuses a key for a project that does not exist", () =>
      Effect.gen(function*() {
        const store = yield* AccessKeyStore
        const key = newKey(ProjectId.make("missing"))
        assert.strictEqual(yield* store.insert(key), "no-project")
        assert.isTrue(Option.isNone(yield* store.find(key.id)))
      }))

    it.effect("lists and removes the keys of the given project only", () =>
      Effect.gen(function*() {
        const store = yield* AccessKeyStore
        const [mine, theirs] = [yield* insertProject, yield* insertProject]
        const older = newKey(mine.id)
        const newer = newKey(mine.id, { createdAt: epoch + 1 })
        const foreign = newKey(theirs.id)
        for (const key of [older, newer, foreign]) yield* store.insert(key)
        yield* assertPages((page) => store.list(mine.id, page), [newer, older])
        assert.deepStrictEqual(yield* store.remove(mine.id, foreign.id), [])
        assert.isTrue(Option.isSome(yield* store.find(foreign.id)))
        assert.deepStrictEqual(yield* store.remove(mine.id, older.id), [older.id])
        assert.deepStrictEqual(yield* store.remove(mine.id, older.id), [])
      }))

    it.effect("removes a key alone, or with all keys that come from it", () =>
      Effect.gen(function*() {
        const store = yield* AccessKeyStore
        const { id: projectId } = yield* insertProject
        const root = newKey(projectId)
        const child = newKey(projectId, { createdBy: root.id })
        const grandchild = newKey(projectId, { createdBy: child.id })
        const other = newKey(projectId)
        for (const key of [root, child, grandchild, other]) yield* store.insert(key)
        const kept = newKey(projectId, { createdBy: other.id })
        yield* store.insert(kept)
        assert.deepStrictEqual(yield* store.remove(projectId, other.id), [other.id])
        assert.strictEqual(yield* store.insert(newKey(projectId, { createdBy: other.id })), "no-creator")
        const removed = yield* store.remove(projectId, root.id, { cascade: true })
        assert.sameMembers([...removed], [root.id, child.id, grandchild.id])
        const { items } = yield* store.list(projectId, { page: 1, pageSize: 10 })
        assert.deepStrictEqual(items, [{ ...kept, createdBy: null }])
      }))

    it.effect("a key that is removed alone leaves its keys to its creator, so that they still come from it", () =>
      Effect.gen(function*() {
        const store = yield* AccessKeyStore
        const { id: projectId } = yield* insertProject
        const root = newKey(projectId)
        const child = newKey(projectId, { createdBy: root.id })
        const grandchild = newKey(projectId, { createdBy: child.id })
        for (const key of [root, child, grandchild]) yield* store.insert(key)
        const { id: elsewhere } = yield* insertProject
        yield* store.remove(elsewhere, child.id)
        assert.deepStrictEqual(yield* store.find(grandchild.id), Option.some(grandchild))
        assert.deepStrictEqual(yield* store.remove(projectId, child.id, { cascade: false }), [child.id])
        assert.deepStrictEqual(yield* store.find(grandchild.id), Option.some({ ...grandchild, createdBy: root.id }))
        assert.sameMembers([...yield* store.remove(projectId, root.id, { cascade: true })], [root.id, grandchild.id])
      }))

    it.effect("removes what comes from a key that is gone, in all projects, and no owner", () =>
      Effect.gen(function*() {
        const store = yield* AccessKeyStore
        const [one, other] = [yield* insertProject, yield* insertProject]
        const root = newKey(one.id)
        const child = newKey(one.id, { createdBy: root.id })
        const grandchild = newKey(other.id, { createdBy: child.id })
        const bystander = newKey(other.id)
        const owner = newKey(defaultProjectId, { role: "owner", createdBy: child.id })
        yield* (yield* ProjectStore).insert({ ...newProject(), id: defaultProjectId })
        for (const key of [root, child, grandchild, bystander]) yield* store.insert(key)
        yield* store.replaceOwner(owner)
        assert.sameMembers([...yield* store.removeDescendants(root.id)], [child.id, grandchild.id])
        assert.deepStrictEqual(yield* store.removeDescendants(root.id), [])
        for (const cascade of [false, true]) {
          assert.deepStrictEqual(yield* store.remove(defaultProjectId, owner.id, { cascade }), [])
        }
        for (const key of [root, bystander, owner]) assert.deepStrictEqual(yield* store.find(key.id), Option.some(key))
      }))

    it.effect("leaves no key behind that is created while its creator is removed with all that come from it", () =>
      Effect.gen(function*() {
        const store = yield* AccessKeyStore
        const { id: projectId } = yield* insertProject
        for (let round = 0; round < 5; round++) {
          const root = newKey(projectId)
          yield* store.insert(root)
          yield* Effect.all([
            ...Array.from({ length: 5 }, () => store.insert(newKey(projectId, { createdBy: root.id }))),
            store.remove(projectId, root.id, { cascade: true }),
            ...Array.from({ length: 5 }, () => store.insert(newKey(projectId, { createdBy: root.id })))
          ], { concurrency: "unbounded" })
          assert.strictEqual((yield* store.list(projectId, { page: 1, pageSize: 10 })).total, 0)
        }
      }))

    it.effect("notes the latest use of each key", () =>
      Effect.gen(function*() {
        const store = yield* AccessKeyStore
        const { id: projectId } = yield* insertProject
        const [used, idle] = [newKey(projectId), newKey(projectId)]
        for (const key of [used, idle]) yield* store.insert(key)
        yield* store.markUsed([{ id: "missing", at: epoch }, { id: used.id, at: epoch + 5 }])
        yield* store.markUsed([{ id: used.id, at: epoch + 3 }])
        yield* store.markUsed([])
        assert.deepStrictEqual(yield* store.find(used.id), Option.some({ ...used, lastUsedAt: epoch + 5 }))
        yield* store.markUsed([{ id: used.id, at: epoch + 7 }])
        assert.deepStrictEqual(yield* store.find(used.id), Option.some({ ...used, lastUsedAt: epoch + 7 }))
        assert.deepStrictEqual(yield* store.find(idle.id), Option.some(idle))
      }))

    it.effect("has exactly one owner, also when several are set at once", () =>
      Effect.gen(function*() {
        const store = yield* AccessKeyStore
        yield* (yield* ProjectStore).insert({ ...newProject(), id: defaultProjectId })
        const owners = Array.from({ length: 5 }, () => newKey(defaultProjectId, { role: "owner" }))
        yield* Effect.forEach(owners, store.replaceOwner, { concurrency: "unbounded" })
        yield* store.replaceOwner(owners[0]!)
        const { items } = yield* store.list(defaultProjectId, { page: 1, pageSize: 100 })
        assert.deepStrictEqual(items.filter(({ role }) => role === "owner"), [owners[0]!])
        // One that is set again stays as it is.
        yield* store.replaceOwner({ ...owners[0]!, createdAt: epoch + 1 })
        assert.deepStrictEqual(yield* store.find(owners[0]!.id), Option.some(owners[0]!))
      }))
  })
