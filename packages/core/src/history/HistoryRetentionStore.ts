/**
 * Port: how many days products keep the history of their devices.
 */
import { Context, type Effect, type Option } from "effect"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProductKey } from "../product/Product.ts"

/**
 * Laws: each call is one transaction. The days of a product go with it. `HistoryStore`
 * of the same storage goes by what is stored here.
 */
export class HistoryRetentionStore extends Context.Service<HistoryRetentionStore, {
  /** None: the product has no days of its own, or does not exist. */
  readonly get: (productKey: ProductKey) => Effect.Effect<Option.Option<number>, StoreError>
  /** `null`: the product has no days of its own from now on. Returns whether there is such a product. */
  readonly put: (productKey: ProductKey, days: number | null) => Effect.Effect<boolean, StoreError>
}>()("@device-cloud/core/history/HistoryRetentionStore") {}
