/**
 * Sends the same request to two clouds, one after the other, that share a directory:
 * the second one returns the first response and does not run the request.
 */
import { defaultProjectId, DeviceCloud, Idempotency } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Layer, Redacted } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as LevelIdempotencyStore from "./LevelIdempotencyStore.ts"

const cloud = (directory: string) =>
  DeviceCloud.layer.pipe(
    Layer.provide(LevelIdempotencyStore.layer({ directory })),
    Layer.provide(StorageMemory.layer),
    Layer.provide(PlatformNode.layer)
  )

const order = (lamps: number) =>
  Effect.flatMap(Idempotency, ({ once }) =>
    once(
      { projectId: defaultProjectId, key: "order-4711", accessKey: Redacted.make("key"), text: "POST /orders" },
      Effect.as(Console.log(`Ordering ${lamps} lamps`), { status: 200, body: `{"lamps":${lamps}}` })
    ))

const main = Effect.gen(function*() {
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "own-storage-"))),
    (made) => Effect.sync(() => rmSync(made, { recursive: true }))
  )
  for (const lamps of [1, 2]) {
    const { body } = yield* Effect.provide(order(lamps), cloud(directory), { local: true })
    yield* Console.log("Response:", body)
  }
})

main.pipe(Effect.scoped, NodeRuntime.runMain)
