/**
 * Port: where access keys are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { Page, PageRequest } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { AccessKey } from "./AccessKey.ts"
import type { ProjectId } from "./Project.ts"

/** Laws: each call is one transaction. `find` looks in all projects, the other calls only in the given one. */
export class AccessKeyStore extends Context.Service<AccessKeyStore, {
  /** Stores a key. Returns false and changes nothing if the project does not exist. */
  readonly insert: (key: AccessKey) => Effect.Effect<boolean, StoreError>
  /** Stores the key and removes all other keys with role `owner`. */
  readonly replaceOwner: (key: AccessKey) => Effect.Effect<void, StoreError>
  /** Finds the key with this id. */
  readonly find: (id: string) => Effect.Effect<Option.Option<AccessKey>, StoreError>
  /** Returns a page of the keys of the project. */
  readonly list: (projectId: ProjectId, page: PageRequest) => Effect.Effect<Page<AccessKey>, StoreError>
  /** Removes the key. Returns false if the project has no such key. */
  readonly remove: (projectId: ProjectId, id: string) => Effect.Effect<boolean, StoreError>
}>()("@device-cloud/core/project/AccessKeyStore") {}
