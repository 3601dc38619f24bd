import { ObjectStore, ProjectId } from "@device-cloud/core"
import { FileObjectStore, MemoryObjectStore } from "@device-cloud/platform-node"
import { ObjectStoreContract } from "@device-cloud/testing/contracts"
import { assert, it } from "@effect/vitest"
import { Cause, Context, Effect, Layer, Option, Stream } from "effect"
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { mayMount, smallDisk } from "../../../vitest.disks.ts"

const temporary = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-objects-"))),
  (directory) => Effect.promise(() => rm(directory, { recursive: true }))
)

ObjectStoreContract.suite(
  "files",
  Layer.unwrap(Effect.map(temporary, (directory) => FileObjectStore.layer({ directory })))
)

ObjectStoreContract.suite("memory", MemoryObjectStore.layer)

it.effect("what a crash has left half-written is gone at the next start, the rest is there", () =>
  Effect.gen(function*() {
    const directory = yield* temporary
    const open = Layer.build(Layer.fresh(FileObjectStore.layer({ directory })))
    const draft = {
      objectId: "a".repeat(32),
      projectId: ProjectId.make("project"),
      fileName: "a.bin",
      createdAt: 1
    }
    const written = yield* Effect.flatMap(
      ObjectStore,
      (store) => store.write(draft, Stream.succeed(Buffer.from("bytes")), 10)
    ).pipe(Effect.provide(yield* open))
    const half = join(directory, ".uploads", "b".repeat(32))
    yield* Effect.promise(() => mkdir(half))
    yield* Effect.promise(() => writeFile(join(half, "content"), "half"))
    const found = yield* Effect.flatMap(ObjectStore, (store) => store.find(draft.objectId)).pipe(
      Effect.provide(yield* open)
    )
    assert.deepStrictEqual(found, Option.some(written))
    assert.deepStrictEqual(yield* Effect.promise(() => readdir(join(directory, ".uploads"))), [])
  }))

it.effect.skipIf(!mayMount)(
  "says of an upload that does not fit on the disk that it may be tried again",
  () =>
    Effect.gen(function*() {
      const store = yield* Effect.map(
        Layer.build(FileObjectStore.layer({ directory: yield* smallDisk(1) })),
        Context.get(ObjectStore)
      )
      const write = (name: string, size: number) => {
        const objectId = name.repeat(32)
        const draft = { objectId, projectId: ProjectId.make("project"), fileName: "a.bin", createdAt: 1 }
        return store.write(draft, Stream.succeed(Buffer.alloc(size)), size)
      }
      const error = yield* Effect.flip(write("a", 2 << 20))
      assert.deepInclude(error, { _tag: "StoreError", retryable: true })
      assert.strictEqual((yield* write("b", 1000)).size, 1000)
    })
)

it.effect("a directory that is not named is refused by name", () =>
  Effect.gen(function*() {
    const store = FileObjectStore.layer({ directory: undefined as never })
    const cause = yield* Effect.flip(Effect.sandbox(Layer.build(store)))
    assert.deepInclude(Cause.squash(cause), {
      name: "TypeError",
      message: "directory: expected the path of a directory, not undefined"
    })
  }))
