/**
 * The compiled thing models of products, each compiled once per version.
 */
import { Context, Effect, Layer, Option } from "effect"
import type { ProductKey } from "../product/Product.ts"
import type { StoreError } from "../StoreError.ts"
import * as ModelValidator from "./ModelValidator.ts"
import { isEmpty } from "./ThingModel.ts"
import { ThingModelStore } from "./ThingModelStore.ts"

/** Products whose compiled models are kept. */
const capacity = 4096

const make = Effect.gen(function*() {
  const store = yield* ThingModelStore
  const compiled = new Map<ProductKey, ModelValidator.ModelValidator>()

  const remember = (productKey: ProductKey, validator: ModelValidator.ModelValidator) => {
    compiled.delete(productKey)
    compiled.set(productKey, validator)
    if (compiled.size > capacity) compiled.delete(compiled.keys().next().value!)
  }

  const ofProducts = Effect.fnUntraced(function*(productKeys: ReadonlyArray<ProductKey>) {
    const validators = new Map<ProductKey, ModelValidator.ModelValidator>()
    if (productKeys.length === 0) return validators
    for (const [productKey, version] of yield* store.versionsOf(productKeys)) {
      let validator = compiled.get(productKey)
      if (validator?.version !== version) {
        const latest = Option.getOrUndefined(yield* store.latest(productKey))
        if (latest === undefined) continue
        validator = ModelValidator.make(latest.model, latest.version)
        remember(productKey, validator)
      }
      if (!isEmpty(validator.model)) validators.set(productKey, validator)
    }
    return validators
  })

  return Validators.of({
    ofProducts,
    ofProduct: (productKey) =>
      Effect.map(ofProducts([productKey]), (validators) => Option.fromUndefinedOr(validators.get(productKey)))
  })
})

export class Validators extends Context.Service<Validators, {
  /**
   * Those of the products that have a model with elements. The store is asked
   * for their versions each time: a change counts at once on every node.
   */
  readonly ofProducts: (
    productKeys: ReadonlyArray<ProductKey>
  ) => Effect.Effect<ReadonlyMap<ProductKey, ModelValidator.ModelValidator>, StoreError>
  readonly ofProduct: (
    productKey: ProductKey
  ) => Effect.Effect<Option.Option<ModelValidator.ModelValidator>, StoreError>
}>()("@device-cloud/core/thing-model/Validators") {
  static readonly layer: Layer.Layer<Validators, never, ThingModelStore> = Layer.effect(Validators, make)
}
