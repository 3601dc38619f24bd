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
import { epoch, insertProject, newProject, unique } from "./Samples.ts"

const newKey = (projectId: ProjectId, fields: Partial<AccessKey> = {}): AccessKey => ({
  id: unique(""),
  projectId,
  name: "Deployment",
  role: "operator",
  hash: "a".repeat(64),
  createdAt: epoch,
  expiresAt: epoch + 86_400_000,
  ...fields
})

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(stores)(`AccessKeyStore: ${name}`, (it) => {
    it.effect("keeps what was inserted, with and without expiry", () =>
      Effect.gen(function*() {
        const store = yield* AccessKeyStore
        const { id: projectId } = yield* insertProject
        for (const key of [newKey(projectId), newKey(projectId, { expiresAt: null })]) {
          assert.isTrue(yield* store.insert(key))
          assert.deepStrictEqual(yield* store.find(key.id), Option.some(key))
        }
      }))

    it.effect("refuses a key for a project that does not exist", () =>
      Effect.gen(function*() {
        const store = yield* AccessKeyStore
        const key = newKey(ProjectId.make("missing"))
        assert.isFalse(yield* store.insert(key))
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
        assert.deepStrictEqual(yield* store.list(mine.id, { page: 1, pageSize: 10 }), {
          items: [newer, older],
          total: 2
        })
        assert.isFalse(yield* store.remove(mine.id, foreign.id))
        assert.isTrue(Option.isSome(yield* store.find(foreign.id)))
        assert.isTrue(yield* store.remove(mine.id, older.id))
        assert.isFalse(yield* store.remove(mine.id, older.id))
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
      }))
  })
