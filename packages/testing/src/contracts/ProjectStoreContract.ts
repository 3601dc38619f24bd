/**
 * The laws of `ProjectStore`.
 */
import { AccessKeyStore, type DeviceCloud, ProductStore, ProjectId, ProjectStore } from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import { epoch, insertProject, newProduct, newProject, unique } from "./Samples.ts"

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`ProjectStore: ${name}`, (it) => {
    it.effect("keeps what was inserted", () =>
      Effect.gen(function*() {
        const store = yield* ProjectStore
        const project = newProject()
        assert.isTrue(yield* store.insert(project))
        assert.deepStrictEqual(yield* store.get(project.id), Option.some(project))
      }))

    it.effect("does not overwrite a project", () =>
      Effect.gen(function*() {
        const store = yield* ProjectStore
        const project = yield* insertProject
        assert.isFalse(yield* store.insert({ ...project, name: "Another" }))
        assert.deepStrictEqual(yield* store.get(project.id), Option.some(project))
      }))

    it.effect("lists newest first, the later one first among the same instant", () =>
      Effect.gen(function*() {
        const store = yield* ProjectStore
        const late = { ...newProject(), createdAt: epoch + 2_000_000 }
        const first = { ...newProject(), createdAt: epoch + 1_000_000 }
        const second = { ...newProject(), createdAt: epoch + 1_000_000 }
        for (const project of [late, first, second]) yield* store.insert(project)
        const { items } = yield* store.list({ page: 1, pageSize: 3 })
        assert.deepStrictEqual(items, [late, second, first])
      }))

    it.effect("removes a project together with its access keys", () =>
      Effect.gen(function*() {
        const store = yield* ProjectStore
        const keys = yield* AccessKeyStore
        const project = yield* insertProject
        const other = yield* insertProject
        const [id, otherId] = [unique(""), unique("")]
        const key = {
          name: "k",
          role: "viewer",
          hash: "",
          createdAt: epoch,
          expiresAt: null,
          scopes: {},
          addresses: null,
          createdBy: null,
          lastUsedAt: null
        } as const
        yield* keys.insert({ ...key, id, projectId: project.id })
        yield* keys.insert({ ...key, id: otherId, projectId: other.id })
        assert.strictEqual(yield* store.remove(project.id), "removed")
        assert.isTrue(Option.isNone(yield* store.get(project.id)))
        assert.isTrue(Option.isNone(yield* keys.find(id)))
        assert.isTrue(Option.isSome(yield* keys.find(otherId)))
      }))

    it.effect("keeps a project that has products, and says when there is none", () =>
      Effect.gen(function*() {
        const store = yield* ProjectStore
        const project = yield* insertProject
        yield* (yield* ProductStore).insert(newProduct(project.id))
        assert.strictEqual(yield* store.remove(project.id), "has-products")
        assert.isTrue(Option.isSome(yield* store.get(project.id)))
        assert.strictEqual(yield* store.remove(ProjectId.make("missing")), "not-found")
      }))
  })
