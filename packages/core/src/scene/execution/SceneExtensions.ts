/**
 * The conditions and actions that an application adds to those of Device Cloud.
 *
 * ```ts
 * const Cloud = DeviceCloud.layer.pipe(
 *   Layer.provide(SceneExtensions.layer([duty, page]))
 * )
 * ```
 *
 * Every node registers the same extensions. Register a new one on all nodes
 * before a scene uses it (docs/decisions/0034-scene-extensions.md).
 */
import { Context, Effect, Layer } from "effect"
import { ActionUri } from "../definition/Action.ts"
import { ConditionUri } from "../definition/Condition.ts"
import type { RegisteredCondition, SceneCondition } from "../evaluation/SceneCondition.ts"
import type { RegisteredAction, SceneAction } from "./SceneAction.ts"

/** What has been registered, by URI. Nothing, unless {@link layer} is provided. */
export const SceneExtensions = Context.Reference<{
  readonly conditions: ReadonlyMap<string, RegisteredCondition>
  readonly actions: ReadonlyMap<string, RegisteredAction>
}>("@device-cloud/core/scene/execution/SceneExtensions", {
  defaultValue: () => ({ conditions: new Map(), actions: new Map() })
})

const builtIn: ReadonlySet<string> = new Set([...ConditionUri.literals, ...ActionUri.literals])

const register = <Part extends { readonly uri: string }>(parts: Map<string, Part>, part: Part): void => {
  if (builtIn.has(part.uri) || parts.has(part.uri)) throw new Error(`Two scene extensions are called ${part.uri}`)
  parts.set(part.uri, part)
}

/** Registers the extensions. Two of the same URI, or one of a URI that is built in, are a defect. */
export const layer = <R = never>(
  extensions: ReadonlyArray<SceneCondition<R> | SceneAction<R>>
): Layer.Layer<never, never, R> =>
  Layer.effect(
    SceneExtensions,
    Effect.map(Effect.context<R>(), (context) => {
      const run = <A>(effect: Effect.Effect<A, never, R>) => Effect.provideContext(effect, context)
      const conditions = new Map<string, RegisteredCondition>()
      const actions = new Map<string, RegisteredAction>()
      for (const extension of extensions) {
        if (extension._tag === "SceneCondition") register(conditions, extension.provide(run))
        else register(actions, extension.provide(run))
      }
      return { conditions, actions }
    })
  )
