/**
 * The keys that sign the firmware of products, one for each product. While a
 * product has a key, each new firmware of it needs a signature. See
 * docs/api/firmware.md.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import { decodeInput, InvalidInput } from "../../kernel/InvalidInput.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import { type ProductKey, ProductNotFound } from "../../product/Product.ts"
import { ProductStore } from "../../product/ProductStore.ts"
import type { ProjectId } from "../../project/Project.ts"
import { OtaStore } from "../task/OtaStore.ts"
import { ImageSignatures } from "./ImageSignatures.ts"
import { type SigningKey, SigningKeyDraft } from "./SigningKey.ts"

export class SigningKeys extends Context.Service<SigningKeys, {
  /** Returns the key of the product, if it has one. */
  readonly get: (
    projectId: ProjectId,
    productKey: ProductKey
  ) => Effect.Effect<Option.Option<SigningKey>, ProductNotFound | StoreError>
  /**
   * Sets the key of the product in place of an earlier one. Firmware that is there
   * stays as it is. Fails with `InvalidInput` unless `ImageSignatures` reads the key.
   */
  readonly set: (
    projectId: ProjectId,
    productKey: ProductKey,
    draft: SigningKeyDraft
  ) => Effect.Effect<SigningKey, InvalidInput | ProductNotFound | StoreError>
  /** Removes the key of the product, if it has one: new firmware needs no signature. */
  readonly remove: (
    projectId: ProjectId,
    productKey: ProductKey
  ) => Effect.Effect<void, ProductNotFound | StoreError>
}>()("@device-cloud/core/ota/firmware/SigningKeys") {
  static readonly layer: Layer.Layer<SigningKeys, never, OtaStore | ProductStore | ImageSignatures> = Layer.effect(
    SigningKeys,
    Effect.suspend(() => make)
  )
}

const decodeDraft = decodeInput(SigningKeyDraft)

const make = Effect.gen(function*() {
  const store = yield* OtaStore
  const products = yield* ProductStore
  const signatures = yield* ImageSignatures

  const hasProduct = Effect.fnUntraced(function*(projectId: ProjectId, productKey: ProductKey) {
    yield* Effect.fromOption(yield* products.get(projectId, productKey), () => new ProductNotFound({ productKey }))
  })

  const get = Effect.fn("SigningKeys.get")(function*(projectId: ProjectId, productKey: ProductKey) {
    yield* hasProduct(projectId, productKey)
    return yield* store.signingKey(projectId, productKey)
  })

  const set = Effect.fn("SigningKeys.set")(
    function*(projectId: ProjectId, productKey: ProductKey, input: SigningKeyDraft) {
      const { publicKey } = yield* decodeDraft(input)
      yield* hasProduct(projectId, productKey)
      const key = Option.getOrUndefined(signatures.readKey(publicKey))
      if (key === undefined) {
        const message = "Expected a public key in PEM: RSA of 2048 to 8192 bits, or ECDSA on P-256 or P-384"
        return yield* new InvalidInput({ issues: [{ path: ["publicKey"], message }] })
      }
      const stored: SigningKey = { ...key, productKey, createdAt: yield* Clock.currentTimeMillis }
      if (!(yield* store.setSigningKey(projectId, stored))) return yield* new ProductNotFound({ productKey })
      return stored
    }
  )

  const remove = Effect.fn("SigningKeys.remove")(function*(projectId: ProjectId, productKey: ProductKey) {
    yield* hasProduct(projectId, productKey)
    yield* store.removeSigningKey(projectId, productKey)
  })

  return SigningKeys.of({ get, set, remove })
})
