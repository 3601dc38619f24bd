/**
 * Executions of scenes: what fired the scene, what its conditions found, and what
 * became of its actions. A pending execution waits to be carried out. One that
 * has ended is an entry of the log.
 */
import { Predicate } from "effect"
import type { Reaction } from "../../events/Reactions.ts"
import type { Action } from "../definition/Action.ts"
import type { Verdict } from "../evaluation/SceneEvaluator.ts"
import type { NewExecution } from "../matching/NewExecution.ts"

/**
 * `pending`: nothing has been decided. `running`: actions are left to do. The
 * others are final. `not_met`: a condition did not hold, or no trigger any more.
 * `skipped`: the scene had been disabled. `paused`: the scene had run too often.
 * `loop`: an action would have run a scene in a circle or too deep. `limited`: it
 * would have gone beyond the budget of its root or of its project. `failed`: an
 * action has failed, or the scene could not be decided.
 */
export type ExecutionStatus =
  | "pending"
  | "running"
  | "succeeded"
  | "failed"
  | "loop"
  | "limited"
  | "not_met"
  | "skipped"
  | "paused"

/** What became of an action. */
export interface ActionOutcome {
  readonly action: Action
  /** `skipped`: its device or scene is gone or disabled. All but `pending` are final. */
  readonly status: "pending" | "succeeded" | "failed" | "skipped" | "loop" | "limited"
  /** How often it was attempted. */
  readonly attempts: number
  /** When it is attempted again, Unix milliseconds; null: never. */
  readonly nextAt: number | null
  /** Whether it was put off since its latest attempt, because its target gets enough already. Absent: no. */
  readonly hasWaited?: boolean
  /** The latest attempt, Unix milliseconds; null: there was none. */
  readonly at: number | null
  /** A sentence about the latest attempt. */
  readonly detail: string
}

/** What an attempt of an action has led to. `pending`: it is attempted again, unless it was the last time. */
export type Attempt = Pick<ActionOutcome, "status" | "detail">

const attempted: ReadonlyArray<unknown> = [
  "pending",
  "succeeded",
  "failed",
  "skipped",
  "loop",
  "limited"
] satisfies ReadonlyArray<Attempt["status"]>

export const isAttempt = (value: unknown): value is Attempt =>
  Predicate.hasProperty(value, "status") && attempted.includes(value.status) &&
  Predicate.hasProperty(value, "detail") && typeof value.detail === "string"

/** The action has not been attempted. Its turn comes at `until`, Unix milliseconds. */
export interface PutOff {
  readonly status: "put-off"
  readonly until: number
  readonly detail: string
}

/** The action has been done. */
export const succeeded = (detail: string): Attempt => ({ status: "succeeded", detail })
/** The action cannot be done. */
export const failed = (detail: string): Attempt => ({ status: "failed", detail })
/** What the action is about is gone or disabled. The execution succeeds all the same. */
export const skipped = (detail: string): Attempt => ({ status: "skipped", detail })
/** Another attempt may go better. */
export const tryAgain = (detail: string): Attempt => ({ status: "pending", detail })
/** The action would run a scene in a circle or too deep. */
export const loop = (detail: string): Attempt => ({ status: "loop", detail })
/** The action would go beyond the budget of its root or of its project. */
export const limited = (detail: string): Attempt => ({ status: "limited", detail })

/** Times that an action is attempted again. */
export const maxRetries = 5

/** Returns how long after the attempt of this number, from 1, the next one is, milliseconds: 1, 4, 16, 64, 256 seconds. */
export const retryDelay = (attempts: number): number => 1000 * 4 ** (attempts - 1)

export interface Execution extends NewExecution {
  /** The first execution of those that led to this one through `action/rule`; null: none did. */
  readonly rootId: string | null
  readonly status: ExecutionStatus
  /** A sentence about the status. */
  readonly reason: string
  /** Null: nothing has been decided. */
  readonly verdict: Verdict | null
  readonly outcomes: ReadonlyArray<ActionOutcome>
  /** When there is something to do, Unix milliseconds; null: it has ended. */
  readonly dueAt: number | null
  /** Each claim adds one: of several nodes that claim the execution, only the last may save it. */
  readonly revision: number
  /** The latest change, Unix milliseconds. */
  readonly updatedAt: number
}

/** Reactions to changes of devices are executions of scenes. Some of them may wait for a status to last. */
export const executionsOf = (reactions: ReadonlyArray<Reaction>): ReadonlyArray<NewExecution> =>
  reactions as ReadonlyArray<NewExecution>

/**
 * How long after a claim an execution is due again, unless it is saved,
 * milliseconds. Longer than any action takes.
 */
export const leaseMillis = 90_000

/** How many executions of each scene are kept after they have ended. */
export const keptExecutions = 100

/** Makes an execution as a store first keeps it. */
export const pendingExecution = (fired: NewExecution, rootId: string | null = null): Execution => ({
  rootId,
  status: "pending",
  reason: "",
  verdict: null,
  outcomes: [],
  dueAt: fired.at,
  revision: 0,
  updatedAt: fired.at,
  ...fired
})

/** Returns whether the execution is one of those that have run actions. */
export const hasFired = ({ verdict }: Pick<Execution, "verdict">): boolean => verdict?.fires === true

/** Returns the status that the outcomes of all actions imply. */
export const statusOf = (outcomes: ReadonlyArray<ActionOutcome>): ExecutionStatus => {
  const has = (status: ActionOutcome["status"]) => outcomes.some((outcome) => outcome.status === status)
  if (has("pending")) return "running"
  if (has("loop")) return "loop"
  if (has("limited")) return "limited"
  return has("failed") ? "failed" : "succeeded"
}
