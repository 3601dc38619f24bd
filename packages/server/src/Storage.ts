/**
 * Where the server keeps what it knows.
 */
import { type DeviceCloud, HistoryFromFeed, type ObjectStore, type StoreHealth } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import { Layer, Option } from "effect"
import { join } from "node:path"
import { blame, explain } from "./Explanation.ts"
import { loaded } from "./LoadedPart.ts"
import type { InvalidConfig, ServerConfig } from "./ServerConfig.ts"

/** What a server keeps, beside the keys that seal its secrets. */
export type Storage = DeviceCloud.Stores | ObjectStore | StoreHealth

/** The storage of the configuration, whose history is on ClickHouse if that has an address. */
export const layer = (config: ServerConfig): Layer.Layer<Storage, InvalidConfig> =>
  Option.match(config.clickHouseUrl, {
    onNone: () => database(config),
    onSome: (url) =>
      HistoryFromFeed.layer.pipe(
        Layer.provideMerge(
          loaded(async () => (await import("@device-cloud/history-clickhouse")).layer({ url }))
        ),
        Layer.provideMerge(database(config))
      )
  })

const database = (config: ServerConfig): Layer.Layer<Storage, InvalidConfig> => {
  switch (config.storage) {
    case "memory":
      return Layer.merge(
        loaded(async () => (await import("@device-cloud/storage-memory")).layer),
        PlatformNode.MemoryObjectStore.layer
      ).pipe(Layer.provideMerge(PlatformNode.SystemClock.layer))
    case "sqlite":
      return loaded(async () => (await import("./Sqlite.ts")).layer(config)).pipe(
        Layer.provide(keyRing(config)),
        Layer.provideMerge(PlatformNode.SystemClock.layer)
      )
    case "postgres":
      return loaded(async () => (await import("./Postgres.ts")).layer(config)).pipe(Layer.provide(keyRing(config)))
  }
}

/** The keys of `SECRETS_KEY`, or of a file in the data directory that is made when it is first needed. */
const keyRing = ({ dataDir, secretsKey }: ServerConfig) =>
  Option.match(secretsKey, {
    onNone: () => PlatformNode.NodeKeyRing.layerFile(join(dataDir, "secrets-key")).pipe(blame("DATA_DIR", explain)),
    onSome: (keys) => PlatformNode.NodeKeyRing.layerKeys(keys).pipe(blame("SECRETS_KEY", ({ message }) => message))
  })
