/**
 * The compiled thing models of products, each compiled once per version.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { NodeBus } from "../cluster/NodeBus.ts"
import * as NodeCache from "../kernel/NodeCache.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { ProductKey } from "../product/Product.ts"
import * as ModelValidator from "./ModelValidator.ts"
import { isEmpty } from "./ThingModel.ts"
import { ThingModelStore } from "./ThingModelStore.ts"

export class ModelCache extends Context.Service<ModelCache, {
  /**
   * The compiled models of those products whose model has elements. A change
   * counts at once, and within a second on a node that no notice reaches.
   */
  readonly ofProducts: (
    productKeys: ReadonlyArray<ProductKey>
  ) => Effect.Effect<ReadonlyMap<ProductKey, ModelValidator.ModelValidator>, StoreError>
  /** The compiled model of one product; none: it has no elements. */
  readonly ofProduct: (
    productKey: ProductKey
  ) => Effect.Effect<Option.Option<ModelValidator.ModelValidator>, StoreError>
  /** Call it after the model of the product is stored: all nodes load it again. */
  readonly changed: (productKey: ProductKey) => Effect.Effect<void>
}>()("@device-cloud/core/thing-model/ModelCache") {
  static readonly layer: Layer.Layer<ModelCache, never, ThingModelStore | NodeBus> = Layer.effect(
    ModelCache,
    Effect.suspend(() => make)
  )
}

/** Products whose compiled models are kept. */
const capacity = 4096

/** How long a model may count whose change no notice tells of, milliseconds. */
const timeToLive = 1000

const ModelChanged = NodeBus.channel("thing-model/changed", Schema.Struct({ productKey: ProductKey }))

interface Compiled {
  /** 0: the product has no model. */
  readonly version: number
  /** Undefined: the model has no elements. */
  readonly validator: ModelValidator.ModelValidator | undefined
}

const make = Effect.gen(function*() {
  const store = yield* ThingModelStore
  const channel = yield* ModelChanged

  const compile = Effect.fnUntraced(function*(productKey: ProductKey, version: number) {
    const latest = version === 0 ? undefined : Option.getOrUndefined(yield* store.latest(productKey))
    const compiled: Compiled = {
      version: latest?.version ?? 0,
      validator: latest === undefined || isEmpty(latest.model)
        ? undefined
        : ModelValidator.make(latest.model, latest.version)
    }
    return compiled
  })

  /** Asks for the versions, and compiles what has a new one. */
  const load = Effect.fnUntraced(function*(
    productKeys: ReadonlyArray<ProductKey>,
    last: (productKey: ProductKey) => Compiled | undefined
  ) {
    const versions = yield* store.versionsOf(productKeys)
    const loaded = new Map<ProductKey, Compiled>()
    for (const productKey of productKeys) {
      const version = versions.get(productKey) ?? 0
      const before = last(productKey)
      loaded.set(productKey, before?.version === version ? before : yield* compile(productKey, version))
    }
    return loaded
  })

  const models = yield* NodeCache.make({ capacity, timeToLive, load })

  const ofProducts = Effect.fnUntraced(function*(productKeys: ReadonlyArray<ProductKey>) {
    const validators = new Map<ProductKey, ModelValidator.ModelValidator>()
    for (const [productKey, { validator }] of yield* models.get(productKeys)) {
      if (validator !== undefined) validators.set(productKey, validator)
    }
    return validators
  })

  yield* channel.subscribe({
    heard: ({ productKey }) => Effect.sync(() => models.forget(productKey)),
    missed: Effect.sync(models.forgetAll)
  })

  return ModelCache.of({
    ofProducts,
    ofProduct: (productKey) =>
      Effect.map(ofProducts([productKey]), (validators) => Option.fromUndefinedOr(validators.get(productKey))),
    changed: (productKey) =>
      Effect.suspend(() => {
        models.forget(productKey)
        return channel.publish([{ productKey }])
      }).pipe(Effect.catch((error) => Effect.logWarning("Other nodes could not be told of a model", error)))
  })
})
