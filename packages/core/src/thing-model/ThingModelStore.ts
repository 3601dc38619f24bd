/**
 * Port: where thing models are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProductKey } from "../product/Product.ts"
import type { ThingModel } from "./ThingModel.ts"

/** One version of a product's model. */
export interface ModelVersion {
  /** 1 for the first; grows by one with each change. */
  readonly version: number
  readonly model: ThingModel
  /** Unix milliseconds. */
  readonly createdAt: number
}

/** Versions that are kept for each product. */
export const keptVersions = 10

/** Laws: the store keeps the latest {@link keptVersions} versions of each product, and removes them with the product. */
export class ThingModelStore extends Context.Service<ThingModelStore, {
  /** Returns the latest version; none if the product has never had a model or does not exist. */
  readonly latest: (productKey: ProductKey) => Effect.Effect<Option.Option<ModelVersion>, StoreError>
  /** Returns the number of the latest version of each product that has one. */
  readonly versionsOf: (
    productKeys: ReadonlyArray<ProductKey>
  ) => Effect.Effect<ReadonlyMap<ProductKey, number>, StoreError>
  /** Returns the kept versions, newest first. */
  readonly history: (productKey: ProductKey) => Effect.Effect<ReadonlyArray<ModelVersion>, StoreError>
  /** Stores a version. Returns false if its number does not follow the latest one, or the product does not exist. */
  readonly insert: (productKey: ProductKey, version: ModelVersion) => Effect.Effect<boolean, StoreError>
}>()("@device-cloud/core/thing-model/ThingModelStore") {}
