/**
 * Actions that an application adds to scenes. They are as durable as the built-in
 * ones: a node that ends in the middle of an attempt leaves the action to another
 * node, which attempts it again under the same id.
 *
 * ```ts
 * const page = SceneAction.make({
 *   uri: "action/acme/page",
 *   params: Schema.Struct({ team: Schema.String, text: Schema.String }),
 *   attempt: ({ team, text }, { id }) =>
 *     Effect.flatMap(Pager, (pager) => pager.page({ id, team, text })).pipe(
 *       Effect.map(({ person }) => SceneAction.succeeded(`Paged ${person}`)),
 *       Effect.catchTag("PagerIsBusy", () => Effect.succeed(SceneAction.tryAgain("The pager is busy")))
 *     )
 * })
 * ```
 */
import { Effect, Result } from "effect"
import { given, resulting } from "../../kernel/GivenEffect.ts"
import type { ProjectId } from "../../project/Project.ts"
import {
  type CustomKind,
  type CustomParams,
  type CustomPart,
  customPart,
  shownSentence
} from "../definition/CustomPart.ts"
import type { Scene } from "../definition/Scene.ts"
import type { SceneEvent } from "../matching/SceneEvent.ts"
import { type Attempt, failed, isAttempt, tryAgain } from "./Execution.ts"

export { type Attempt, failed, skipped, succeeded, tryAgain } from "./Execution.ts"

/** What a custom action is attempted in view of. */
export interface AttemptContext {
  readonly projectId: ProjectId
  readonly scene: Pick<Scene, "sceneId" | "name">
  readonly executionId: string
  /** Names this action of this execution. It is the same for each attempt: use it so that nothing is done twice. */
  readonly id: string
  /** From 1. */
  readonly attempt: number
  /** The event that fired the scene. */
  readonly event: SceneEvent
}

/** A kind of action that an application adds. `R` is what its functions need. */
export interface SceneAction<out R = never> {
  readonly _tag: "SceneAction"
  /** Gives the functions what they need. */
  readonly provide: (run: <A>(effect: Effect.Effect<A, never, R>) => Effect.Effect<A>) => RegisteredAction
}

/** A custom action that can be attempted. */
export interface RegisteredAction extends CustomPart {
  readonly attempt: (params: CustomParams, context: AttemptContext) => Effect.Effect<Attempt>
}

/** How long an attempt of a custom action may take. Shorter than the lease of an execution. */
const timeLimit = "60 seconds"

/** Declares a kind of action. */
export const make = <Params, R = never, R2 = never>(
  kind: CustomKind<Params, R> & {
    /** Begins with `action/`, for example `action/acme/page`. It stays the same: scenes are stored with it. */
    readonly uri: `action/${string}`
    /**
     * Does it, and returns what it led to. After `tryAgain`, or if it takes longer
     * than 60 seconds, the action is attempted again after 1, 4, 16, 64 and 256
     * seconds, and then fails. An attempt that dies, or results in something else,
     * fails at once. Of `detail`, the first 1,024 characters are kept.
     */
    readonly attempt: (params: Params, context: AttemptContext) => Effect.Effect<Attempt, never, R2>
  }
): SceneAction<R | R2> => {
  const { part, read } = customPart(kind)
  return {
    _tag: "SceneAction",
    provide: (run) => ({
      ...part(run),
      attempt: (params, context) =>
        Result.match(read(params), {
          onFailure: (reason) => Effect.succeed(failed(reason)),
          onSuccess: (decoded) =>
            run(given(kind.uri, () => kind.attempt(decoded, context))).pipe(
              resulting(kind.uri, "what became of the action", isAttempt),
              Effect.map(({ detail, status }) => ({ status, detail: shownSentence(detail) })),
              Effect.timeoutOrElse({
                duration: timeLimit,
                orElse: () => Effect.succeed(tryAgain(`The attempt did not end within ${timeLimit}`))
              })
            )
        })
    })
  }
}
