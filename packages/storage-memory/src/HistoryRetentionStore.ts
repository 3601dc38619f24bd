/**
 * The days that products keep history, in memory.
 */
import { HistoryRetentionStore } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { Tables } from "./Tables.ts"

/** Replaced together with `HistoryStore`, which goes by it. It refuses days of products that its tables do not have. */
export const layer: Layer.Layer<HistoryRetentionStore, never, Tables> = Layer.effect(
  HistoryRetentionStore,
  Effect.map(Tables, (tables) => make(tables))
)

const make = ({ historyDays, products }: Tables["Service"]) =>
  HistoryRetentionStore.of({
    get: (productKey) => Effect.sync(() => Option.fromUndefinedOr(historyDays.get(productKey))),
    put: (productKey, days) =>
      Effect.sync(() => {
        if (days === null) historyDays.delete(productKey)
        else if (products.has(productKey)) historyDays.set(productKey, days)
        return products.has(productKey)
      })
  })
