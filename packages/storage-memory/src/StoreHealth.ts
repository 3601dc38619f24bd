/**
 * The health of stores in memory.
 */
import { StoreHealth } from "@device-cloud/core"
import { Effect, Layer } from "effect"

/** Memory can always be used: each check succeeds. */
export const layer: Layer.Layer<StoreHealth> = Layer.succeed(StoreHealth, { check: Effect.void })
