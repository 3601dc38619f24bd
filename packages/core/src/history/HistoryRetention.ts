/**
 * How long history is kept: a number of days for all products, and for a product of
 * its own (docs/api/history.md).
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { decodeInput, type InvalidInput } from "../kernel/InvalidInput.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { type ProductKey, ProductNotFound } from "../product/Product.ts"
import { ProductStore } from "../product/ProductStore.ts"
import type { ProjectId } from "../project/Project.ts"
import { HistoryRetentionStore } from "./HistoryRetentionStore.ts"

/** How long the history of products without days of their own is kept, days; 0: for ever. Default 0. */
export const HistoryDays = Context.Reference<number>("@device-cloud/core/history/HistoryDays", {
  defaultValue: () => 0
})

/** The days that a product may keep history. */
export const RetentionDays = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3650 }))

/** How long the history of a product is kept, in days. */
export interface ProductRetention {
  /** Null: the product has no days of its own. */
  readonly days: number | null
  /** What holds without days of its own; 0: for ever. */
  readonly defaultDays: number
}

export class HistoryRetention extends Context.Service<HistoryRetention, {
  readonly get: (
    projectId: ProjectId,
    productKey: ProductKey
  ) => Effect.Effect<ProductRetention, ProductNotFound | StoreError>
  /** `days`: 1 to 3650 (`RetentionDays`); null: as all products without days of their own. */
  readonly set: (
    projectId: ProjectId,
    productKey: ProductKey,
    days: number | null
  ) => Effect.Effect<ProductRetention, InvalidInput | ProductNotFound | StoreError>
}>()("@device-cloud/core/history/HistoryRetention") {
  static readonly layer: Layer.Layer<HistoryRetention, never, HistoryRetentionStore | ProductStore> = Layer.effect(
    HistoryRetention,
    Effect.suspend(() => make)
  )
}

const decode = decodeInput(Schema.Struct({ days: Schema.NullOr(RetentionDays) }))

const make = Effect.gen(function*() {
  const store = yield* HistoryRetentionStore
  const products = yield* ProductStore
  const defaultDays = yield* HistoryDays

  const requireProduct = Effect.fnUntraced(function*(projectId: ProjectId, productKey: ProductKey) {
    const product = yield* products.get(projectId, productKey)
    if (Option.isNone(product)) return yield* new ProductNotFound({ productKey })
  })

  const get = Effect.fn("HistoryRetention.get")(function*(projectId: ProjectId, productKey: ProductKey) {
    yield* requireProduct(projectId, productKey)
    return { days: Option.getOrNull(yield* store.get(productKey)), defaultDays }
  })

  const set = Effect.fn("HistoryRetention.set")(
    function*(projectId: ProjectId, productKey: ProductKey, given: number | null) {
      const { days } = yield* decode({ days: given })
      yield* requireProduct(projectId, productKey)
      if (!(yield* store.put(productKey, days))) return yield* new ProductNotFound({ productKey })
      return { days, defaultDays }
    }
  )

  return HistoryRetention.of({ get, set })
})
