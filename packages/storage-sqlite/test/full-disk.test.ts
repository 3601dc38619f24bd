import { ObjectStore, ProjectId, StoreHealth } from "@device-cloud/core"
import * as StorageSqlite from "@device-cloud/storage-sqlite"
import { TestKeyRing } from "@device-cloud/testing"
import { insertDevice } from "@device-cloud/testing/contracts"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { spawnSync } from "node:child_process"
import { copyFile, rm } from "node:fs/promises"
import { dirname, join } from "node:path"
import { fill, mayMount, smallDisk } from "../../../vitest.disks.ts"

it.live.runIf(mayMount)(
  "an upload that is too large for the disk leaves room for everything else",
  () =>
    Effect.gen(function*() {
      const filename = join(yield* smallDisk(48), "test.sqlite")
      const stores = StorageSqlite.layer({ filename }).pipe(Layer.provide(TestKeyRing.layer))
      yield* Effect.gen(function*() {
        const objects = yield* ObjectStore
        const upload = (objectId: string, mebibytes: number) =>
          objects.write(
            { objectId, projectId: ProjectId.make("project"), fileName: "firmware.bin", createdAt: 0 },
            Stream.map(Stream.range(1, mebibytes), () => new Uint8Array(1 << 20)),
            1e9
          )
        yield* upload("small", 1)
        const error = yield* Effect.flip(upload("large", 60))
        for (let i = 0; i < 20; i++) yield* insertDevice
        yield* (yield* StoreHealth).check
        assert.include(String(error.cause), "less than 32 MiB left")
      }).pipe(Effect.provide(stores))
    }).pipe(Effect.scoped)
)

const storesIn = (filename: string) => StorageSqlite.layer({ filename }).pipe(Layer.provide(TestKeyRing.layer))

it.live.runIf(mayMount)(
  "a file that closes on a full disk can be opened again",
  () =>
    Effect.gen(function*() {
      const filename = join(yield* smallDisk(8), "test.sqlite")
      const filler = join(dirname(filename), "filler")
      yield* Effect.andThen(insertDevice, Effect.sync(() => fill(filler))).pipe(Effect.provide(storesIn(filename)))
      yield* Effect.promise(() => rm(filler))
      yield* Effect.provide(insertDevice, storesIn(filename))
    }).pipe(Effect.scoped)
)

it.live.runIf(mayMount)(
  "fails to open a file on a read-only disk with an error of its own",
  () =>
    Effect.gen(function*() {
      const [first, disk] = [yield* smallDisk(8), yield* smallDisk(8)]
      const [made, filename] = [join(first, "test.sqlite"), join(disk, "test.sqlite")]
      // As the end of a process leaves it.
      const copy = Effect.forEach(["", "-wal", "-shm", "-lock"], (end) =>
        Effect.promise(() => copyFile(made + end, filename + end)))
      yield* Effect.andThen(insertDevice, copy).pipe(Effect.provide(storesIn(made)))
      assert.strictEqual(spawnSync("mount", ["-o", "remount,ro", disk]).status, 0)
      const error = yield* Effect.flip(Effect.scoped(Layer.build(storesIn(filename))))
      assert.strictEqual(error._tag, "DatabaseError")
    }).pipe(Effect.scoped)
)
