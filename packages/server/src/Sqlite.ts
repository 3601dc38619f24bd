/**
 * Storage in one file under `DATA_DIR`, which this process alone uses.
 */
import type { KeyRing } from "@device-cloud/core"
import * as StorageSqlite from "@device-cloud/storage-sqlite"
import { Effect, Layer } from "effect"
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { blame, explain } from "./Explanation.ts"
import { InvalidConfig, type ServerConfig } from "./ServerConfig.ts"
import type { Storage } from "./Storage.ts"

export const layer = ({ dataDir }: ServerConfig): Layer.Layer<Storage, InvalidConfig, KeyRing> =>
  Layer.unwrap(
    Effect.map(
      Effect.tryPromise({
        try: () => mkdir(dataDir, { recursive: true }),
        catch: (cause) => new InvalidConfig({ message: `DATA_DIR: ${explain(cause)}` })
      }),
      () =>
        StorageSqlite.layer({ filename: join(dataDir, "device-cloud.sqlite") }).pipe(
          blame("DATA_DIR, or SECRETS_KEY", explain)
        )
    )
  )
