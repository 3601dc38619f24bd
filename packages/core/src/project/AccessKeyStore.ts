/**
 * Port: where access keys are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { Page, PageRequest } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { AccessKey } from "./AccessKey.ts"
import type { ProjectId } from "./Project.ts"

/** Laws: each call is one transaction. `find` and `removeDescendants` look in
 * all projects, the other calls only in the given one. */
export class AccessKeyStore extends Context.Service<AccessKeyStore, {
  /**
   * Stores a key. Stores nothing if the project, or the key that creates this one,
   * does not exist (any more).
   */
  readonly insert: (key: AccessKey) => Effect.Effect<"inserted" | "no-project" | "no-creator", StoreError>
  /**
   * Stores the key and removes all other keys with role `owner`, and one that has
   * its id and another hash. If the key is the owner's already, it stays as it is.
   */
  readonly replaceOwner: (key: AccessKey) => Effect.Effect<void, StoreError>
  /** Finds the key with this id. */
  readonly find: (id: string) => Effect.Effect<Option.Option<AccessKey>, StoreError>
  /** Returns a page of the keys of the project. */
  readonly list: (projectId: ProjectId, page: PageRequest) => Effect.Effect<Page<AccessKey>, StoreError>
  /**
   * Removes the key; with `cascade` also all keys that it has created, those that
   * these have created, and so on. Without `cascade` its creator becomes the creator
   * of the keys that it has created. Returns the ids of the removed keys; none if the
   * project has no such key. Never removes a key with role `owner`.
   */
  readonly remove: (
    projectId: ProjectId,
    id: string,
    options?: { readonly cascade: boolean }
  ) => Effect.Effect<ReadonlyArray<string>, StoreError>
  /**
   * Removes all keys that come from this id, directly or through others, in all
   * projects, whether a key of this id exists or not; not that key itself. Returns
   * their ids. Never removes a key with role `owner`.
   */
  readonly removeDescendants: (id: string) => Effect.Effect<ReadonlyArray<string>, StoreError>
  /** Notes the latest uses, Unix milliseconds. Skips keys that do not exist and uses that are older than a noted one. */
  readonly markUsed: (
    uses: ReadonlyArray<{ readonly id: string; readonly at: number }>
  ) => Effect.Effect<void, StoreError>
}>()("@device-cloud/core/project/AccessKeyStore") {}
