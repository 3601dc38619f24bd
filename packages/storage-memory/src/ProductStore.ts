/**
 * Products in memory.
 */
import { type Product, type ProductKey, ProductStore, type ProjectId } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { paginate, previousAfter, Tables } from "./Tables.ts"

/** Part of the group that is replaced together. */
export const layer: Layer.Layer<ProductStore, never, Tables> = Layer.effect(
  ProductStore,
  Effect.map(Tables, (tables) => make(tables))
)

const make = (
  { batches, codecs, historyDays, configurations, devices, models, nextId, onProductRemoved, products, projects }:
    Tables["Service"]
) => {
  const find = (projectId: ProjectId, productKey: ProductKey): Product | undefined => {
    const product = products.get(productKey)
    return product?.projectId === projectId ? product : undefined
  }

  return ProductStore.of({
    insert: (draft) =>
      Effect.sync(() => {
        if (!projects.has(draft.projectId)) return "no-project"
        const product: Product = { ...draft, id: nextId(), previousSecret: null }
        products.set(product.productKey, product)
        return product
      }),
    get: (projectId, productKey) => Effect.sync(() => Option.fromUndefinedOr(find(projectId, productKey))),
    find: (productKey) => Effect.sync(() => Option.fromUndefinedOr(products.get(productKey))),
    list: (projectId, page) =>
      Effect.sync(() => paginate([...products.values()].filter((product) => product.projectId === projectId), page)),
    update: (projectId, productKey, change) =>
      Effect.sync(() => {
        const product = find(projectId, productKey)
        if (product === undefined) return false
        const { description = product.description, uplinkSignature = product.uplinkSignature } = change
        products.set(productKey, { ...product, ...change, description, uplinkSignature })
        return true
      }),
    rotateSecret: (projectId, productKey, rotation) =>
      Effect.sync(() =>
        Option.map(Option.fromUndefinedOr(find(projectId, productKey)), (product) => {
          const previousSecret = previousAfter(rotation, product.productSecret)
          const changed = { ...product, productSecret: rotation.secret, previousSecret, updatedAt: rotation.at }
          products.set(productKey, changed)
          return changed
        })
      ),
    remove: (projectId, productKey) =>
      Effect.sync(() => {
        if (find(projectId, productKey) === undefined) return "not-found"
        if ([...devices.values()].some((device) => device.productKey === productKey)) return "has-devices"
        products.delete(productKey)
        models.delete(productKey)
        codecs.delete(productKey)
        historyDays.delete(productKey)
        configurations.delete(productKey)
        for (const { batch } of batches.values()) if (batch.productKey === productKey) batches.delete(batch.batchId)
        for (const forget of onProductRemoved) forget(productKey)
        return "removed"
      })
  })
}
