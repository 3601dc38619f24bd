/**
 * Port: where products are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { Page, PageRequest } from "../kernel/Page.ts"
import type { ProjectId } from "../project/Project.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { NewProduct, Product, ProductKey, ProductStatus, ProductUpdate } from "./Product.ts"

export type ProductChange = Partial<ProductUpdate> & {
  readonly status?: ProductStatus
  /** Unix milliseconds. */
  readonly updatedAt: number
}

/**
 * Laws: each call is one transaction. Those that take a project see only its
 * products. `insert` needs an existing project. `remove`
 * of a product that has devices changes nothing, also when a device is being
 * created at the same time.
 */
export class ProductStore extends Context.Service<ProductStore, {
  readonly insert: (product: NewProduct) => Effect.Effect<Product, StoreError>
  readonly get: (projectId: ProjectId, productKey: ProductKey) => Effect.Effect<Option.Option<Product>, StoreError>
  /** For registering devices, whose project is not known yet. */
  readonly find: (productKey: ProductKey) => Effect.Effect<Option.Option<Product>, StoreError>
  readonly list: (projectId: ProjectId, page: PageRequest) => Effect.Effect<Page<Product>, StoreError>
  /** False when there is no such product. */
  readonly update: (
    projectId: ProjectId,
    productKey: ProductKey,
    change: ProductChange
  ) => Effect.Effect<boolean, StoreError>
  readonly remove: (
    projectId: ProjectId,
    productKey: ProductKey
  ) => Effect.Effect<"removed" | "not-found" | "has-devices", StoreError>
}>()("@device-cloud/core/product/ProductStore") {}
