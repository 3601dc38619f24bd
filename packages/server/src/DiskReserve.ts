/**
 * Uploads leave room on the disk of the database that runs under `DATA_DIR`: without
 * any, PostgreSQL ends, and whoever may upload would have ended the cloud.
 */
import { ObjectStore, StoreError } from "@device-cloud/core"
import { Effect, Layer, Stream } from "effect"
import { existsSync, statfsSync } from "node:fs"
import { join } from "node:path"

/** Bytes: some of what PostgreSQL writes between two checkpoints. */
const reserve = 256 * 1024 ** 2

const hasRoom = (directory: string): boolean => {
  if (!existsSync(directory)) return true
  const { bavail, bsize } = statfsSync(directory)
  return bavail * bsize >= reserve
}

/** The same objects. An upload fails, and may succeed later, once the disk has less than the reserve left. */
export const layer = (dataDir: string): Layer.Layer<ObjectStore, never, ObjectStore> =>
  Layer.effect(
    ObjectStore,
    Effect.map(ObjectStore, (store) => {
      const directory = join(dataDir, "postgres")
      const roomLeft = Effect.suspend(() =>
        hasRoom(directory) ? Effect.void : Effect.fail(
          new StoreError({
            operation: "ObjectStore.write",
            retryable: true,
            cause: new Error(`The disk of DATA_DIR has less than ${reserve / 1024 ** 2} MiB left`)
          })
        )
      )
      return ObjectStore.of({
        ...store,
        write: (object, content, maximum) => store.write(object, Stream.tap(content, () => roomLeft), maximum)
      })
    })
  )
