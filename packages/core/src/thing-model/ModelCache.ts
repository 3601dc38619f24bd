/**
 * The compiled thing models of products, each compiled once per version.
 */
import { Clock, Context, Effect, Layer, Option, Stream } from "effect"
import { NodeBus } from "../cluster/NodeBus.ts"
import type { ProductKey } from "../product/Product.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import * as ModelValidator from "./ModelValidator.ts"
import { isEmpty } from "./ThingModel.ts"
import { ThingModelStore } from "./ThingModelStore.ts"

/** Products whose compiled models are kept. */
const capacity = 4096

/** How long a model may count whose change another node could not tell, milliseconds. */
const versionTtl = 1000

interface Known {
  readonly version: number
  /** Undefined: the model has no elements. */
  readonly validator: ModelValidator.ModelValidator | undefined
  /** Unix milliseconds. */
  readonly askedAt: number
}

const make = Effect.gen(function*() {
  const store = yield* ThingModelStore
  const bus = yield* NodeBus
  const clock = yield* Clock.Clock
  const known = new Map<ProductKey, Known>()

  const remember = (productKey: ProductKey, entry: Known) => {
    known.delete(productKey)
    known.set(productKey, entry)
    if (known.size > capacity) known.delete(known.keys().next().value!)
  }

  /** Asks for the versions; compiles what has a new one. */
  const refresh = Effect.fnUntraced(function*(productKeys: ReadonlyArray<ProductKey>, askedAt: number) {
    const versions = yield* store.versionsOf(productKeys)
    for (const productKey of productKeys) {
      const version = versions.get(productKey) ?? 0
      const before = known.get(productKey)
      if (before?.version === version) {
        remember(productKey, { ...before, askedAt })
        continue
      }
      const latest = version === 0 ? undefined : Option.getOrUndefined(yield* store.latest(productKey))
      remember(productKey, {
        version: latest?.version ?? 0,
        validator: latest === undefined || isEmpty(latest.model)
          ? undefined
          : ModelValidator.make(latest.model, latest.version),
        askedAt
      })
    }
  })

  const ofProducts = Effect.fnUntraced(function*(productKeys: ReadonlyArray<ProductKey>) {
    const now = clock.currentTimeMillisUnsafe()
    const old = productKeys.filter((productKey) => {
      const entry = known.get(productKey)
      return entry === undefined || now - entry.askedAt >= versionTtl
    })
    if (old.length > 0) yield* refresh(old, now)
    const validators = new Map<ProductKey, ModelValidator.ModelValidator>()
    for (const productKey of productKeys) {
      const validator = known.get(productKey)?.validator
      if (validator !== undefined) validators.set(productKey, validator)
    }
    return validators
  })

  yield* bus.heard.pipe(
    Stream.runForEach((notice) =>
      Effect.sync(() => {
        if (notice._tag === "ModelChanged") known.delete(notice.productKey)
        if (notice._tag === "Missed") known.clear()
      })
    ),
    Effect.forkScoped
  )

  return ModelCache.of({
    ofProducts,
    ofProduct: (productKey) =>
      Effect.map(ofProducts([productKey]), (validators) => Option.fromUndefinedOr(validators.get(productKey))),
    changed: (productKey) =>
      Effect.suspend(() => {
        known.delete(productKey)
        return bus.tell([{ _tag: "ModelChanged", productKey }])
      }).pipe(Effect.catch((error) => Effect.logWarning("Other nodes could not be told of a model", error)))
  })
})

export class ModelCache extends Context.Service<ModelCache, {
  /**
   * Those of the products that have a model with elements. A change counts at
   * once; within a second on nodes that could not be told of it.
   */
  readonly ofProducts: (
    productKeys: ReadonlyArray<ProductKey>
  ) => Effect.Effect<ReadonlyMap<ProductKey, ModelValidator.ModelValidator>, StoreError>
  readonly ofProduct: (
    productKey: ProductKey
  ) => Effect.Effect<Option.Option<ModelValidator.ModelValidator>, StoreError>
  /** The model of the product has changed. */
  readonly changed: (productKey: ProductKey) => Effect.Effect<void>
}>()("@device-cloud/core/thing-model/ModelCache") {
  static readonly layer: Layer.Layer<ModelCache, never, ThingModelStore | NodeBus> = Layer.effect(ModelCache, make)
}
