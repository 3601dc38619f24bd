/**
 * Scenes: rules that act when something happens (docs/api/scenes.md). Any trigger
 * fires a scene, all its conditions must hold, and its actions run in order.
 */
import { Context, Schema } from "effect"
import { DomainError } from "../../kernel/DomainError.ts"
import type { ProductKey } from "../../product/Product.ts"
import type { ProjectId } from "../../project/Project.ts"
import type { Action } from "./Action.ts"
import type { Condition } from "./Condition.ts"
import type { SceneId } from "./SceneId.ts"
import type { Trigger } from "./Trigger.ts"

export const SceneStatus = Schema.Literals(["enable", "disable"])
export type SceneStatus = typeof SceneStatus.Type

/** What a scene does, and when. */
export interface SceneRules {
  readonly triggers: ReadonlyArray<Trigger>
  readonly conditions: ReadonlyArray<Condition>
  readonly actions: ReadonlyArray<Action>
}

/** How long a scene is paused that runs too often, milliseconds. */
export const pauseMillis = 60_000

/** Whether the scene is paused at `now`, Unix milliseconds. A pause that ends much later was noted by a clock that was ahead. */
export const isPaused = (pausedUntil: number | null, now: number): pausedUntil is number =>
  pausedUntil !== null && now < pausedUntil && pausedUntil <= now + 2 * pauseMillis

export const maxTriggers = 10
export const maxConditions = 20
export const maxActions = 50

export interface Scene extends SceneRules {
  readonly sceneId: SceneId
  readonly projectId: ProjectId
  /** Unique in the project. */
  readonly name: string
  readonly desc: string
  readonly status: SceneStatus
  /** The scene does not fire before this time, Unix milliseconds; null: it is not paused. */
  readonly pausedUntil: number | null
  /** 1 for the first; each change adds one. */
  readonly revision: number
  /** Unix milliseconds. */
  readonly createdAt: number
  /** Unix milliseconds. */
  readonly updatedAt: number
}

/** When a cron trigger fires next, Unix milliseconds; null: never. */
export interface SceneTimer {
  readonly cronId: string
  readonly sceneId: SceneId
  readonly projectId: ProjectId
  readonly cron: string
  /** By its IANA name; null: {@link SceneTimeZone}. */
  readonly timeZone: string | null
  readonly dueAt: number | null
}

/** Selects the scenes for which all given conditions hold. */
export interface SceneFilter {
  /** A text that the name contains. */
  readonly name?: string | undefined
  readonly status?: SceneStatus | undefined
}

/** Returns the products whose devices fire the scene. */
export const watchedProducts = ({ triggers }: Pick<SceneRules, "triggers">): ReadonlyArray<ProductKey> => [
  ...new Set(triggers.flatMap((trigger) => trigger._tag === "Cron" ? [] : [trigger.productKey]))
]

/** The time zone of cron triggers that have none of their own, by its IANA name. */
export const SceneTimeZone = Context.Reference<string>("@device-cloud/core/scene/definition/SceneTimeZone", {
  defaultValue: () => "UTC"
})

/** The project has no such scene. */
export class SceneNotFound extends DomainError<SceneNotFound>()(
  "SceneNotFound",
  {
    sceneId: Schema.String
  },
  ({ sceneId }) => `There is no scene ${sceneId} in this project`
) {}

/** So many executions of the project wait already. */
export class TooManyExecutions extends DomainError<TooManyExecutions>()(
  "TooManyExecutions",
  {
    limit: Schema.Int
  },
  ({ limit }) => `${limit} executions of the project wait to be carried out, and no more may`
) {}

/** The project has another scene of this name. */
export class SceneNameTaken extends DomainError<SceneNameTaken>()(
  "SceneNameTaken",
  {
    name: Schema.String
  },
  ({ name }) => `The project has another scene called ${name}`
) {}
