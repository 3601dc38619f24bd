/**
 * The one failure of every store port.
 */
import { Effect, Schedule, Schema } from "effect"

/** A storage adapter could not carry out an operation. The operation has had no effect. */
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

const whileRetryable = {
  while: ({ retryable }: StoreError) => retryable,
  schedule: Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("1 second")])
}

/**
 * Tries again while the failure is retryable: after 50 ms, then with a growing
 * pause of at most 1 second. Fails with a failure that is not retryable.
 */
export const untilStored = <A, R>(effect: Effect.Effect<A, StoreError, R>): Effect.Effect<A, StoreError, R> =>
  Effect.retry(effect, whileRetryable)
