import { ownerKey } from "@device-cloud/testing/http"
import { MqttDevice } from "@device-cloud/testing/mqtt"
import { assert } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { stat } from "node:fs/promises"
import { join } from "node:path"
import { newEmptyDatabase } from "../../../vitest.storages.ts"
import {
  broker,
  call,
  counterOf,
  createDevice,
  live,
  postWithoutEnd,
  startWith,
  temporaryDirectory,
  untilStatus
} from "./TestServer.ts"

live(
  "keeps its data, its key and its certificate over a restart on the embedded database",
  Effect.gen(function*() {
    const dataDir = yield* temporaryDirectory
    const first = yield* startWith({ DATA_DIR: dataDir })
    const key = first.adminKey!
    for (const file of ["admin-key", "secrets-key"]) {
      assert.strictEqual((yield* Effect.promise(() => stat(join(dataDir, file)))).mode & 0o777, 0o600)
    }
    const device = yield* createDevice(first.http, key)
    const to = yield* broker(first, dataDir)
    const posts = yield* postWithoutEnd(yield* MqttDevice.connectTo(to, device))
    yield* posts.progress(200)
    yield* first.child.kill()
    assert.strictEqual(yield* first.child.exitCode, 0)

    const second = yield* startWith({ DATA_DIR: dataDir })
    assert.strictEqual(second.adminKey, undefined)
    assert.isAtLeast(yield* counterOf(second, device.id, key), yield* posts.acknowledged)
    assert.strictEqual(
      (yield* call(second.http, "GET", `/things/${device.id}/status`, undefined, key)).data.status,
      "offline"
    )
    const again = yield* broker(second, dataDir)
    assert.strictEqual(again.ca, to.ca)
    assert.strictEqual(yield* MqttDevice.connackFrom(again, device), 0)

    const refused = yield* Effect.flip(startWith({ DATA_DIR: dataDir }))
    assert.strictEqual(refused._tag, "ServerEnded")
    assert.include(refused.message, "Another server uses")
  })
)

live(
  "uses a file of SQLite alone, and goes on with it after a stop",
  Effect.gen(function*() {
    const dataDir = yield* temporaryDirectory
    const env = { DATA_DIR: dataDir, ADMIN_KEY: ownerKey, STORAGE: "sqlite" }
    const first = yield* startWith(env)
    const device = yield* createDevice(first.http)
    const refused = yield* Effect.flip(startWith(env))
    assert.include(refused.message, `${dataDir}/device-cloud.sqlite cannot be used: another process uses it`)
    assert.lengthOf(refused.message.match(/another process uses it/g)!, 1)
    yield* first.child.kill()
    assert.strictEqual(yield* first.child.exitCode, 0)

    const second = yield* startWith(env)
    yield* MqttDevice.connectTo(yield* broker(second, dataDir), device)
    yield* untilStatus(second, device.id, "online")
  })
)

live(
  "shares a database with other servers that start at the same time",
  Effect.gen(function*() {
    const [one, two] = [yield* temporaryDirectory, yield* temporaryDirectory]
    const url = Redacted.value(yield* newEmptyDatabase)
    const env = { DATABASE_URL: url, ADMIN_KEY: ownerKey, SECRETS_KEY: `${"s".repeat(42)}A=` }
    const [first, second] = yield* Effect.all([
      startWith({ ...env, DATA_DIR: one }),
      startWith({ ...env, DATA_DIR: two })
    ], {
      concurrency: "unbounded"
    })
    const device = yield* createDevice(first.http)
    yield* MqttDevice.connectTo(yield* broker(first, one), device)
    yield* untilStatus(second, device.id, "online")
    yield* second.child.kill()
    assert.strictEqual((yield* call(first.http, "GET", `/things/${device.id}/status`)).data.status, "online")
    const refused = yield* Effect.flip(startWith({ DATABASE_URL: url, ADMIN_KEY: ownerKey, DATA_DIR: two }))
    assert.strictEqual(refused._tag, "ServerEnded")
    assert.match(
      refused.message,
      /SECRETS_KEY, or DATA_DIR: the stored secrets are sealed under master key [0-9a-f]{16}/
    )
  })
)
