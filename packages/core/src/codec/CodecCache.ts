/**
 * Keeps the compiled descriptions of products. Compiles each version once.
 */
import { Context, Effect, Layer, Option, Result, Schema } from "effect"
import { NodeBus } from "../cluster/NodeBus.ts"
import * as NodeCache from "../kernel/NodeCache.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { ProductKey } from "../product/Product.ts"
import { CodecStore } from "./CodecStore.ts"
import * as ProductCodec from "./ProductCodec.ts"

export class CodecCache extends Context.Service<CodecCache, {
  /**
   * Returns the codec of the product; none if it has no description. A change
   * counts at once on all nodes, and within five seconds on a node that the
   * notice does not reach.
   */
  readonly ofProduct: (
    productKey: ProductKey
  ) => Effect.Effect<Option.Option<ProductCodec.ProductCodec>, StoreError>
  /** As `ofProduct`, for several products in one read. */
  readonly ofProducts: (
    productKeys: ReadonlyArray<ProductKey>
  ) => Effect.Effect<ReadonlyMap<ProductKey, Option.Option<ProductCodec.ProductCodec>>, StoreError>
  /** Makes all nodes load the description of the product again. Call it after the description is stored. */
  readonly changed: (productKey: ProductKey) => Effect.Effect<void>
}>()("@device-cloud/core/codec/CodecCache") {
  static readonly layer: Layer.Layer<CodecCache, never, CodecStore | NodeBus> = Layer.effect(
    CodecCache,
    Effect.suspend(() => make)
  )
}

/** Products whose codecs are kept. */
const capacity = 4096

/** How long an old codec may count on a node that the notice does not reach, milliseconds. */
const timeToLive = 5000

const CodecChanged = NodeBus.channel("codec/changed", Schema.Struct({ productKey: ProductKey }))

interface Compiled {
  /** 0: the product has never had a description. */
  readonly version: number
  readonly codec: Option.Option<ProductCodec.ProductCodec>
}

const make = Effect.gen(function*() {
  const store = yield* CodecStore
  const channel = yield* CodecChanged

  const compile = Effect.fnUntraced(function*(productKey: ProductKey) {
    const stored = Option.getOrUndefined(yield* store.get(productKey))
    const none: Compiled = { version: stored?.version ?? 0, codec: Option.none() }
    if (stored === undefined || stored.description === null) return none
    const compiled = ProductCodec.compile(stored.description)
    if (Result.isSuccess(compiled)) return { ...none, codec: Option.some(compiled.success) }
    yield* Effect.logError("The codec of a product cannot be used", { productKey }, compiled.failure)
    return none
  })

  /** Reads the versions and compiles the descriptions whose version is new. */
  const load = Effect.fnUntraced(function*(
    productKeys: ReadonlyArray<ProductKey>,
    last: (productKey: ProductKey) => Compiled | undefined
  ) {
    const versions = yield* store.versionsOf(productKeys)
    const loaded = new Map<ProductKey, Compiled>()
    for (const productKey of productKeys) {
      const version = versions.get(productKey) ?? 0
      const before = last(productKey)
      if (before?.version === version) loaded.set(productKey, before)
      else loaded.set(productKey, version === 0 ? { version, codec: Option.none() } : yield* compile(productKey))
    }
    return loaded
  })

  const cache = yield* NodeCache.make({ capacity, timeToLive, load })

  yield* channel.subscribe({
    heard: ({ productKey }) => Effect.sync(() => cache.forget(productKey)),
    missed: Effect.sync(cache.forgetAll)
  })

  return CodecCache.of({
    // Commands pass here: a codec that is at hand costs no fiber work.
    ofProduct: (productKey) => {
      const fresh = cache.fresh(productKey)
      return fresh === undefined
        ? Effect.map(cache.get([productKey]), (loaded) => loaded.get(productKey)!.codec)
        : Effect.succeed(fresh.codec)
    },
    ofProducts: (productKeys) =>
      Effect.map(
        cache.get([...new Set(productKeys)]),
        (loaded) => new Map([...loaded].map(([productKey, { codec }]) => [productKey, codec]))
      ),
    changed: (productKey) =>
      Effect.suspend(() => {
        cache.forget(productKey)
        return channel.publish([{ productKey }])
      }).pipe(Effect.catch((error) => Effect.logWarning("Other nodes could not be told of a codec", error)))
  })
})
