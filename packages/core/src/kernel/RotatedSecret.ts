/**
 * Secrets that are replaced while their holders still use the one before: both
 * count for a time (docs/protocol/signatures.md).
 */
import { Schema } from "effect"

/** The secret before the current one. */
export const PreviousSecret = Schema.Struct({
  secret: Schema.String,
  /** Until when it counts, Unix milliseconds. */
  until: Schema.Int
})
export interface PreviousSecret extends Schema.Schema.Type<typeof PreviousSecret> {}

/** How long a replaced secret counts at most, seconds: a week. */
export const maxOverlap = 604_800

/** What the caller decides about a rotation. */
export const RotationDraft = Schema.Struct({
  /** How long the secret before counts, seconds. Default: an hour; 0: it stops counting at once. */
  overlap: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: maxOverlap })))
})
export interface RotationDraft extends Schema.Schema.Type<typeof RotationDraft> {}

/** How long the secret before counts, seconds, unless the caller says otherwise. */
export const defaultOverlap = 3600

/** A new secret on its way to the store. Times are Unix milliseconds. */
export interface Rotation {
  readonly secret: string
  /** Until when the secret before counts; null: it stops counting at once. */
  readonly previousUntil: number | null
  readonly at: number
}

/**
 * Returns the secret for which `isRight` is true: the current one, or the previous
 * one while it counts at `now`. An empty secret is never right: a store returns it
 * in place of one that it cannot read.
 */
export const rightSecret = (
  current: string,
  previous: PreviousSecret | null,
  now: number,
  isRight: (secret: string) => boolean
): string | undefined => {
  if (current !== "" && isRight(current)) return current
  return previous !== null && previous.secret !== "" && now < previous.until && isRight(previous.secret)
    ? previous.secret
    : undefined
}
