/**
 * Storage on the PostgreSQL of `DATABASE_URL`, or on one that the server starts for itself.
 */
import type { KeyRing } from "@device-cloud/core"
import * as StoragePg from "@device-cloud/storage-pg"
import { Effect, Layer, Option, type Redacted } from "effect"
import * as EmbeddedDatabase from "./EmbeddedDatabase.ts"
import { InvalidConfig, type ServerConfig } from "./ServerConfig.ts"
import type { Storage } from "./Storage.ts"

export const layer = (config: ServerConfig): Layer.Layer<Storage, InvalidConfig, KeyRing> =>
  Option.match(config.databaseUrl, {
    onNone: () => Layer.unwrap(Effect.map(EmbeddedDatabase.make(config), (url) => stores(config, url, "DATA_DIR"))),
    onSome: (url) => stores(config, url, "DATABASE_URL")
  })

/** `variable` is to blame for what is wrong with the database. */
const stores = ({ databaseConnections }: ServerConfig, url: Redacted.Redacted, variable: string) =>
  StoragePg.layerCloud({ url, connections: databaseConnections }).pipe(
    Layer.catch(({ _tag, message }) =>
      Layer.unwrap<Storage, never, never, InvalidConfig, never>(
        Effect.fail(
          new InvalidConfig({
            message: `${_tag === "KeyRingError" ? "SECRETS_KEY, or DATA_DIR" : variable}: ${message}`
          })
        )
      )
    )
  )
