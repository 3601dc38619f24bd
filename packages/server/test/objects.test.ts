/**
 * Every server of a cloud has the objects that one of them has taken.
 */
import { ObjectStore } from "@device-cloud/core"
import * as ObjectsS3 from "@device-cloud/objects-s3"
import { ownerKey } from "@device-cloud/testing/http"
import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, Option, Redacted } from "effect"
import { randomBytes } from "node:crypto"
import { mayMount, smallDisk } from "../../../vitest.disks.ts"
import { newDatabase } from "../../../vitest.storages.ts"
import * as S3TestServer from "../../../packages/objects-s3/test/S3TestServer.ts"
import { start, temporaryDirectory } from "./TestServer.ts"

const authorization = `Bearer ${ownerKey}`

/** Returns the path of the object. */
const upload = (http: string, bytes: Uint8Array<ArrayBuffer>) =>
  Effect.promise(async () => {
    const body = new FormData()
    body.append("file", new Blob([bytes]), "firmware.bin")
    const response = await fetch(`${http}/openapi/v1/oss`, { method: "POST", headers: { authorization }, body })
    const { data } = await response.json() as { readonly data: { readonly url: string } }
    return new URL(data.url).pathname
  })

const download = (address: string, range: string) =>
  Effect.promise(async () => {
    const response = await fetch(address, { headers: { range } })
    return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) }
  })

it.live.skipIf(!S3TestServer.isInstalled)(
  S3TestServer.named("objects lie in a bucket with OBJECTS=s3"),
  () =>
    Effect.gen(function*() {
      const bucket = yield* S3TestServer.start
      const { http } = yield* start({
        STORAGE: "memory",
        DATA_DIR: yield* temporaryDirectory,
        OBJECTS: "s3",
        S3_ENDPOINT: bucket.endpoint,
        S3_BUCKET: bucket.bucket,
        S3_ACCESS_KEY_ID: bucket.accessKeyId,
        S3_SECRET_ACCESS_KEY: Redacted.value(bucket.secretAccessKey)
      })
      const bytes = randomBytes(1000)
      const path = yield* upload(http, bytes)
      const part = yield* download(http + path, "bytes=10-19")
      assert.strictEqual(part.status, 206)
      assert.isTrue(part.bytes.equals(bytes.subarray(10, 20)))
      const [, , objectId = ""] = path.split("/")
      const stored = yield* Effect.flatMap(ObjectStore, (store) => store.find(objectId)).pipe(
        Effect.provide(ObjectsS3.layer(bucket))
      )
      assert.strictEqual(Option.getOrThrow(stored).size, bytes.length)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)

it.live.runIf(mayMount)(
  "an upload that is too large for the disk leaves room for the database",
  () =>
    Effect.gen(function*() {
      const { http } = yield* start({ DATA_DIR: yield* smallDisk(400) })
      yield* upload(http, randomBytes(1000))
      const statuses = yield* Effect.promise(async () => {
        const body = new FormData()
        body.append("file", new Blob([new Uint8Array(390 << 20)]), "firmware.bin")
        const uploaded = await fetch(`${http}/openapi/v1/oss`, { method: "POST", headers: { authorization }, body })
        const created = await fetch(`${http}/openapi/v1/mesh/networks`, { method: "POST", headers: { authorization } })
        return [uploaded.status, created.status]
      })
      assert.deepStrictEqual(statuses, [503, 200])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)

it.live("what one server has taken another has, and files from before are found", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const startOn = (dataDir: string, env: Readonly<Record<string, string>> = {}) =>
      start({
        DATA_DIR: dataDir,
        SECRETS_KEY: Buffer.alloc(32, 7).toString("base64"),
        DATABASE_URL: Redacted.value(url),
        ...env
      })
    const [one, two] = [yield* temporaryDirectory, yield* temporaryDirectory]
    const bytes = randomBytes(700_000)
    const part = { range: "bytes=262100-524300", bytes: bytes.subarray(262_100, 524_301) }

    const former = yield* Effect.scoped(
      Effect.flatMap(startOn(one, { OBJECTS: "files" }), ({ http }) => upload(http, bytes))
    )
    const { http } = yield* startOn(one)
    const other = yield* startOn(two)
    const current = yield* upload(http, bytes)
    for (const address of [http + former, http + current, other.http + current]) {
      const { bytes, status } = yield* download(address, part.range)
      assert.strictEqual(status, 206)
      assert.isTrue(bytes.equals(part.bytes))
    }
    for (const [path, status] of [[current, 200], [former, 404]] as const) {
      const removed = yield* Effect.promise(() =>
        fetch(other.http + path, { method: "DELETE", headers: { authorization } })
      )
      assert.strictEqual(removed.status, status)
    }
    assert.strictEqual((yield* download(http + current, part.range)).status, 404)
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
