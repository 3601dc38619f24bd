/**
 * Port: whether storage can be used right now.
 */
import { Context, type Effect } from "effect"
import type { StoreError } from "./StoreError.ts"

export class StoreHealth extends Context.Service<StoreHealth, {
  /** Succeeds if the storage can be reached now, and could write within the last two seconds. */
  readonly check: Effect.Effect<void, StoreError>
  /** Returns the latest change of the tables, such as `0046_activity`. Absent: the storage has no tables. */
  readonly migration?: Effect.Effect<string, StoreError>
}>()("@device-cloud/core/kernel/StoreHealth") {}
