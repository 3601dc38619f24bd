/**
 * Manages products.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { Identifiers } from "../kernel/Identifiers.ts"
import { decodeInput, type InvalidInput } from "../kernel/InvalidInput.ts"
import { type Page, paged, type PageRequest } from "../kernel/Page.ts"
import { defaultOverlap, RotationDraft } from "../kernel/RotatedSecret.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { type ProjectId, ProjectNotFound } from "../project/Project.ts"
import type { QuotaExceeded } from "../project/Quota.ts"
import { Quotas } from "../project/Quotas.ts"
import {
  type Product,
  ProductDraft,
  ProductHasDevices,
  ProductKey,
  ProductNotFound,
  type ProductStatus,
  ProductUpdate
} from "./Product.ts"
import { type ProductChange, ProductStore } from "./ProductStore.ts"

export class Products extends Context.Service<Products, {
  /** Creates a product in status `developing`, with a new key and secret. */
  readonly create: (
    projectId: ProjectId,
    draft: ProductDraft
  ) => Effect.Effect<Product, InvalidInput | ProjectNotFound | QuotaExceeded | StoreError>
  /** Returns the product. */
  readonly get: (
    projectId: ProjectId,
    productKey: ProductKey
  ) => Effect.Effect<Product, ProductNotFound | StoreError>
  /** Returns a page of the products of the project. */
  readonly list: (projectId: ProjectId, page: PageRequest) => Effect.Effect<Page<Product>, InvalidInput | StoreError>
  /** Changes the fields of {@link ProductUpdate}. */
  readonly update: (
    projectId: ProjectId,
    productKey: ProductKey,
    update: ProductUpdate
  ) => Effect.Effect<void, InvalidInput | ProductNotFound | StoreError>
  /** Sets the status to `developing` or `released`. */
  readonly setStatus: (
    projectId: ProjectId,
    productKey: ProductKey,
    status: ProductStatus
  ) => Effect.Effect<void, ProductNotFound | StoreError>
  /**
   * Gives the product a new secret and returns the product. All nodes accept the
   * secret before for `overlap` seconds more.
   */
  readonly rotateSecret: (
    projectId: ProjectId,
    productKey: ProductKey,
    draft: RotationDraft
  ) => Effect.Effect<Product, InvalidInput | ProductNotFound | StoreError>
  /** Removes the product. Fails with `ProductHasDevices` if it has devices. */
  readonly remove: (
    projectId: ProjectId,
    productKey: ProductKey
  ) => Effect.Effect<void, ProductNotFound | ProductHasDevices | StoreError>
}>()("@device-cloud/core/product/Products") {
  static readonly layer: Layer.Layer<Products, never, ProductStore | Identifiers | Quotas> = Layer.effect(
    Products,
    Effect.suspend(() => make)
  )
}

const decodeDraft = decodeInput(ProductDraft)
const decodeUpdate = decodeInput(ProductUpdate)
const decodeRotation = decodeInput(RotationDraft)

const make = Effect.gen(function*() {
  const store = yield* ProductStore
  const quotas = yield* Quotas
  const identifiers = yield* Identifiers

  const create = Effect.fn("Products.create")(function*(projectId: ProjectId, input: ProductDraft) {
    const draft = yield* decodeDraft(input)
    const now = yield* Clock.currentTimeMillis
    const insert = store.insert({
      projectId,
      productKey: ProductKey.make(yield* identifiers.productKey),
      productSecret: yield* identifiers.productSecret,
      name: draft.name,
      nodeType: draft.nodeType,
      networkType: draft.networkType ?? "",
      protocolType: draft.protocolType ?? "",
      validateType: draft.validateType,
      dataFormat: draft.dataFormat,
      authType: draft.authType,
      uplinkSignature: draft.uplinkSignature ?? "any",
      dynamicRegister: draft.dynamicRegister ?? false,
      photoUrl: draft.photoUrl ?? "",
      description: draft.description ?? "",
      deviceType: draft.deviceType ?? "",
      dataSource: draft.dataSource ?? 0,
      platform: draft.platform ?? 0,
      platformName: draft.platformName ?? "",
      status: "developing",
      createdAt: now,
      updatedAt: now
    })
    const product = yield* quotas.within(projectId, "products", 1, insert)
    if (product === "no-project") return yield* new ProjectNotFound({ projectId })
    return product
  })

  const get = Effect.fn("Products.get")(function*(projectId: ProjectId, productKey: ProductKey) {
    const product = yield* store.get(projectId, productKey)
    return yield* Effect.fromOption(product, () => new ProductNotFound({ productKey }))
  })

  const change = Effect.fnUntraced(function*(
    projectId: ProjectId,
    productKey: ProductKey,
    fields: Omit<ProductChange, "updatedAt">
  ) {
    const updatedAt = yield* Clock.currentTimeMillis
    if (!(yield* store.update(projectId, productKey, { ...fields, updatedAt }))) {
      return yield* new ProductNotFound({ productKey })
    }
  })

  const update = Effect.fn("Products.update")(
    function*(projectId: ProjectId, productKey: ProductKey, input: ProductUpdate) {
      yield* change(projectId, productKey, yield* decodeUpdate(input))
    }
  )

  const setStatus = Effect.fn("Products.setStatus")(
    (projectId: ProjectId, productKey: ProductKey, status: ProductStatus) => change(projectId, productKey, { status })
  )

  const rotateSecret = Effect.fn("Products.rotateSecret")(
    function*(projectId: ProjectId, productKey: ProductKey, input: RotationDraft) {
      const { overlap = defaultOverlap } = yield* decodeRotation(input)
      const at = yield* Clock.currentTimeMillis
      const secret = yield* identifiers.productSecret
      const previousUntil = overlap === 0 ? null : at + overlap * 1000
      const product = yield* store.rotateSecret(projectId, productKey, { secret, previousUntil, at })
      return yield* Effect.fromOption(product, () => new ProductNotFound({ productKey }))
    }
  )

  const remove = Effect.fn("Products.remove")(function*(projectId: ProjectId, productKey: ProductKey) {
    switch (yield* store.remove(projectId, productKey)) {
      case "removed":
        return
      case "not-found":
        return yield* new ProductNotFound({ productKey })
      case "has-devices":
        return yield* new ProductHasDevices({ productKey })
    }
  })

  return Products.of({ create, get, list: paged(store.list), update, setStatus, rotateSecret, remove })
})
