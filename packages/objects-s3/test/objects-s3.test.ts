import { ObjectStore, ProjectId, StoreError } from "@device-cloud/core"
import * as ObjectsS3 from "@device-cloud/objects-s3"
import { ObjectStoreContract } from "@device-cloud/testing/contracts"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Effect, Exit, Layer, Option, Redacted, Scope, Stream } from "effect"
import { randomBytes } from "node:crypto"
import { afterAll, beforeAll } from "vitest"
import * as S3TestServer from "./S3TestServer.ts"

const newObject = () => ({
  objectId: randomBytes(16).toString("hex"),
  projectId: ProjectId.make("project"),
  fileName: "firmware.bin",
  createdAt: 0
})

const storeOf = (options: ObjectsS3.BucketOptions) =>
  Effect.map(Layer.build(Layer.fresh(ObjectsS3.layer(options))), Context.get(ObjectStore))

describe.skipIf(!S3TestServer.isInstalled)(S3TestServer.named("objects on S3"), () => {
  const scope = Scope.makeUnsafe()
  let server: ObjectsS3.BucketOptions
  beforeAll(async () => {
    server = await Effect.runPromise(Scope.provide(S3TestServer.start, scope))
  })
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  // The server has the real time.
  ObjectStoreContract.suite(
    "S3",
    Layer.suspend(() => ObjectsS3.layer(server)).pipe(
      Layer.provide(Layer.sync(Clock.Clock, () => Clock.Clock.defaultValue()))
    )
  )

  it.live("another node has what one has stored in parts, whole and in ranges", () =>
    Effect.gen(function*() {
      const [one, two] = [yield* storeOf(server), yield* storeOf(server)]
      const mebibyte = 1024 * 1024
      const bytes = randomBytes(11 * mebibyte + 1)
      const chunks = Stream.fromIterable(
        Array.from({ length: 12 }, (_, i) => bytes.subarray(i * mebibyte, (i + 1) * mebibyte))
      )
      const draft = newObject()
      yield* one.write(draft, chunks, bytes.length)
      const found = Option.getOrThrow(yield* two.find(draft.objectId))
      const read = (range?: { readonly start: number; readonly end: number }) =>
        Effect.map(Stream.runCollect(two.read(found, range)), (chunks) => Buffer.concat([...chunks]))
      assert.isTrue(bytes.equals(yield* read()))
      const range = { start: 8 * mebibyte - 3, end: 9 * mebibyte + 3 }
      assert.isTrue(bytes.subarray(range.start, range.end + 1).equals(yield* read(range)))
      assert.isTrue(yield* two.remove(draft.objectId))
      assert.isTrue(Option.isNone(yield* one.find(draft.objectId)))
    }).pipe(Effect.scoped))

  it.live("a wrong secret is refused, and the failure does not tell the address of the object", () =>
    Effect.gen(function*() {
      const store = yield* storeOf({ ...server, secretAccessKey: Redacted.make("another") })
      const draft = newObject()
      const error = yield* Effect.flip(store.write(draft, Stream.succeed(Buffer.from("bytes")), 10))
      assert.instanceOf(error, StoreError)
      assert.isFalse(error.retryable)
      assert.include(String(error.cause), "403: SignatureDoesNotMatch")
      assert.notInclude(String(error.cause), draft.objectId)
    }).pipe(Effect.scoped))
})
