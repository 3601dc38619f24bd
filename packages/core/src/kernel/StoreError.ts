/**
 * The one failure of every store port.
 */
import { Effect, Schedule, Schema } from "effect"

/**
 * A storage adapter could not carry out an operation. Nothing of the operation
 * has taken effect.
 */
export class StoreError extends Schema.TaggedError<StoreError>()("StoreError", {
  /** Port and method, for example `DeviceStore.insertMany`. */
  operation: Schema.String,
  /** The same call may succeed later: connection lost, deadlock, time-out. */
  retryable: Schema.Boolean,
  cause: Schema.Defect()
}) {
  override get message(): string {
    return `${this.operation} failed`
  }
}

const whilePassing = {
  while: ({ retryable }: StoreError) => retryable,
  schedule: Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("1 second")])
}

/** Tries again, at least once a second, for as long as the failure is one that can pass. */
export const untilStored = <A, R>(effect: Effect.Effect<A, StoreError, R>): Effect.Effect<A, StoreError, R> =>
  Effect.retry(effect, whilePassing)
