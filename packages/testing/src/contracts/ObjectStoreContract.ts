/**
 * The laws of `ObjectStore`.
 */
import {
  type ByteRange,
  type NewObject,
  ObjectStore,
  ObjectTooLarge,
  ProjectId,
  type StoredObject
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option, Stream } from "effect"
import { createHash, randomBytes } from "node:crypto"
import { detached } from "./Detached.ts"
import { epoch } from "./Samples.ts"

const newObject = (): NewObject => ({
  objectId: randomBytes(16).toString("hex"),
  projectId: ProjectId.make("project"),
  fileName: "firmware.bin",
  createdAt: epoch
})

const chunksOf = (bytes: Buffer, size: number): ReadonlyArray<Uint8Array> =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size))

const readAll = (object: StoredObject, range?: ByteRange) =>
  Effect.flatMap(
    ObjectStore,
    (store) => Effect.map(Stream.runCollect(store.read(object, range)), (chunks) => Buffer.concat([...chunks]))
  )

export const suite = <E>(name: string, stores: Layer.Layer<ObjectStore, E>): void =>
  layer(detached(stores))(`ObjectStore: ${name}`, (it) => {
    it.effect("keeps what was written, whole and in parts", () =>
      Effect.gen(function*() {
        const store = yield* ObjectStore
        const bytes = randomBytes(1_000_003)
        const draft = newObject()
        const object = yield* store.write(draft, Stream.fromIterable(chunksOf(bytes, 65_536)), bytes.length)
        const digest = (algorithm: string) => createHash(algorithm).update(bytes).digest("hex")
        const [md5, sha256] = [digest("md5"), digest("sha256")]
        assert.deepStrictEqual(object, { ...draft, size: bytes.length, md5, sha256 })
        assert.deepStrictEqual(yield* store.find(draft.objectId), Option.some(object))
        assert.isTrue(bytes.equals(yield* readAll(object)))
        for (const [start, end] of [[0, 0], [65_535, 65_536], [10, 999_999], [1_000_002, 1_000_002]] as const) {
          assert.isTrue(bytes.subarray(start, end + 1).equals(yield* readAll(object, { start, end })))
        }
        assert.isTrue(yield* store.remove(draft.objectId))
        assert.isTrue(Option.isNone(yield* store.find(draft.objectId)))
        assert.isFalse(yield* store.remove(draft.objectId))
      }))

    it.effect("an object is removed once, however many remove it at the same time", () =>
      Effect.gen(function*() {
        const store = yield* ObjectStore
        const { objectId } = yield* store.write(newObject(), Stream.succeed(Buffer.from("bytes")), 10)
        const removed = yield* Effect.all(Array.from({ length: 8 }, () => store.remove(objectId)), {
          concurrency: "unbounded"
        })
        assert.strictEqual(removed.filter((isRemoved) => isRemoved).length, 1)
      }))

    it.effect("keeps an object without bytes", () =>
      Effect.gen(function*() {
        const store = yield* ObjectStore
        const object = yield* store.write(newObject(), Stream.empty, 10)
        assert.deepInclude(object, { size: 0, md5: "d41d8cd98f00b204e9800998ecf8427e" })
        assert.strictEqual((yield* readAll(object)).length, 0)
      }))

    it.effect("keeps objects apart, and has none that is being written", () =>
      Effect.gen(function*() {
        const store = yield* ObjectStore
        const [one, other] = [newObject(), newObject()]
        const [bytes, otherBytes] = [randomBytes(600_000), randomBytes(600_000)]
        const first = yield* store.write(one, Stream.fromIterable(chunksOf(bytes, 65_536)), bytes.length)
        const isMissing = Effect.gen(function*() {
          assert.isTrue(Option.isNone(yield* store.find(other.objectId)))
          assert.isFalse(yield* store.remove(other.objectId))
        })
        const content = Stream.fromIterable(chunksOf(otherBytes, 300_000)).pipe(Stream.tap(() => isMissing))
        const second = yield* store.write(other, content, otherBytes.length)
        assert.deepStrictEqual(yield* store.find(one.objectId), Option.some(first))
        assert.isTrue(bytes.equals(yield* readAll(first)))
        assert.isTrue(otherBytes.equals(yield* readAll(second)))
      }))

    it.effect("leaves nothing of content that is too large or breaks off", () =>
      Effect.gen(function*() {
        const store = yield* ObjectStore
        const [large, broken] = [newObject(), newObject()]
        const chunks = Stream.fromIterable(chunksOf(Buffer.alloc(101), 10))
        assert.deepStrictEqual(
          yield* Effect.flip(store.write(large, chunks, 100)),
          new ObjectTooLarge({ maximum: 100 })
        )
        assert.strictEqual(
          yield* Effect.flip(store.write(broken, Stream.concat(chunks, Stream.fail("broken off")), 1000)),
          "broken off"
        )
        assert.isTrue(Option.isNone(yield* store.find(large.objectId)))
        assert.isTrue(Option.isNone(yield* store.find(broken.objectId)))
      }))

    it.effect("knows nothing of ids that it has not been given", () =>
      Effect.gen(function*() {
        const store = yield* ObjectStore
        for (const id of ["", "..", "../../etc/passwd", "a".repeat(32), "x/y", ".uploads", "%2e%2e", "a\0b"]) {
          assert.isTrue(Option.isNone(yield* store.find(id)), id)
          assert.isFalse(yield* store.remove(id), id)
        }
      }))
  })
