/**
 * Manages how the bytes of raw products stand for messages (docs/api/codecs.md).
 */
import { Clock, Context, Effect, Layer, Option, Result, Schema } from "effect"
import { Hex } from "effect/encoding"
import { DomainError } from "../kernel/DomainError.ts"
import { inputIssues, InvalidInput } from "../kernel/InvalidInput.ts"
import { isFiniteJson, type Json } from "../kernel/Json.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { type ProductKey, ProductNotFound } from "../product/Product.ts"
import { ProductStore } from "../product/ProductStore.ts"
import type { ProjectId } from "../project/Project.ts"
import { CodecCache } from "./CodecCache.ts"
import { CodecDescription, type CodecDirection, type CodecMessage, type CodecMisfit } from "./CodecDescription.ts"
import { CodecStore, type StoredCodec } from "./CodecStore.ts"
import * as ProductCodec from "./ProductCodec.ts"

/** What a dry run converts: bytes as hex text, or a message. */
export interface CodecTrial {
  readonly direction: CodecDirection
  /** Default: the description of the product. */
  readonly codec?: unknown
  readonly input: { readonly hex: string } | { readonly message: CodecMessage }
}

/** Both sides of a converted message. */
export interface CodecResult {
  /** Lower-case. */
  readonly hex: string
  readonly message: CodecMessage
}

export class Codecs extends Context.Service<Codecs, {
  /** Returns the description of a product; version 0: it has never had one. */
  readonly get: (
    projectId: ProjectId,
    productKey: ProductKey
  ) => Effect.Effect<StoredCodec, ProductNotFound | StoreError>
  /**
   * Replaces the description of a product whose data format is `raw`; at most
   * 65,536 characters of JSON. Fails with `InvalidInput`, which names each part
   * that is wrong, and with `ProductNotRaw` for other products.
   */
  readonly put: (
    projectId: ProjectId,
    productKey: ProductKey,
    description: unknown
  ) => Effect.Effect<StoredCodec, InvalidInput | ProductNotFound | ProductNotRaw | StoreError>
  /** Removes the description: bytes are events `raw` from then on. */
  readonly remove: (projectId: ProjectId, productKey: ProductKey) => Effect.Effect<void, ProductNotFound | StoreError>
  /** Converts bytes or a message and changes nothing. Fails with `CodecMisfit` if they do not fit. */
  readonly tryOut: (
    projectId: ProjectId,
    productKey: ProductKey,
    trial: CodecTrial
  ) => Effect.Effect<CodecResult, InvalidInput | CodecMisfit | ProductNotFound | StoreError>
}>()("@device-cloud/core/codec/Codecs") {
  static readonly layer: Layer.Layer<Codecs, never, CodecStore | CodecCache | ProductStore> = Layer.effect(
    Codecs,
    Effect.suspend(() => make)
  )
}

/** The data format of the product is not `raw`: its devices send JSON. */
export class ProductNotRaw extends DomainError<ProductNotRaw>()(
  "ProductNotRaw",
  {
    productKey: Schema.String
  },
  ({ productKey }) => `Product ${productKey} has data_format json; only raw products have a codec`
) {}

/** Levels of objects and arrays in a description: a part inside another one takes up to four. */
const maxLevels = 48

/** Characters of a description as JSON. */
const maxDescriptionLength = 65_536

const decodeDescription = Schema.decodeUnknownResult(CodecDescription, { errors: "all" })

const refuse = (message: string) => new InvalidInput({ issues: [{ path: ["codec"], message }] })

/** Reads and compiles a description. */
const compile = (given: unknown): Result.Result<readonly [CodecDescription, ProductCodec.ProductCodec], InvalidInput> =>
  // Checked first: what follows runs once for each level.
  !isFiniteJson(given as Json, maxLevels) || JSON.stringify(given).length > maxDescriptionLength
    ? Result.fail(refuse(`Expected at most ${maxDescriptionLength} characters of JSON with ${maxLevels} levels`))
    : decodeDescription(given).pipe(
      Result.mapError((error) => new InvalidInput({ issues: inputIssues(error) })),
      Result.flatMap((description) =>
        Result.map(ProductCodec.compile(description), (codec) => [description, codec] as const)
      ),
      Result.mapError(({ issues: [first, ...rest] }) => {
        const within = ({ message, path }: typeof first) => ({ path: ["codec", ...path], message })
        return new InvalidInput({ issues: [within(first), ...rest.map(within)] })
      })
    )

const never: StoredCodec = { version: 0, description: null, updatedAt: 0 }

const make = Effect.gen(function*() {
  const store = yield* CodecStore
  const cache = yield* CodecCache
  const products = yield* ProductStore

  const product = Effect.fnUntraced(function*(projectId: ProjectId, productKey: ProductKey) {
    return yield* Effect.fromOption(
      yield* products.get(projectId, productKey),
      () => new ProductNotFound({ productKey })
    )
  })

  const change = Effect.fnUntraced(function*(productKey: ProductKey, description: CodecDescription | null) {
    const stored = yield* store.put(productKey, description, yield* Clock.currentTimeMillis)
    const changed = yield* Effect.fromOption(stored, () => new ProductNotFound({ productKey }))
    yield* cache.changed(productKey)
    return changed
  })

  const get = Effect.fn("Codecs.get")(function*(projectId: ProjectId, productKey: ProductKey) {
    yield* product(projectId, productKey)
    return Option.getOrElse(yield* store.get(productKey), () => never)
  })

  const put = Effect.fn("Codecs.put")(function*(projectId: ProjectId, productKey: ProductKey, given: unknown) {
    const { dataFormat } = yield* product(projectId, productKey)
    if (dataFormat !== "raw") return yield* new ProductNotRaw({ productKey })
    const [description] = yield* Effect.fromResult(compile(given))
    return yield* change(productKey, description)
  })

  const remove = Effect.fn("Codecs.remove")(function*(projectId: ProjectId, productKey: ProductKey) {
    const { description } = yield* get(projectId, productKey)
    if (description !== null) yield* change(productKey, null)
  })

  const tryOut = Effect.fn("Codecs.tryOut")(
    function*(projectId: ProjectId, productKey: ProductKey, { codec: given, direction, input }: CodecTrial) {
      const { description } = yield* get(projectId, productKey)
      const used = given ?? description
      if (used === null) return yield* refuse("Expected a description: the product has none")
      const [, codec] = yield* Effect.fromResult(compile(used))
      const bytes = "hex" in input
        ? yield* Effect.mapError(
          Effect.fromResult(Hex.decode(input.hex)),
          () => new InvalidInput({ issues: [{ path: ["hex"], message: "Expected bytes as hex text" }] })
        )
        : yield* Effect.fromResult(ProductCodec.encode(codec, direction, input.message))
      const message = yield* Effect.fromResult(ProductCodec.decode(codec, direction, bytes))
      return { hex: Hex.encode(bytes), message }
    }
  )

  return Codecs.of({ get, put, remove, tryOut })
})
