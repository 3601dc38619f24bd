/**
 * The one failure of every store port.
 */
import { Effect, Schema } from "effect"

/**
 * A storage adapter could not carry out an operation. The operation has had no effect;
 * if it is `retryable`, it may have had its effect, and the answer was lost.
 */
export class StoreError extends Schema.TaggedError<StoreError>()("StoreError", {
  /** Port and method, for example `DeviceStore.insertMany`. */
  operation: Schema.String,
  /** Whether the same call may succeed later, for example after a lost connection, a deadlock or a time-out. */
  retryable: Schema.Boolean,
  cause: Schema.Defect()
}) {
  override get message(): string {
    return `${this.operation} failed`
  }
}

/** Milliseconds before the first retry; each pause is twice as long as the one before. */
const firstPause = 50
const longestPause = 1000

/**
 * Tries again while the failure is retryable: after 50 ms, then with a growing
 * pause of at most 1 second. Fails with a failure that is not retryable.
 */
export const untilStored = <A, R>(effect: Effect.Effect<A, StoreError, R>): Effect.Effect<A, StoreError, R> =>
  retried(effect, firstPause)

/** Costs one step while nothing fails, and none if the effect has its result; `Effect.retry` with a schedule costs 28. */
const retried = <A, R>(effect: Effect.Effect<A, StoreError, R>, pause: number): Effect.Effect<A, StoreError, R> =>
  Effect.catchEager(effect, (error) =>
    error.retryable
      ? Effect.delay(Effect.suspend(() => retried(effect, Math.min(2 * pause, longestPause))), pause)
      : Effect.fail(error))
