/**
 * Parts that a server reads from its files only when its configuration asks for them:
 * all of them together take a tenth of the time of a start.
 */
import { Effect, Layer } from "effect"

/** A layer of a module that `load` imports when the layer is built. */
export const loaded = <A, E, R>(load: () => Promise<Layer.Layer<A, E, R>>): Layer.Layer<A, E, R> =>
  Layer.unwrap(Effect.promise(load))
