import { DeviceCloud, DeviceStore, Idempotency, KeyRing, ProductStore, WebhookKeyStore } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageSqlite from "@device-cloud/storage-sqlite"
import { insertDevice } from "@device-cloud/testing/contracts"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Option, Redacted } from "effect"
import { randomBytes } from "node:crypto"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { temporaryDirectory } from "../../../vitest.storages.ts"
import { Sqlite } from "../src/Sqlite.ts"

const newKey = () => randomBytes(32).toString("base64")

/** The stores in the file with these master keys; the first one seals. */
const storesWith = (filename: string, ...keys: ReadonlyArray<string>) =>
  Layer.fresh(
    StorageSqlite.layer({ filename }).pipe(
      Layer.provide(PlatformNode.NodeKeyRing.layerKeys(Redacted.make(keys.join(","))))
    )
  )

it.live("secrets in the file are sealed, those in stored responses, too, and follow the master key", () =>
  Effect.gen(function*() {
    const directory = yield* temporaryDirectory
    const filename = join(directory, "test.sqlite")
    const [first, second, third] = [newKey(), newKey(), newKey()]
    const webhookKeys = { current: "a-webhook-key-of-the-project", createdAt: 1, previous: null }

    const { device, product } = yield* Effect.gen(function*() {
      const inserted = yield* insertDevice
      yield* (yield* WebhookKeyStore).put(inserted.product.projectId, null, webhookKeys)
      return inserted
    }).pipe(Effect.provide(storesWith(filename, first)))

    const request = {
      projectId: product.projectId,
      key: "create-a-key",
      accessKey: Redacted.make("dck_caller"),
      text: "POST /access-keys {}"
    }
    const answer = { status: 200, body: `{"code":0,"data":{"key":"dck_made-for-the-caller"}}` }
    const once = (run: Effect.Effect<typeof answer>) =>
      Effect.flatMap(Idempotency, (idempotency) => idempotency.once(request, run)).pipe(
        Effect.provide(DeviceCloud.layer.pipe(
          Layer.provide(storesWith(filename, first)),
          Layer.provide(PlatformNode.layer)
        ))
      )
    yield* once(Effect.succeed(answer))
    assert.deepStrictEqual(yield* once(Effect.die("It ran before")), answer)

    const text = (yield* Effect.promise(() => readFile(filename))).toString("latin1")
    const { body } = answer
    for (
      const secret of [device.deviceSecret, product.productSecret, webhookKeys.current, body, "made-for-the-caller"]
    ) {
      assert.notInclude(text, secret)
    }
    for (const plain of [device.deviceId, request.key]) assert.include(text, plain)

    for (const keys of [[second, first], [second]]) {
      yield* Effect.gen(function*() {
        const detail = yield* (yield* DeviceStore).get(device.projectId, { deviceId: device.deviceId })
        assert.strictEqual(Option.getOrThrow(detail).device.deviceSecret, device.deviceSecret)
        const stored = yield* (yield* ProductStore).find(product.productKey)
        assert.strictEqual(Option.getOrThrow(stored).productSecret, product.productSecret)
        assert.deepStrictEqual(
          yield* (yield* WebhookKeyStore).get(product.projectId),
          Option.some(webhookKeys)
        )
      }).pipe(Effect.provide(storesWith(filename, ...keys)))
    }
    const refused = yield* Effect.flip(Effect.provide(Effect.void, storesWith(filename, third)))
    assert.strictEqual(refused._tag, "KeyRingError")
  }).pipe(Effect.scoped))

it.live("a data key opens after a start in which the ring replaced its master key", () =>
  Effect.gen(function*() {
    const filename = join(yield* temporaryDirectory, "test.sqlite")
    const [first, second, third] = [newKey(), newKey(), newKey()]
    const ringOf = (...keys: ReadonlyArray<string>) =>
      Effect.provide(
        Effect.service(KeyRing),
        Layer.fresh(PlatformNode.NodeKeyRing.layerKeys(Redacted.make(keys.join(","))))
      )
    const { product } = yield* Effect.provide(insertDevice, storesWith(filename, first))
    const { masterKeyId } = yield* ringOf(second)
    const replaced = Layer.succeed(KeyRing, { ...yield* ringOf(third, first), masterKeyId })
    yield* Effect.provide(
      Effect.void,
      Layer.fresh(StorageSqlite.layer({ filename }).pipe(Layer.provide(replaced)))
    )
    const stored = yield* Effect.provide(
      ProductStore.use(({ find }) => find(product.productKey)),
      storesWith(filename, third)
    )
    assert.strictEqual(Option.getOrThrow(stored).productSecret, product.productSecret)
  }).pipe(Effect.scoped))

it.live("a secret that does not open is left as it is when the master key is new, and opens when it is mended", () =>
  Effect.gen(function*() {
    const filename = join(yield* temporaryDirectory, "test.sqlite")
    const [first, second] = [newKey(), newKey()]
    const { product } = yield* Effect.provide(insertDevice, storesWith(filename, first))
    const change = (secret: string) =>
      Effect.provide(
        Sqlite.use((sql) =>
          sql.write("change", () => sql.run(`UPDATE product SET product_secret = ${secret} WHERE rowid = 1`))
        ),
        Layer.fresh(Sqlite.layer({ filename }))
      )
    yield* change("'x' || product_secret")
    yield* Effect.provide(Effect.void, storesWith(filename, second, first))
    yield* change("substr(product_secret, 2)")
    const stored = yield* Effect.provide(
      ProductStore.use(({ find }) => find(product.productKey)),
      storesWith(filename, second)
    )
    assert.strictEqual(Option.getOrThrow(stored).productSecret, product.productSecret)
  }).pipe(Effect.scoped))
