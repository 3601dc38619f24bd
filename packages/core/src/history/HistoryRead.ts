/**
 * What a read of a property asks for: its values, or points that sum up its numeric
 * values by intervals of time.
 */
import { Effect, Schema } from "effect"
import { type InputIssue, InvalidInput } from "../kernel/InvalidInput.ts"
import type { HistoryIntervals } from "./Aggregate.ts"
import type { HistoryRange } from "./HistoryEntry.ts"

/** How many values one call may ask for: 1 to 1000. */
export const HistoryLimit = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1000 }))

/** What a point can say about the numeric values of its interval. */
export const HistoryFunction = Schema.Literals(["avg", "min", "max", "first", "last", "count", "sum"])
export type HistoryFunction = typeof HistoryFunction.Type

/**
 * What becomes of intervals without a numeric value. `none`: they are left out.
 * `null`: they are points without one. `previous`: the value that held before.
 */
export const HistoryFill = Schema.Literals(["none", "null", "previous"])
export type HistoryFill = typeof HistoryFill.Type

/** The length of an interval in seconds: 1 to 2,592,000, which is 30 days. */
export const HistoryInterval = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2_592_000 }))

/** A time in Unix milliseconds that a date can hold. */
export const HistoryTime = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 8.64e15 }))

/** Points of one property, at most. */
export const maxPoints = 10_000

/** What a caller says. */
export interface HistoryDraft {
  /** Unix milliseconds, inclusive. Default 0; with `aggregate` there is no default. */
  readonly start?: number | undefined
  /** Unix milliseconds, inclusive. Default: no end; with `aggregate`: now. */
  readonly end?: number | undefined
  /** Values at most, 1 to 1000. Default 100; not with `aggregate`. */
  readonly limit?: number | undefined
  /** By time. Default `desc`. */
  readonly order?: "asc" | "desc" | undefined
  /** Asks for points in place of values. */
  readonly aggregate?: ReadonlyArray<HistoryFunction> | undefined
  /** Seconds. Intervals begin at multiples of it since 1970-01-01T00:00:00Z. */
  readonly interval?: number | undefined
  /** Default `none`. */
  readonly fill?: HistoryFill | undefined
}

/** Points of whole intervals: the first one begins at `start`, the last one ends after `end`. */
export interface HistoryPlot extends HistoryIntervals {
  readonly fill: HistoryFill
  /** By time. */
  readonly order: "asc" | "desc"
}

export type HistoryRead =
  | { readonly _tag: "Values"; readonly range: HistoryRange }
  | { readonly _tag: "Points"; readonly plot: HistoryPlot; readonly functions: ReadonlyArray<HistoryFunction> }

/** Returns how many points a plot has at most: one for each interval. */
export const pointCount = ({ end, interval, start }: HistoryIntervals): number =>
  end < start ? 0 : Math.floor((end - start) / interval) + 1

/** Returns what a draft asks for at `now`, Unix milliseconds. Fails if its fields do not fit each other. */
export const historyRead = (draft: HistoryDraft, now: number): Effect.Effect<HistoryRead, InvalidInput> => {
  const { aggregate, end = 8.64e15, limit = 100, order = "desc", start = 0 } = draft
  if (aggregate === undefined) {
    return checked(
      (["interval", "fill"] as const).flatMap((field) =>
        draft[field] === undefined ? [] : [{ path: [field], message: "Expected only with aggregate" }]
      ),
      { _tag: "Values", range: { start, end, limit, order } }
    )
  }
  const plot = plotOf(draft, now)
  const count = pointCount(plot)
  return checked([
    ...(["start", "interval"] as const).flatMap((field) =>
      draft[field] === undefined ? [{ path: [field], message: "Expected a number: aggregate needs it" }] : []
    ),
    ...draft.limit === undefined ? [] : [{ path: ["limit"], message: "Expected only without aggregate" }],
    ...draft.interval !== undefined && draft.start !== undefined && count > maxPoints
      ? [{
        path: ["interval"],
        message: `Expected at most ${maxPoints} intervals from start to end; there are ${count}`
      }]
      : []
  ], { _tag: "Points", plot, functions: aggregate })
}

const checked = (issues: ReadonlyArray<InputIssue>, read: HistoryRead): Effect.Effect<HistoryRead, InvalidInput> => {
  const [first, ...rest] = issues
  return first === undefined ? Effect.succeed(read) : Effect.fail(new InvalidInput({ issues: [first, ...rest] }))
}

/** Widens the range to whole intervals. */
const plotOf = ({ end, fill = "none", interval = 1, order = "desc", start = 0 }: HistoryDraft, now: number) => {
  const length = interval * 1000
  const last = Math.floor((end ?? now) / length) * length
  return {
    start: Math.floor(start / length) * length,
    end: (end ?? now) < start ? -1 : Math.min(last + length - 1, 8.64e15),
    interval: length,
    fill,
    order
  }
}
