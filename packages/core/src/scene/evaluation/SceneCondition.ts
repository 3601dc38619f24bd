/**
 * Conditions that an application adds to scenes.
 *
 * ```ts
 * const duty = SceneCondition.make({
 *   uri: "condition/acme/on-duty",
 *   params: Schema.Struct({ team: Schema.String }),
 *   judge: ({ team }, { now }) =>
 *     Effect.map(Roster, (roster) => {
 *       const person = roster.personOf(team, now)
 *       return {
 *         verdict: person === undefined ? "fails" : "holds",
 *         value: person ?? null,
 *         source: "roster",
 *         time: now,
 *         reason: `On duty for ${team}: ${person ?? "nobody"}`
 *       }
 *     })
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
import type { SceneId } from "../definition/SceneId.ts"
import type { SceneEvent } from "../matching/SceneEvent.ts"
import { type Finding, isFinding } from "./SceneEvaluator.ts"

/** What a custom condition is judged in view of. */
export interface JudgeContext {
  readonly projectId: ProjectId
  readonly sceneId: SceneId
  /** The event that fired the scene, or that might fire it when somebody asks for an explanation. */
  readonly event: SceneEvent
  /** When the condition is judged, Unix milliseconds. */
  readonly now: number
}

/** A kind of condition that an application adds. `R` is what its functions need. */
export interface SceneCondition<out R = never> {
  readonly _tag: "SceneCondition"
  /** Gives the functions what they need. */
  readonly provide: (run: <A>(effect: Effect.Effect<A, never, R>) => Effect.Effect<A>) => RegisteredCondition
}

/** A custom condition that can be judged. */
export interface RegisteredCondition extends CustomPart {
  readonly judge: (params: CustomParams, context: JudgeContext) => Effect.Effect<Finding>
}

/** How long a custom condition may take to be judged. */
const timeLimit = "10 seconds"

/** A finding as an execution keeps it, without what an application has put beside. */
const kept = ({ previous, reason, source, time, value, verdict }: Finding): Finding => ({
  verdict,
  ...value === undefined ? {} : { value },
  ...previous === undefined ? {} : { previous },
  source: shownSentence(source),
  time,
  reason: shownSentence(reason)
})

const undecided = (reason: string): Finding => ({ verdict: "fails", source: "none", time: null, reason })

/** Returns the finding about a condition whose URI is not registered. */
export const unregistered = (uri: string): Finding =>
  undecided(`No condition ${uri} is registered on this node: register it with SceneExtensions.layer`)

/** Declares a kind of condition. */
export const make = <Params, R = never, R2 = never>(
  kind: CustomKind<Params, R> & {
    /** Begins with `condition/`, for example `condition/acme/on-duty`. It stays the same: scenes are stored with it. */
    readonly uri: `condition/${string}`
    /**
     * Finds out whether the condition holds. It changes nothing: it also runs when
     * somebody asks what an event would do. A judge that dies, results in something
     * else or takes longer than 10 seconds counts as a condition that fails. Of
     * `reason` and `source`, the first 1,024 characters are kept.
     */
    readonly judge: (params: Params, context: JudgeContext) => Effect.Effect<Finding, never, R2>
  }
): SceneCondition<R | R2> => {
  const { part, read } = customPart(kind)
  return {
    _tag: "SceneCondition",
    provide: (run) => ({
      ...part(run),
      judge: (params, context) =>
        Result.match(read(params), {
          onFailure: (reason) => Effect.succeed(undecided(reason)),
          onSuccess: (decoded) =>
            run(given(kind.uri, () => kind.judge(decoded, context))).pipe(
              resulting(kind.uri, "a finding", isFinding),
              Effect.map(kept),
              Effect.timeoutOrElse({
                duration: timeLimit,
                orElse: () => Effect.succeed(undecided(`${kind.uri} was not judged within ${timeLimit}`))
              }),
              Effect.catchDefect((defect) =>
                Effect.as(Effect.logError(`${kind.uri} could not be judged`, defect), undecided("Internal error"))
              )
            )
        })
    })
  }
}
