/**
 * From when to when a plot goes: the address says so.
 */
import { useEffect, useState } from "preact/hooks"
import { now } from "../../../api/clock.ts"
import { useUrl } from "../../../parts/useUrl.ts"

/** Spans that end now, in milliseconds. */
export const ranges = { hour: 3_600_000, day: 86_400_000, week: 604_800_000, month: 2_592_000_000 } as const
export type Range = keyof typeof ranges

export interface Span {
  /** Undefined: a span of one's own. */
  readonly range: Range | undefined
  /** Unix milliseconds. */
  readonly from: number
  readonly to: number
  readonly setRange: (range: Range) => void
  readonly setOwn: (from: number, to: number) => void
}

/** The latest time that there is, Unix milliseconds. */
const latest = 8.64e15

/** Spans that end now move on with the clock. */
const tick = 5000

export const useSpan = (): Span => {
  const url = useUrl()
  const [at, setAt] = useState(Date.now)
  const from = Number(url.get("from"))
  const to = Number(url.get("to"))
  const isOwn = from > 0 && to > from && to <= latest
  useEffect(() => {
    if (isOwn) return
    setAt(Date.now())
    const timer = setInterval(() => setAt(Date.now()), tick)
    return () => clearInterval(timer)
  }, [isOwn])
  const setRange = (range: Range) => url.set({ range: range === "day" ? "" : range, from: "", to: "" })
  const setOwn = (from: number, to: number) => url.set({ from: Math.round(from), to: Math.round(to) })
  if (isOwn) return { range: undefined, from, to, setRange, setOwn }
  const range = Object.hasOwn(ranges, url.get("range")) ? url.get("range") as Range : "day"
  return { range, from: now(at) - ranges[range], to: now(at), setRange, setOwn }
}
