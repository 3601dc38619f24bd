import { defaultProjectId, IdempotencyStore } from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { IdempotencyStoreContract } from "@device-cloud/testing/contracts"
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as LevelIdempotencyStore from "../src/LevelIdempotencyStore.ts"

const directory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "own-storage-"))),
  (made) => Effect.sync(() => rmSync(made, { recursive: true }))
)

const store = Layer.unwrap(Effect.map(directory, (made) => LevelIdempotencyStore.layer({ directory: made })))

// The contract makes projects: the other stores are those of the storage in memory.
IdempotencyStoreContract.suite("LevelDB", store.pipe(Layer.provideMerge(StorageMemory.layer)))

const request = { projectId: defaultProjectId, key: "order-4711", at: 1000 }
const claim = Effect.flatMap(
  IdempotencyStore,
  (store) => store.claim({ ...request, fingerprint: "first", claimExpiredBefore: 0, answerExpiredBefore: 0 })
)

it.effect("a response is there after a restart", () =>
  Effect.gen(function*() {
    const run = LevelIdempotencyStore.layer({ directory: yield* directory })
    const answer = { status: 200, body: "{}" }
    yield* claim.pipe(
      Effect.andThen(IdempotencyStore.use((store) => store.answer(request, answer))),
      Effect.provide(run, { local: true })
    )
    const again = yield* Effect.provide(claim, run, { local: true })
    assert.deepStrictEqual(again, { _tag: "Answered", fingerprint: "first", answer })
  }))

it.effect("a directory that another process has cannot be opened", () =>
  Effect.gen(function*() {
    const run = LevelIdempotencyStore.layer({ directory: yield* directory })
    yield* Layer.build(run)
    const second = yield* Effect.exit(Effect.provide(claim, run, { local: true }))
    assert.isTrue(Exit.isFailure(second) && String(second.cause).includes("IdempotencyStore.open"))
  }))
