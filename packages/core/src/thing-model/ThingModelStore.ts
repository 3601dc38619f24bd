/**
 * Port: where thing models are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { ProductKey } from "../product/Product.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ThingModel } from "./ThingModel.ts"

/** One version of a product's model. */
export interface ModelVersion {
  /** 1 for the first; grows by one with each change. */
  readonly version: number
  readonly model: ThingModel
  /** Unix milliseconds. */
  readonly createdAt: number
}

/** Versions of one product that are kept. */
export const keptVersions = 10

/** Laws: the latest {@link keptVersions} versions of each product are kept; they go with it. */
export class ThingModelStore extends Context.Service<ThingModelStore, {
  /** None: the product has never had a model, or does not exist. */
  readonly latest: (productKey: ProductKey) => Effect.Effect<Option.Option<ModelVersion>, StoreError>
  /** The number of the latest version of each product that has one. */
  readonly versionsOf: (
    productKeys: ReadonlyArray<ProductKey>
  ) => Effect.Effect<ReadonlyMap<ProductKey, number>, StoreError>
  /** Those that are kept, newest first. */
  readonly history: (productKey: ProductKey) => Effect.Effect<ReadonlyArray<ModelVersion>, StoreError>
  /** False: `version` is not the one that follows the latest, or the product does not exist. */
  readonly insert: (productKey: ProductKey, version: ModelVersion) => Effect.Effect<boolean, StoreError>
}>()("@device-cloud/core/thing-model/ThingModelStore") {}
