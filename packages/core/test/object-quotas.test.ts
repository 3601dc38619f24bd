import { Objects, ObjectStore, ProjectId, ProjectStore, QuotaStore, StoreError } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Option, Stream } from "effect"
import { TestClock } from "effect/testing"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { storages } from "../../../vitest.storages.ts"

const files = Layer.unwrap(
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-objects-"))),
      (directory) => Effect.promise(() => rm(directory, { recursive: true }))
    ),
    (directory) => PlatformNode.FileObjectStore.layer({ directory })
  )
)

const mebibyte = 1024 * 1024

const newProject = Effect.fnUntraced(function*(name: string, objectBytes: number) {
  const id = ProjectId.make(name)
  yield* (yield* ProjectStore).insert({ id, name, createdAt: 1 })
  const quotas = yield* QuotaStore
  yield* quotas.set(id, { objectBytes })
  const used = Effect.map(quotas.state(id), (state) => Option.getOrThrow(state).used.objectBytes)
  return { id, used }
})

/** Waits until the project has no bytes. */
const returned = (used: Effect.Effect<number, StoreError>) =>
  Effect.repeat(Effect.andThen(TestClock.adjust("1 second"), used), { until: (bytes) => bytes === 0 })

for (const [name, stores] of storages) {
  const objects = Objects.layer.pipe(
    Layer.provideMerge(Layer.mergeAll(files, stores)),
    Layer.provide(PlatformNode.layer)
  )
  layer(objects)(`bytes of objects on ${name}`, (it) => {
    const bytes = Stream.succeed(Buffer.alloc(60))

    it.effect("the bytes of an object come back once, however many remove it", () =>
      Effect.gen(function*() {
        const objects = yield* Objects
        const { id, used } = yield* newProject("removers", 1000)
        yield* objects.upload(id, "kept.bin", bytes)
        const { objectId } = yield* objects.upload(id, "removed.bin", bytes)
        assert.strictEqual(yield* used, 120)
        const exits = yield* Effect.all(Array.from({ length: 8 }, () => Effect.exit(objects.remove(id, objectId))), {
          concurrency: "unbounded"
        })
        assert.strictEqual(exits.filter(Exit.isSuccess).length, 1)
        assert.strictEqual(yield* used, 60)
      }))

    it.effect("an empty object needs no room", () =>
      Effect.gen(function*() {
        const objects = yield* Objects
        const { id, used } = yield* newProject("full", 60)
        yield* objects.upload(id, "full.bin", bytes)
        assert.strictEqual((yield* objects.upload(id, "empty.bin", Stream.empty)).size, 0)
        const refused = yield* Effect.flip(objects.upload(id, "byte.bin", Stream.succeed(Buffer.alloc(1))))
        assert.deepInclude(refused, { _tag: "QuotaExceeded", quota: "objectBytes", limit: 60 })
        assert.strictEqual(yield* used, 60)
        yield* (yield* QuotaStore).set(id, { objectBytes: 59 })
        const lower = yield* Effect.flip(objects.upload(id, "empty.bin", Stream.empty))
        assert.deepInclude(lower, { _tag: "QuotaExceeded", quota: "objectBytes", limit: 59 })
      }))

    it.effect("an object that was never counted gives nothing back", () =>
      Effect.gen(function*() {
        const objects = yield* Objects
        const { id, used } = yield* newProject("old", 1000)
        yield* objects.upload(id, "kept.bin", bytes)
        const objectId = "o".repeat(32)
        const draft = { objectId, projectId: id, fileName: "old.bin", createdAt: 1 }
        yield* (yield* ObjectStore).write(draft, bytes, 1000)
        yield* objects.remove(id, objectId)
        assert.strictEqual(yield* used, 60)
      }))

    it.effect("an upload gives its bytes back if the store of objects throws, also when it removes what is left", () =>
      Effect.gen(function*() {
        const throws = () => {
          throw new Error("it throws")
        }
        const store = ObjectStore.of({
          ...yield* ObjectStore,
          write: (_, content) => Effect.andThen(Stream.runDrain(content), Effect.sync(throws)),
          remove: throws
        })
        const { id, used } = yield* newProject("throwers", 4 * mebibyte)
        const exit = yield* Effect.flatMap(
          Objects,
          (objects) => Effect.exit(objects.upload(id, "lost.bin", Stream.succeed(Buffer.alloc(2 * mebibyte))))
        ).pipe(
          Effect.provide(
            Layer.fresh(Objects.layer).pipe(
              Layer.provide(Layer.succeed(ObjectStore, store)),
              Layer.provide(PlatformNode.layer)
            )
          )
        )
        assert.isTrue(Exit.hasDies(exit))
        assert.strictEqual(yield* used, 0)
      }))

    it.effect("an upload stops when others have used the room meanwhile, and gives its bytes back", () =>
      Effect.gen(function*() {
        const objects = yield* Objects
        const { id, used } = yield* newProject("uploaders", 4 * mebibyte)
        /** Four mebibytes, of which `pulled` have been read; it waits before that of the number `stop`. */
        const content = Effect.fnUntraced(function*(stop: number) {
          const state = { pulled: 0, waits: yield* Deferred.make<void>(), goes: yield* Deferred.make<void>() }
          const chunks = Stream.range(0, 3, 1).pipe(
            Stream.mapEffect((i) =>
              Effect.gen(function*() {
                if (i === stop) {
                  yield* Deferred.succeed(state.waits, undefined)
                  yield* Deferred.await(state.goes)
                }
                state.pulled++
                return Buffer.alloc(mebibyte)
              })
            )
          )
          return { state, chunks }
        })
        const [refused, stored] = [yield* content(0), yield* content(3)]
        const first = yield* Effect.forkChild(Effect.flip(objects.upload(id, "refused.bin", refused.chunks)))
        yield* Deferred.await(refused.state.waits)
        const second = yield* Effect.forkChild(objects.upload(id, "stored.bin", stored.chunks))
        yield* Deferred.await(stored.state.waits)
        assert.strictEqual(yield* used, 3 * mebibyte)
        yield* Deferred.succeed(refused.state.goes, undefined)
        assert.deepInclude(yield* Fiber.join(first), { _tag: "QuotaExceeded", quota: "objectBytes" })
        assert.strictEqual(refused.state.pulled, 2)
        assert.strictEqual(yield* used, 3 * mebibyte)
        yield* Deferred.succeed(stored.state.goes, undefined)
        const { objectId } = yield* Fiber.join(second)
        assert.strictEqual(yield* used, 4 * mebibyte)
        assert.strictEqual((yield* Effect.flip(objects.upload(id, "more.bin", bytes)))._tag, "QuotaExceeded")
        yield* objects.remove(id, objectId)
        assert.strictEqual(yield* used, 0)
      }))

    /** Objects while nothing can be removed, and bytes cannot be given back `failures` times. */
    const duringOutage = Effect.fnUntraced(function*(failures: number, isRemoved: boolean) {
      const [store, quotas] = [yield* ObjectStore, yield* QuotaStore]
      const away = (operation: string) => Effect.fail(new StoreError({ operation, retryable: true, cause: "away" }))
      const outage = Layer.mergeAll(
        Layer.succeed(ObjectStore, { ...store, remove: isRemoved ? store.remove : () => away("ObjectStore.remove") }),
        Layer.succeed(QuotaStore, {
          ...quotas,
          take: (project, bytes, limit) =>
            Effect.suspend(() =>
              bytes < 0 && failures-- > 0 ? away("QuotaStore.take") : quotas.take(project, bytes, limit)
            )
        })
      )
      const context = yield* Layer.build(
        Layer.fresh(Objects.layer).pipe(Layer.provide(outage), Layer.provide(PlatformNode.layer))
      )
      return Context.get(context, Objects)
    })
    const broken = Stream.concat(Stream.succeed(Buffer.alloc(2 * mebibyte)), Stream.fail("broken"))

    it.effect("an upload that fails gives its bytes back while the store of objects is away", () =>
      Effect.gen(function*() {
        const objects = yield* duringOutage(0, false)
        const { id, used } = yield* newProject("objects-away", 4 * mebibyte)
        assert.strictEqual(yield* Effect.flip(objects.upload(id, "broken.bin", broken)), "broken")
        assert.strictEqual(yield* used, 0)
      }))

    it.effect("bytes that could not be given back come back when the storage is back", () =>
      Effect.gen(function*() {
        const { id, used } = yield* newProject("storage-away", 4 * mebibyte)
        const forUpload = yield* duringOutage(3, true)
        assert.strictEqual(yield* Effect.flip(forUpload.upload(id, "broken.bin", broken)), "broken")
        yield* returned(used)
        const forRemoval = yield* duringOutage(3, true)
        const { objectId } = yield* forRemoval.upload(id, "removed.bin", bytes)
        yield* forRemoval.remove(id, objectId)
        yield* returned(used)
      }))
  })
}
