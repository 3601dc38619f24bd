/**
 * Port: one transaction around several calls of stores. The feed implements it.
 */
import { Context, type Effect } from "effect"
import type { StoreError } from "./StoreError.ts"

export class Transactions extends Context.Service<Transactions, {
  /**
   * Runs `work`; if it fails, none of its writes has had an effect. This holds for
   * stores that share a database.
   */
  readonly within: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E | StoreError, R>
}>()("@device-cloud/core/kernel/Transactions") {}
