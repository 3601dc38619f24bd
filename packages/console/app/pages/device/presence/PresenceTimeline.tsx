/**
 * When a device was online, as a band over the last days.
 */
import { useEffect, useRef, useState } from "preact/hooks"
import { now } from "../../../api/clock.ts"
import { formatNumber, language, useTexts } from "../../../text/text.ts"
import { onlineShare, type Presence, stretches } from "./connections.ts"

const hour = 3_600_000
const band = { top: 4, height: 26, axis: 48 }
/** Pixels that a name at the axis needs. */
const nameWidth = 64

/** Moves on with the time, so that the end of the band is now. */
const useNow = (): number => {
  const [at, setAt] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setAt(Date.now()), 10_000)
    return () => clearInterval(timer)
  }, [])
  return now(at)
}

interface Props {
  readonly presence: Presence
  /** ISO 8601, of the device. */
  readonly createdAt: string
  readonly days: number
}

export const PresenceTimeline = ({ createdAt, days, presence }: Props) => {
  const { device: { history } } = useTexts()
  const frame = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(320)
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)))
    observer.observe(frame.current!)
    return () => observer.disconnect()
  }, [])
  // What has just happened is later than the last look at the clock.
  const to = Math.max(useNow(), ...presence.results.slice(0, 1).map(({ time }) => Date.parse(time)))
  const from = to - days * 24 * hour
  const all = stretches(presence, Date.parse(createdAt), from, to)
  const share = onlineShare(all)
  const xOf = (at: number) => (at - from) / (to - from) * width
  const takeovers = presence.results.filter(({ kind, time }) => kind === "takeover" && Date.parse(time) > from)
  const words = share === undefined ? history.unknown : history.share(formatNumber(share, { style: "percent", maximumFractionDigits: 1 }))
  return (
    <div class="presence-band" ref={frame}>
      <p>{words}</p>
      <svg width={width} height={band.axis} role="img" aria-label={`${history.picture}: ${words}`}>
        {all.map(({ from, state, to }) => (
          <rect
            key={from}
            class={state}
            x={xOf(from)}
            width={Math.max(1, xOf(to) - xOf(from))}
            y={state === "online" ? band.top : band.top + band.height / 2 - 2}
            height={state === "online" ? band.height : 4}
          >
            <title>{`${history.states[state]}: ${timeText(from)} – ${timeText(to)}`}</title>
          </rect>
        ))}
        {takeovers.map(({ entry_id, time }) => (
          <rect key={entry_id} class="takeover" x={xOf(Date.parse(time)) - 1} width={2} y={band.top} height={band.height}>
            <title>{`${history.replaced}: ${timeText(Date.parse(time))}`}</title>
          </rect>
        ))}
        {ticksOf(from, to, Math.floor(width / nameWidth)).map(({ at, name }) => (
          <g key={at}>
            <line class="tick" x1={xOf(at)} x2={xOf(at)} y1={band.top} y2={band.top + band.height + 4} />
            <text x={Math.min(xOf(at) + 3, width - nameWidth + 14)} y={band.axis - 2}>{name}</text>
          </g>
        ))}
      </svg>
    </div>
  )
}

const timeText = (at: number): string =>
  new Intl.DateTimeFormat(language.value, { dateStyle: "medium", timeStyle: "medium" }).format(at)

/** Whole hours or days of the viewer's zone, with their names: at most so many. */
const ticksOf = (from: number, to: number, most: number) => {
  const length = (to - from) / hour
  const steps = length <= 48 ? [1, 3, 6, 12] : [24, 48, 96]
  const hours = steps.find((step) => length / step <= most) ?? steps.at(-1)!
  const format = new Intl.DateTimeFormat(
    language.value,
    hours < 24 ? { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } : { weekday: "short", day: "numeric" }
  )
  const first = new Date(from)
  // By the clock, from the midnight of the first day: an hour that the clocks skip is the next one.
  const tick = (place: number) =>
    new Date(first.getFullYear(), first.getMonth(), first.getDate(), place * hours).getTime()
  const ticks = new Set<number>()
  for (let place = 0; tick(place) <= to; place++) {
    if (tick(place) >= from) ticks.add(tick(place))
  }
  return [...ticks].map((at) => ({ at, name: format.format(at) }))
}
