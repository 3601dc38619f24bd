/**
 * Port: where products are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { Page, PageRequest } from "../kernel/Page.ts"
import type { Rotation } from "../kernel/RotatedSecret.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"
import type { NewProduct, Product, ProductKey, ProductStatus, ProductUpdate } from "./Product.ts"

/** The fields of a product that change. */
export type ProductChange = Partial<ProductUpdate> & {
  readonly status?: ProductStatus
  /** Unix milliseconds. */
  readonly updatedAt: number
}

/** Laws: each call is one transaction. A call that takes a project sees only the products of that project. */
export class ProductStore extends Context.Service<ProductStore, {
  /** Stores a product and assigns the id. `no-project`: there is no such project. */
  readonly insert: (product: NewProduct) => Effect.Effect<Product | "no-project", StoreError>
  /** Returns the product; none if the project has no such product. */
  readonly get: (projectId: ProjectId, productKey: ProductKey) => Effect.Effect<Option.Option<Product>, StoreError>
  /** Finds a product in all projects, for devices that register: their project is not known yet. */
  readonly find: (productKey: ProductKey) => Effect.Effect<Option.Option<Product>, StoreError>
  /** Returns a page of the products of the project. */
  readonly list: (projectId: ProjectId, page: PageRequest) => Effect.Effect<Page<Product>, StoreError>
  /** Changes the given fields. Returns false if there is no such product. */
  readonly update: (
    projectId: ProjectId,
    productKey: ProductKey,
    change: ProductChange
  ) => Effect.Effect<boolean, StoreError>
  /**
   * Replaces the secret of the product; the one before becomes its previous secret
   * in place of an older one. Returns the product after the change; none if there
   * is no such product.
   */
  readonly rotateSecret: (
    projectId: ProjectId,
    productKey: ProductKey,
    rotation: Rotation
  ) => Effect.Effect<Option.Option<Product>, StoreError>
  /**
   * Removes the product. Returns `has-devices` and changes nothing if it has
   * devices, even if a device is created at the same time.
   */
  readonly remove: (
    projectId: ProjectId,
    productKey: ProductKey
  ) => Effect.Effect<"removed" | "not-found" | "has-devices", StoreError>
}>()("@device-cloud/core/product/ProductStore") {}
