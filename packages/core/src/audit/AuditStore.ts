/**
 * Port: where the audit log is kept.
 */
import { Context, type Effect } from "effect"
import type { StoreError } from "../kernel/StoreError.ts"
import type { AuditCursor, AuditEntry, AuditFilter, NewAuditEntry } from "./AuditEntry.ts"

/**
 * Laws: each call is one transaction. No call changes an entry; `prune` alone deletes
 * entries. Entries with a `claim` note, in the same transaction, that the request was
 * carried out and its response was not kept, as `answer` of an `IdempotencyStore` on
 * the same database does.
 */
export class AuditStore extends Context.Service<AuditStore, {
  /** Stores entries, all or none. */
  readonly append: (entries: ReadonlyArray<NewAuditEntry>) => Effect.Effect<void, StoreError>
  /**
   * Runs `write` and stores the entries that `entriesOf` makes of its result, in
   * one transaction: if either fails, neither has had an effect. Undefined: the
   * write has changed nothing, and nothing is committed. This holds for writes of
   * stores that share the database of this store.
   */
  readonly commit: <A, E, R>(
    write: Effect.Effect<A, E, R>,
    entriesOf: (result: A) => ReadonlyArray<NewAuditEntry> | undefined
  ) => Effect.Effect<A, E | StoreError, R>
  /**
   * Returns entries of the project that `filter` selects, the newest first:
   * `limit` of them, after `after` if it is given. A call costs the same wherever
   * it begins.
   */
  readonly read: (
    projectId: string,
    filter: AuditFilter,
    options: { readonly limit: number; readonly after?: AuditCursor | undefined }
  ) => Effect.Effect<ReadonlyArray<AuditEntry>, StoreError>
  /**
   * Deletes entries from before `before`, Unix milliseconds, the oldest first, at
   * most `limit`. Returns how many. A store may keep those of the last day.
   */
  readonly prune: (options: { readonly before: number; readonly limit: number }) => Effect.Effect<number, StoreError>
}>()("@device-cloud/core/audit/AuditStore") {}
