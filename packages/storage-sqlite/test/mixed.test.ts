/**
 * Stores in a file, over a storage that keeps everything else.
 */
import { HistoryApart } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import * as StorageSqlite from "@device-cloud/storage-sqlite"
import {
  AuditStoreContract,
  FeedReaderStoreContract,
  HistoryStoreContract,
  IdempotencyStoreContract,
  ObjectStoreContract
} from "@device-cloud/testing/contracts"
import { Effect, Layer, Redacted } from "effect"
import { join } from "node:path"
import { temporaryDirectory } from "../../../vitest.storages.ts"

const file = Layer.unwrap(
  Effect.map(
    temporaryDirectory,
    (directory) => StorageSqlite.layerFile({ filename: join(directory, "some.sqlite") })
  )
).pipe(Layer.provide(PlatformNode.NodeKeyRing.layerKeys(Redacted.make(Buffer.alloc(32, 7).toString("base64")))))

const some = Layer.mergeAll(
  StorageSqlite.layerAuditStore,
  StorageSqlite.layerFeedReaderStore,
  StorageSqlite.layerHistoryStore,
  StorageSqlite.layerIdempotencyStore,
  StorageSqlite.layerObjectStore
)

const mixed = HistoryApart.layer.pipe(
  Layer.provideMerge(some.pipe(Layer.provide(file))),
  Layer.provideMerge(StorageMemory.layer)
)

AuditStoreContract.suite("SQLite beside memory", mixed)
FeedReaderStoreContract.suite("SQLite beside memory", mixed)
HistoryStoreContract.suite("SQLite beside memory", mixed)
IdempotencyStoreContract.suite("SQLite beside memory", mixed)
ObjectStoreContract.suite("SQLite beside memory", mixed)
