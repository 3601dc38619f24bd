/**
 * Port: where the descriptions of products' messages are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProductKey } from "../product/Product.ts"
import type { CodecDescription } from "./CodecDescription.ts"

export interface StoredCodec {
  /** 1 for the first; grows by one with each change, removals included. */
  readonly version: number
  /** Null: the description was removed. */
  readonly description: CodecDescription | null
  /** Unix milliseconds. */
  readonly updatedAt: number
}

/** Laws: each call is one transaction. The store removes a description with its product. */
export class CodecStore extends Context.Service<CodecStore, {
  /** Returns what is stored; none if the product has never had a description or does not exist. */
  readonly get: (productKey: ProductKey) => Effect.Effect<Option.Option<StoredCodec>, StoreError>
  /** Returns the version of each product that has had a description. */
  readonly versionsOf: (
    productKeys: ReadonlyArray<ProductKey>
  ) => Effect.Effect<ReadonlyMap<ProductKey, number>, StoreError>
  /** Replaces the description, at `at`, Unix milliseconds. Returns what is stored now; none: there is no such product. */
  readonly put: (
    productKey: ProductKey,
    description: CodecDescription | null,
    at: number
  ) => Effect.Effect<Option.Option<StoredCodec>, StoreError>
}>()("@device-cloud/core/codec/CodecStore") {}
