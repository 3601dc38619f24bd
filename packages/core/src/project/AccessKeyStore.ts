/**
 * Port: where access keys are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { Page, PageRequest } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { AccessKey } from "./AccessKey.ts"
import type { ProjectId } from "./Project.ts"

/**
 * Laws: `insert` into a project that does not exist changes nothing and answers
 * false; `replaceOwner` leaves exactly one key of role `owner`, in one
 * transaction; `find` looks in all projects, the others only in the one given.
 */
export class AccessKeyStore extends Context.Service<AccessKeyStore, {
  readonly insert: (key: AccessKey) => Effect.Effect<boolean, StoreError>
  readonly replaceOwner: (key: AccessKey) => Effect.Effect<void, StoreError>
  readonly find: (id: string) => Effect.Effect<Option.Option<AccessKey>, StoreError>
  readonly list: (projectId: ProjectId, page: PageRequest) => Effect.Effect<Page<AccessKey>, StoreError>
  readonly remove: (projectId: ProjectId, id: string) => Effect.Effect<boolean, StoreError>
}>()("@device-cloud/core/project/AccessKeyStore") {}
