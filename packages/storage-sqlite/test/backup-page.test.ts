import { CommandStore, type Enqueued } from "@device-cloud/core"
import * as StorageSqlite from "@device-cloud/storage-sqlite"
import { TestKeyRing } from "@device-cloud/testing"
import { insertDevice, newCommand } from "@device-cloud/testing/contracts"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import Database from "libsql"
import { copyFileSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { temporaryDirectory } from "../../../vitest.storages.ts"

const page = readFileSync(new URL("../../../docs/operations/backup.md", import.meta.url), "utf8")
const [, statements] = /^sqlite3 device-cloud\.sqlite "(.*)"$/m.exec(page)!

it.live.each([
  { of: "commands", before: 2 },
  { of: "no commands", before: 0 }
])(
  "after the step of the page, a restored copy with $of gives no message_id once more",
  ({ before }) =>
    Effect.gen(function*() {
      const directory = yield* temporaryDirectory
      const [filename, copy] = [join(directory, "test.sqlite"), join(directory, "copy.sqlite")]
      const storage = (filename: string) =>
        Layer.fresh(StorageSqlite.layer({ filename })).pipe(Layer.provide(TestKeyRing.layer))

      const device = yield* insertDevice.pipe(
        Effect.map(({ device }) => device),
        Effect.tap((device) =>
          CommandStore.use(({ enqueue }) =>
            enqueue(Array.from({ length: before }, () => ({ command: newCommand(device) })))
          )
        ),
        Effect.provide(storage(filename))
      )
      copyFileSync(filename, copy)
      const enqueued = (filename: string) =>
        CommandStore.use(({ enqueue }) => enqueue([{ command: newCommand(device) }])).pipe(
          Effect.map(([result]) => (result as Enqueued).command.messageId),
          Effect.provide(storage(filename))
        )
      const after = yield* enqueued(filename)
      const database = new Database(copy)
      database.exec(statements!)
      database.close()
      assert.isAbove(Number(yield* enqueued(copy)), Number(after) + 999_000)
    }).pipe(Effect.scoped)
)
