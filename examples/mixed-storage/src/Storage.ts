/**
 * One storage from three places: devices and what must change with them in
 * PostgreSQL, history in another store, requests with an idempotency key in a
 * store of this application.
 */
import {
  type DeviceCloud,
  HistoryApart,
  type HistoryStore,
  type KeyRing,
  type KeyRingError,
  type StoreHealth
} from "@device-cloud/core"
import * as StoragePg from "@device-cloud/storage-pg"
import { Layer, type Redacted } from "effect"
import * as RecentRequests from "./RecentRequests.ts"

/**
 * The layers above win over the layers below them. `HistoryApart` stands on top,
 * because it changes the `UplinkStore` of PostgreSQL: history of a commit goes
 * to `history` before the device gets its reply.
 */
export const layer = (options: {
  readonly url: Redacted.Redacted
  readonly history: Layer.Layer<HistoryStore>
}): Layer.Layer<DeviceCloud.Stores | StoreHealth, StoragePg.DatabaseError | KeyRingError, KeyRing> =>
  HistoryApart.layer.pipe(
    Layer.provideMerge(Layer.mergeAll(options.history, RecentRequests.layer({ capacity: 10_000 }))),
    Layer.provideMerge(StoragePg.layer({ url: options.url }))
  )
