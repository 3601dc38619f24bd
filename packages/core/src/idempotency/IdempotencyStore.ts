/**
 * Port: what was answered to requests that may come again.
 */
import { Context, type Effect } from "effect"
import type { ProjectId } from "../project/Project.ts"
import type { StoreError } from "../kernel/StoreError.ts"

/** Names a request within its project. */
export interface RequestKey {
  readonly projectId: ProjectId
  readonly key: string
}

export interface StoredAnswer {
  readonly status: number
  readonly body: string
}

/** What is known of a request. */
export type Claim =
  /** Nothing: it is the caller's to answer. */
  | { readonly _tag: "Claimed" }
  /** Another caller is answering it. */
  | { readonly _tag: "InProgress"; readonly fingerprint: string }
  | { readonly _tag: "Answered"; readonly fingerprint: string; readonly answer: StoredAnswer }

/**
 * Laws: of several callers that claim a request at the same time, one gets it.
 * A claim counts until `claimExpiredBefore` when it was not answered, an answer
 * until `answerExpiredBefore` (Unix milliseconds of the claim).
 */
export class IdempotencyStore extends Context.Service<IdempotencyStore, {
  readonly claim: (
    request: RequestKey & {
      /** Tells requests of the same key apart. */
      readonly fingerprint: string
      /** Unix milliseconds. */
      readonly at: number
      readonly claimExpiredBefore: number
      readonly answerExpiredBefore: number
    }
  ) => Effect.Effect<Claim, StoreError>
  readonly answer: (request: RequestKey, answer: StoredAnswer) => Effect.Effect<void, StoreError>
  /** Takes a claim back. */
  readonly release: (request: RequestKey) => Effect.Effect<void, StoreError>
  /** Forgets what was claimed before, at most `limit`; answers how many. */
  readonly prune: (options: {
    readonly claimedBefore: number
    readonly limit: number
  }) => Effect.Effect<number, StoreError>
}>()("@device-cloud/core/idempotency/IdempotencyStore") {}
