import { ObjectStore, ProjectId, StoreError } from "@device-cloud/core"
import * as ObjectsS3 from "@device-cloud/objects-s3"
import { ObjectStoreContract } from "@device-cloud/testing/contracts"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Clock, Context, Effect, Exit, Layer, Option, Redacted, Scope, Stream } from "effect"
import { randomBytes } from "node:crypto"
import { createServer, request as forward, type RequestListener, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll } from "vitest"
import * as S3TestServer from "./S3TestServer.ts"

const newObject = () => ({
  objectId: randomBytes(16).toString("hex"),
  projectId: ProjectId.make("project"),
  fileName: "firmware.bin",
  createdAt: 0
})

/** Passes requests on to the server while `admits` says so, and answers 503 to the others. `isCut`: whether nobody hears the answer. */
const proxyOf = (
  options: ObjectsS3.BucketOptions,
  admits: (method: string) => boolean,
  isCut: (method: string, url: string) => boolean = () => false
) =>
  Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const server = createServer((request, response) => {
        const { headers, method = "", url = "" } = request
        if (!admits(method)) return void response.writeHead(503).end()
        request.pipe(forward(`${options.endpoint}${url}`, { method, headers }, (answer) => {
          if (isCut(method, url)) answer.resume().on("end", () => response.destroy())
          else answer.pipe(response.writeHead(answer.statusCode!, answer.headers))
        }))
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  ).pipe(
    Effect.map((server) => ({ ...options, endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }))
  )

/** The address of a server of its own. */
const listening = (answer: RequestListener) =>
  Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const server = createServer(answer)
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  ).pipe(Effect.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`))

const storeOf = (options: ObjectsS3.BucketOptions) =>
  Effect.map(Layer.build(Layer.fresh(ObjectsS3.layer(options))), Context.get(ObjectStore))

const bucket = {
  endpoint: "http://127.0.0.1:9000",
  bucket: "objects",
  accessKeyId: "cloud",
  secretAccessKey: Redacted.make("secret")
}

it.effect.each([
  ["endpoint", { ...bucket, endpoint: "localhost:9000" }],
  ["bucket", { ...bucket, bucket: undefined }],
  ["accessKeyId", { ...bucket, accessKeyId: "" }],
  ["secretAccessKey", { ...bucket, secretAccessKey: "secret" }],
  ["secretAccessKey", { ...bucket, secretAccessKey: Redacted.make(undefined) }]
])("%s that is none is refused by name", ([name, options]) =>
  Effect.gen(function*() {
    // @ts-expect-error for those that do not check types
    const cause = yield* Effect.flip(Effect.sandbox(Layer.build(ObjectsS3.layer(options))))
    const error = Cause.squash(cause)
    assert.instanceOf(error, TypeError)
    assert.match((error as TypeError).message, new RegExp(`^${name}: expected `))
  }))

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

  it.live("an object can be removed again when the service went away half way", () =>
    Effect.gen(function*() {
      let deletions = 1
      const store = yield* storeOf(yield* proxyOf(server, (method) => method !== "DELETE" || deletions-- > 0))
      const draft = newObject()
      const object = yield* store.write(draft, Stream.succeed(Buffer.from("bytes")), 10)
      assert.instanceOf(yield* Effect.flip(store.remove(draft.objectId)), StoreError)
      deletions = Number.POSITIVE_INFINITY
      assert.isTrue(yield* store.remove(draft.objectId))
      assert.isFalse(yield* store.remove(draft.objectId))
      assert.include(String((yield* Effect.flip(Stream.runDrain(store.read(object)))).cause), "gone")
    }).pipe(Effect.scoped))

  it.live("a write leaves nothing when the service has stored everything and its answer is lost", () =>
    Effect.gen(function*() {
      const isCut = (method: string, url: string) => method === "PUT" && url.endsWith("/object.json")
      const store = yield* storeOf(yield* proxyOf(server, () => true, isCut))
      const draft = newObject()
      const error = yield* Effect.flip(store.write(draft, Stream.succeed(Buffer.from("bytes")), 10))
      assert.instanceOf(error, StoreError)
      assert.isTrue(Option.isNone(yield* (yield* storeOf(server)).find(draft.objectId)))
    }).pipe(Effect.scoped))

  it.live("the clock of the cloud may be an hour ahead or behind", () =>
    Effect.gen(function*() {
      for (const ahead of [3_600_000, -3_600_000]) {
        const now = () => Date.now() + ahead
        const store = yield* Effect.updateService(storeOf(server), Clock.Clock, (clock) =>
          Object.assign(Object.create(clock) as Clock.Clock, {
            currentTimeMillisUnsafe: now,
            currentTimeMillis: Effect.sync(now)
          }))
        const object = yield* store.write(newObject(), Stream.succeed(Buffer.from("bytes")), 10)
        const bytes = yield* Stream.runCollect(store.read(object))
        assert.strictEqual(Buffer.concat([...bytes]).toString(), "bytes")
      }
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

  it.live("an object is not said to be gone by a proxy that does not find the service", () =>
    Effect.gen(function*() {
      const proxy = yield* listening((_, response) => response.writeHead(404).end("<html>default backend"))
      const store = yield* storeOf({ ...server, endpoint: proxy })
      const { objectId } = newObject()
      for (const call of [Effect.asVoid(store.find(objectId)), Effect.asVoid(store.remove(objectId))]) {
        const error = yield* Effect.flip(call)
        assert.isTrue(error.retryable)
        assert.include(String(error.cause), "404")
      }
    }).pipe(Effect.scoped))

  it.live("a page that a proxy answers in the place of the service is no object", () =>
    Effect.gen(function*() {
      const proxy = yield* listening((_, response) => response.writeHead(200).end("<html>under maintenance"))
      const store = yield* storeOf({ ...server, endpoint: proxy })
      const error = yield* Effect.flip(store.find(newObject().objectId))
      assert.isTrue(error.retryable)
      assert.strictEqual(error.cause, "The object storage answers no JSON")
    }).pipe(Effect.scoped))

  it.live("a redirect is a failure that is named", () =>
    Effect.gen(function*() {
      const redirecting = yield* listening((request, response) => {
        response.writeHead(307, { location: `${server.endpoint}${request.url}` })
        response.end("<Error><Code>TemporaryRedirect</Code></Error>")
      })
      const store = yield* storeOf({ ...server, endpoint: redirecting })
      const draft = newObject()
      const calls = [
        Effect.asVoid(store.write(draft, Stream.succeed(Buffer.from("bytes")), 10)),
        Effect.asVoid(store.find(draft.objectId))
      ]
      for (const call of calls) {
        assert.include(String((yield* Effect.flip(call)).cause), "307: TemporaryRedirect")
      }
    }).pipe(Effect.scoped))

  it.live("a bucket that is not there is a failure: its objects are not said to be gone", () =>
    Effect.gen(function*() {
      const store = yield* storeOf({ ...server, bucket: "another" })
      const { objectId } = newObject()
      for (const call of [Effect.asVoid(store.find(objectId)), Effect.asVoid(store.remove(objectId))]) {
        assert.include(String((yield* Effect.flip(call)).cause), "404: NoSuchBucket")
      }
    }).pipe(Effect.scoped))
})
