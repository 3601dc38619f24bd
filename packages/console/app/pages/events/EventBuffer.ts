/**
 * The latest events of a stream, of which a page shows some: it stays as small
 * after an hour as after a minute.
 */
import type { LiveEvent } from "../../api/live.ts"

/** How many events are kept for the page. */
export const capacity = 100

export interface EventBuffer {
  /** The newest first. */
  readonly shown: ReadonlyArray<LiveEvent>
  /** What came while the list was paused, the newest first. */
  readonly waiting: ReadonlyArray<LiveEvent>
  /** How many of those were dropped. */
  readonly dropped: number
}

export const empty: EventBuffer = { shown: [], waiting: [], dropped: 0 }

/** `events` in the order in which they came. */
export const add = (
  { dropped, shown, waiting }: EventBuffer,
  events: ReadonlyArray<LiveEvent>,
  isPaused: boolean
): EventBuffer => {
  const newest = events.slice(-capacity).toReversed()
  if (!isPaused) return { shown: [...newest, ...shown].slice(0, capacity), waiting, dropped }
  const all = waiting.length + events.length
  return { shown, waiting: [...newest, ...waiting].slice(0, capacity), dropped: dropped + Math.max(0, all - capacity) }
}

/** Shows what has waited. */
export const resume = ({ shown, waiting }: EventBuffer): EventBuffer => ({
  shown: [...waiting, ...shown].slice(0, capacity),
  waiting: [],
  dropped: 0
})
