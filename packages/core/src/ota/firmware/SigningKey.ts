/**
 * The key that signs the firmware of a product, as users give it and as it is kept.
 */
import { Schema } from "effect"
import { Text } from "../../kernel/Text.ts"
import type { ProductKey } from "../../product/Product.ts"
import type { ImageKey } from "./ImageSignatures.ts"

/** What a user gives of a key. */
export const SigningKeyDraft = Schema.Struct({ publicKey: Text(4096) })
export interface SigningKeyDraft extends Schema.Schema.Type<typeof SigningKeyDraft> {}

export interface SigningKey extends ImageKey {
  readonly productKey: ProductKey
  /** When it was set, Unix milliseconds. */
  readonly createdAt: number
}
