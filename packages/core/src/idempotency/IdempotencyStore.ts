/**
 * Port: where the responses to requests that may be repeated are kept.
 */
import { Context, type Effect } from "effect"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"

/** Identifies a request: the caller's key in a project. */
export interface RequestKey {
  readonly projectId: ProjectId
  /** At most 255 visible characters of ASCII. */
  readonly key: string
}

/** Identifies a claim of a request: no two claims of one request count at the same time. */
export interface ClaimedRequest extends RequestKey {
  /** When it was claimed, Unix milliseconds. */
  readonly at: number
}

/** The stored response to a request. */
export interface StoredAnswer {
  /** HTTP status. */
  readonly status: number
  /** At most 90,000 characters. Null: the response was not kept. */
  readonly body: string | null
}

/** The state of a request. */
export type Claim =
  /** The request is new: the caller runs it. */
  | { readonly _tag: "Claimed" }
  /** Another caller runs the request. */
  | { readonly _tag: "InProgress"; readonly fingerprint: string }
  /** The response is stored. */
  | { readonly _tag: "Answered"; readonly fingerprint: string; readonly answer: StoredAnswer }

/** Laws: each call is one transaction. Of several callers that claim a request at the same time, one gets it. */
export class IdempotencyStore extends Context.Service<IdempotencyStore, {
  /**
   * Claims a request for the caller, unless another caller has claimed it. Ignores
   * a claim without response made before `claimExpiredBefore`, and one with a
   * response made before `answerExpiredBefore`.
   */
  readonly claim: (
    request: ClaimedRequest & {
      /** Tells requests of the same key apart: a hash, at most 64 characters. */
      readonly fingerprint: string
      /** Unix milliseconds. */
      readonly claimExpiredBefore: number
      /** Unix milliseconds. */
      readonly answerExpiredBefore: number
    }
  ) => Effect.Effect<Claim, StoreError>
  /** Stores the response to a claimed request. Changes nothing if the claim has expired and another caller has the request. */
  readonly answer: (request: ClaimedRequest, answer: StoredAnswer) => Effect.Effect<void, StoreError>
  /**
   * Removes a claim, so that the request can run again, unless it has an answer.
   * Leaves the claim of another caller alone, as `answer` does.
   */
  readonly release: (request: ClaimedRequest) => Effect.Effect<void, StoreError>
  /** Counts the requests of a project, at most to `limit`. */
  readonly count: (projectId: ProjectId, limit: number) => Effect.Effect<number, StoreError>
  /** Deletes requests that were claimed before `claimedBefore`, Unix milliseconds, at most `limit`. Returns how many. */
  readonly prune: (options: {
    readonly claimedBefore: number
    readonly limit: number
  }) => Effect.Effect<number, StoreError>
}>()("@device-cloud/core/idempotency/IdempotencyStore") {}
