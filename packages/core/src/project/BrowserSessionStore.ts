/**
 * Port: where browser sessions are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { StoreError } from "../kernel/StoreError.ts"
import type { BrowserSession } from "./BrowserSession.ts"

/** Laws: each call is one transaction. The sessions of an access key go when it is removed, also with its project. */
export class BrowserSessionStore extends Context.Service<BrowserSessionStore, {
  /**
   * Stores a session and keeps the `limit` of its key that were created last, this
   * one among them. Returns false, and stores nothing, if there is no such key.
   */
  readonly insert: (session: BrowserSession, limit: number) => Effect.Effect<boolean, StoreError>
  /** Finds the session whose token has this hash, also one that has ended. */
  readonly find: (hash: string) => Effect.Effect<Option.Option<BrowserSession>, StoreError>
  /** Removes the session. Returns false if there is none. */
  readonly remove: (hash: string) => Effect.Effect<boolean, StoreError>
  /** Removes sessions that have ended before a time, Unix milliseconds; at most `limit`. Returns how many. */
  readonly prune: (options: { readonly before: number; readonly limit: number }) => Effect.Effect<number, StoreError>
}>()("@device-cloud/core/project/BrowserSessionStore") {}
