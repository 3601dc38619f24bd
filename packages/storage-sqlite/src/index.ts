/**
 * Every Device Cloud store in one SQLite file, for one small machine.
 *
 * {@link layer} is the whole storage. It seals secrets in the file under the keys
 * of a `KeyRing`: `NodeKeyRing.layerFile(path)` of `platform-node` is one.
 *
 * ```ts
 * const Storage = StorageSqlite.layer({ filename: "./device-cloud.sqlite" }).pipe(
 *   Layer.provide(NodeKeyRing.layerFile("./secrets-key"))
 * )
 * ```
 *
 * To use another implementation of a store, provide it over the storage; it wins:
 *
 * ```ts
 * const Other = MyBindings.layer.pipe(Layer.provideMerge(Storage))
 * ```
 */
import type { KeyRing, KeyRingError } from "@device-cloud/core"
import { Layer } from "effect"
import * as AccessKeyStore from "./AccessKeyStore.ts"
import * as DeviceStore from "./DeviceStore.ts"
import * as ProductStore from "./ProductStore.ts"
import * as ProjectStore from "./ProjectStore.ts"
import { Secrets } from "./Secrets.ts"
import { type Options, Sqlite } from "./Sqlite.ts"
import type { DatabaseError } from "./SqliteErrors.ts"

export type { Options } from "./Sqlite.ts"
export { DatabaseError } from "./SqliteErrors.ts"

const stores = Layer.mergeAll(
  AccessKeyStore.layer,
  DeviceStore.layer,
  ProductStore.layer,
  ProjectStore.layer
)

/** The stores in the file at `filename`. Fails with the name of the file if another process uses it. */
export const layer = (
  options: Options
): Layer.Layer<Layer.Success<typeof stores>, DatabaseError | KeyRingError, KeyRing> =>
  stores.pipe(Layer.provide(Secrets.layer), Layer.provide(Sqlite.layer(options)))
