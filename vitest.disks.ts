/**
 * Small disks of tests, for which the system lets a test mount one.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { appendFileSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

const newDirectory = Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-disk-")))

const mount = (directory: string, mebibytes: number) =>
  spawnSync("mount", ["-t", "tmpfs", "-o", `size=${mebibytes}m`, "tmpfs", directory]).status === 0

/** Whether the tests may mount a disk. */
export const mayMount = await Effect.runPromise(newDirectory).then(async (directory) => {
  const isMounted = mount(directory, 1)
  if (isMounted) spawnSync("umount", [directory])
  await rm(directory, { recursive: true })
  return isMounted
})

/** The directory of a disk that goes with the scope. */
export const smallDisk = (mebibytes: number) =>
  Effect.acquireRelease(
    Effect.tap(newDirectory, (directory) => Effect.sync(() => assert.isTrue(mount(directory, mebibytes)))),
    (directory) =>
      Effect.promise(async () => {
        // Lazily: the driver of SQLite closes a file when its statements are collected.
        spawnSync("umount", ["--lazy", directory])
        await rm(directory, { recursive: true })
      })
  )

/** Writes the file until there is no room. */
export const fill = (file: string) => {
  for (const bytes of [1 << 20, 4096]) {
    try {
      for (;;) appendFileSync(file, Buffer.alloc(bytes, 1))
    } catch (error) {
      assert.strictEqual((error as NodeJS.ErrnoException).code, "ENOSPC")
    }
  }
}
