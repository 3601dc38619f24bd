import { ObjectStore, ProjectId, StoreHealth } from "@device-cloud/core"
import * as StorageSqlite from "@device-cloud/storage-sqlite"
import { TestKeyRing } from "@device-cloud/testing"
import { insertDevice } from "@device-cloud/testing/contracts"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { join } from "node:path"
import { mayMount, smallDisk } from "../../../vitest.disks.ts"

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
