/**
 * Port: the values that the devices of a product have reported. `ThingModels`
 * compares them with a changed model. `Shadows.layerReportedValues` implements it.
 */
import { Context, type Effect } from "effect"
import type { Json } from "../kernel/Json.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProductKey } from "../product/Product.ts"

export class ReportedValues extends Context.Service<ReportedValues, {
  /** Returns the reported values of the newest devices of the product, at most `limit` devices; property to value. */
  readonly sample: (
    productKey: ProductKey,
    limit: number
  ) => Effect.Effect<ReadonlyArray<Readonly<Record<string, Json>>>, StoreError>
}>()("@device-cloud/core/thing-model/ReportedValues") {}
