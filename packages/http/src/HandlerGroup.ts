/**
 * Handlers whose requests carry no more than they need. A handler has taken the
 * services of the cloud when it was built; to hand all of them to each request
 * once more would cost a short one an eighth of its time.
 */
import { Context, Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"

const filter = <R>(context: Context.Context<R>, holds: (key: string) => boolean): Context.Context<R> =>
  Context.makeUnsafe(new Map([...context.mapUnsafe].filter(([key]) => holds(key))))

/** By the names that its services have. */
const isOfCloud = (key: string): boolean => key.startsWith("@device-cloud/core/")

/** The services of the cloud. */
export const ofCloud = <R>(context: Context.Context<R>): Context.Context<R> => filter(context, isOfCloud)

/** Builds a layer that answers requests without the services of the cloud. */
export const lean = <A, E, R>(layer: Layer.Layer<A, E, R>): Layer.Layer<A, E, R> =>
  Layer.fromBuild((memoMap, scope) =>
    Effect.updateContext(
      Layer.buildWithMemoMap(layer, memoMap, scope),
      (context: Context.Context<R>) => filter(context, (key) => !isOfCloud(key))
    )
  )

/** `HttpApiBuilder.group`, whose `build` alone gets the services of the cloud. */
export const group: typeof HttpApiBuilder.group = (api, identifier, build) =>
  Layer.unwrap(
    Effect.contextWith((context) =>
      Effect.succeed(
        lean(
          HttpApiBuilder.group(
            api,
            identifier,
            ((handlers) => {
              const built: unknown = build(handlers)
              return Effect.isEffect(built)
                ? Effect.provideContext(built, ofCloud(context as Context.Context<unknown>))
                : built
            }) as typeof build
          )
        )
      )
    )
  )
