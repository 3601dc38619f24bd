/**
 * The codecs of products in memory.
 */
import { CodecStore, type StoredCodec } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { Tables } from "./Tables.ts"

/** Can be replaced alone. It refuses codecs of products that its tables do not have. */
export const layer: Layer.Layer<CodecStore, never, Tables> = Layer.effect(
  CodecStore,
  Effect.map(Tables, (tables) => make(tables))
)

const make = ({ codecs, products }: Tables["Service"]) =>
  CodecStore.of({
    get: (productKey) => Effect.sync(() => Option.fromUndefinedOr(codecs.get(productKey))),
    versionsOf: (productKeys) =>
      Effect.sync(() =>
        new Map(productKeys.flatMap((productKey) => {
          const stored = codecs.get(productKey)
          return stored === undefined ? [] : [[productKey, stored.version] as const]
        }))
      ),
    put: (productKey, description, updatedAt) =>
      Effect.sync(() => {
        if (!products.has(productKey)) return Option.none()
        const stored: StoredCodec = { version: (codecs.get(productKey)?.version ?? 0) + 1, description, updatedAt }
        codecs.set(productKey, stored)
        return Option.some(stored)
      })
  })
