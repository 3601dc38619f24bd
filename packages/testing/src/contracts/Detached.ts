/**
 * Stores as the core uses them: copied, and their methods without the store as `this`.
 */
import { DeviceCloud, ObjectStore } from "@device-cloud/core"
import { Context, Effect, Layer, Option } from "effect"

/**
 * The same stores, with methods that are no longer those of an object. What needs
 * `this`, such as an instance of a class, fails here as it fails in the core.
 */
export const detached = <Stores, E>(stores: Layer.Layer<Stores, E>): Layer.Layer<Stores, E> =>
  Layer.effectContext(
    Effect.map(Layer.build(stores), (context) =>
      [...DeviceCloud.stores, ObjectStore].reduce<Context.Context<Stores>>((context, port) => {
        const key = port as unknown as Context.Key<Stores, object>
        return Option.match(Context.getOption(context, key), {
          onNone: () =>
            context,
          onSome: (store) => Context.add(context, key, methodsOf(store))
        })
      }, context))
  )

const methodsOf = (store: object): object =>
  Object.fromEntries(
    Object.entries(store).map(([name, member]) => [
      name,
      typeof member === "function" ? (...args: ReadonlyArray<unknown>): unknown => member(...args) : member
    ])
  )
