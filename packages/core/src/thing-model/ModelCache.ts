/**
 * Keeps the compiled thing models of products, and their TSL as devices read it.
 * Compiles and encodes each version once (docs/decisions/0012-compiled-models.md).
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { NodeBus } from "../cluster/NodeBus.ts"
import * as NodeCache from "../kernel/NodeCache.ts"
import type { Json } from "../kernel/Json.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { ProductKey } from "../product/Product.ts"
import * as ModelValidator from "./ModelValidator.ts"
import * as ModelFormat from "./ModelFormat.ts"
import { emptyModel, isEmpty } from "./ThingModel.ts"
import { ThingModelStore } from "./ThingModelStore.ts"

export class ModelCache extends Context.Service<ModelCache, {
  /**
   * Returns the compiled models of those products whose model has elements. A
   * change counts at once on all nodes, and within a second on a node that the
   * notice does not reach.
   */
  readonly ofProducts: (
    productKeys: ReadonlyArray<ProductKey>
  ) => Effect.Effect<ReadonlyMap<ProductKey, ModelValidator.ModelValidator>, StoreError>
  /** Returns the compiled model of one product; none if the model has no elements. */
  readonly ofProduct: (
    productKey: ProductKey
  ) => Effect.Effect<Option.Option<ModelValidator.ModelValidator>, StoreError>
  /** Returns the model of the product in the form `tsl`, that of an empty model if it has none. */
  readonly tslOf: (productKey: ProductKey) => Effect.Effect<EncodedModel, StoreError>
  /** Makes all nodes load the model of the product again. Call it after the model is stored. */
  readonly changed: (productKey: ProductKey) => Effect.Effect<void>
}>()("@device-cloud/core/thing-model/ModelCache") {
  static readonly layer: Layer.Layer<ModelCache, never, ThingModelStore | NodeBus> = Layer.effect(
    ModelCache,
    Effect.suspend(() => make)
  )
}

/** A model as a document, and the same in UTF-8. */
export interface EncodedModel {
  readonly document: Readonly<Record<string, Json>>
  readonly bytes: Uint8Array
}

/** Products whose TSL is kept: it may have megabytes. */
const tslCapacity = 64

/** Products whose compiled models are kept. */
const capacity = 4096

/** How long an old model may count on a node that the notice does not reach, milliseconds. */
const timeToLive = 1000

const ModelChanged = NodeBus.channel("thing-model/changed", Schema.Struct({ productKey: ProductKey }))

interface VersionedTsl {
  readonly version: number
  readonly model: EncodedModel
}

interface Compiled {
  /** 0: the product has no model. */
  readonly version: number
  /** Undefined: the model has no elements. */
  readonly model: ModelValidator.ModelValidator | undefined
}

const make = Effect.gen(function*() {
  const store = yield* ThingModelStore
  const channel = yield* ModelChanged

  const compile = Effect.fnUntraced(function*(productKey: ProductKey, version: number) {
    const latest = version === 0 ? undefined : Option.getOrUndefined(yield* store.latest(productKey))
    const compiled: Compiled = {
      version: latest?.version ?? 0,
      model: latest === undefined || isEmpty(latest.model)
        ? undefined
        : ModelValidator.make(latest.model, latest.version)
    }
    return compiled
  })

  const encode = Effect.fnUntraced(function*(productKey: ProductKey) {
    const { model, version } = Option.getOrElse(
      yield* store.latest(productKey),
      () => ({ model: emptyModel, version: 0 })
    )
    const document = ModelFormat.encode("tsl", { model, productKey, version }) as Readonly<Record<string, Json>>
    const tsl: VersionedTsl = {
      version,
      model: { document, bytes: new TextEncoder().encode(JSON.stringify(document)) }
    }
    return tsl
  })

  /** Reads the latest versions, and makes anew what has another version. */
  const loadWith = <A extends { readonly version: number }>(
    make: (productKey: ProductKey, version: number) => Effect.Effect<A, StoreError>
  ) =>
    Effect.fnUntraced(function*(
      productKeys: ReadonlyArray<ProductKey>,
      last: (productKey: ProductKey) => A | undefined
    ) {
      const versions = yield* store.versionsOf(productKeys)
      const loaded = new Map<ProductKey, A>()
      for (const productKey of productKeys) {
        const version = versions.get(productKey) ?? 0
        const before = last(productKey)
        loaded.set(productKey, before?.version === version ? before : yield* make(productKey, version))
      }
      return loaded
    })

  const cache = yield* NodeCache.make({ capacity, timeToLive, load: loadWith(compile) })
  const tsls = yield* NodeCache.make({ capacity: tslCapacity, timeToLive, load: loadWith(encode) })

  const forget = (productKey: ProductKey) => {
    cache.forget(productKey)
    tsls.forget(productKey)
  }

  const ofProducts = (productKeys: ReadonlyArray<ProductKey>) =>
    Effect.map(cache.get(productKeys), (compiled) => {
      const models = new Map<ProductKey, ModelValidator.ModelValidator>()
      for (const [productKey, { model }] of compiled) {
        if (model !== undefined) models.set(productKey, model)
      }
      return models
    })

  yield* channel.subscribe({
    heard: ({ productKey }) => Effect.sync(() => forget(productKey)),
    missed: Effect.sync(() => {
      cache.forgetAll()
      tsls.forgetAll()
    })
  })

  return ModelCache.of({
    ofProducts,
    // Commands pass here: a model that is at hand costs no fiber work.
    ofProduct: (productKey) => {
      const fresh = cache.fresh(productKey)
      return fresh === undefined
        ? Effect.map(ofProducts([productKey]), (models) => Option.fromUndefinedOr(models.get(productKey)))
        : Effect.succeed(Option.fromUndefinedOr(fresh.model))
    },
    tslOf: (productKey) => Effect.map(tsls.get([productKey]), (found) => found.get(productKey)!.model),
    changed: (productKey) =>
      Effect.suspend(() => {
        forget(productKey)
        return channel.publish([{ productKey }])
      }).pipe(Effect.catch((error) => Effect.logWarning("Other nodes could not be told of a model", error)))
  })
})
