/**
 * Handlers whose requests carry no more than they need. A handler has taken the
 * services of the cloud when it was built, and asks for none of the platform;
 * whatever a request carries is copied for each that comes.
 */
import { Context, Crypto, Effect, FileSystem, Layer, Path, Stdio, Terminal } from "effect"
import { Etag, HttpPlatform } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { ChildProcessSpawner } from "effect/process"

const filter = <R>(context: Context.Context<R>, holds: (key: string) => boolean): Context.Context<R> =>
  Context.makeUnsafe(new Map([...context.mapUnsafe].filter(([key]) => holds(key))))

/** By the names that its services have. */
const isOfCloud = (key: string): boolean => key.startsWith("@device-cloud/core/")

/** The services of the cloud. */
export const ofCloud = <R>(context: Context.Context<R>): Context.Context<R> => filter(context, isOfCloud)

/** The services of the platform that a server comes with, by their names. */
const ofPlatform = new Set([
  Crypto.Crypto,
  FileSystem.FileSystem,
  Path.Path,
  Stdio.Stdio,
  Terminal.Terminal,
  ChildProcessSpawner.ChildProcessSpawner,
  HttpPlatform.HttpPlatform,
  Etag.Generator
].map(({ key }): string => key))

/** Builds a layer that answers requests without the services of the cloud and of the platform. */
export const lean = <A, E, R>(layer: Layer.Layer<A, E, R>): Layer.Layer<A, E, R> =>
  Layer.fromBuild((memoMap, scope) =>
    Effect.updateContext(
      Layer.buildWithMemoMap(layer, memoMap, scope),
      (context: Context.Context<R>) => filter(context, (key) => !isOfCloud(key) && !ofPlatform.has(key))
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
