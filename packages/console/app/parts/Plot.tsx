/**
 * Plots over time.
 */
import { useEffect, useRef } from "preact/hooks"
import uPlot from "uplot"
import "uplot/dist/uPlot.min.css"
import { formatFigure, language, texts, useTexts } from "../text/text.ts"
import { isDark } from "../theme.ts"
import { namesOf } from "./timeAxis.ts"

/**
 * A line of a plot, for each time of the plot: a value; null where the line is
 * interrupted; undefined where it goes on without one.
 */
export interface Line {
  readonly title: string
  readonly unit?: string | undefined
  readonly values: ReadonlyArray<number | null | undefined>
  /** Holds its value until the next one, as states do. */
  readonly isStepped?: boolean
}

/** Something that happened at a time, drawn across all lines. */
export interface Mark {
  readonly at: number
  readonly title: string
}

/**
 * Draws lines over `times` (Unix milliseconds, ascending). Dragging chooses a span:
 * `onSpan` gets it. Those who do not see it hear `label`, and each line in figures.
 */
export const Plot = (
  { height = 260, label, lines, marks = [], onSpan, span, times }: {
    readonly label: string
    readonly times: ReadonlyArray<number>
    readonly lines: ReadonlyArray<Line>
    readonly marks?: ReadonlyArray<Mark>
    readonly height?: number
    /** From when to when, if it is not that of `times`. */
    readonly span?: readonly [from: number, to: number] | undefined
    readonly onSpan?: (from: number, to: number) => void
  }
) => {
  const { common } = useTexts()
  const frame = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  const state = useRef({ marks, onSpan, span })
  state.current = { marks, onSpan, span }
  const shape = lines.map(({ isStepped, title, unit }) => `${title}|${unit}|${isStepped}`).join("\n")
  const data = (): uPlot.AlignedData => [
    times.map((time) => time / 1000),
    ...lines.map(({ values }) => values as Array<number | null | undefined>)
  ]

  // A plot is made when its lines change, and given new values otherwise.
  useEffect(() => {
    const element = frame.current!
    const style = getComputedStyle(element)
    const color = (name: string) => resolve(element, style.getPropertyValue(name))
    const colors = { text: color("--text-soft"), line: color("--line") }
    const axis = { stroke: colors.text, grid: { stroke: colors.line, width: 1 }, ticks: { stroke: colors.line, width: 1 } }
    const made = new uPlot(
      {
        width: Math.max(element.clientWidth, 50),
        height,
        scales: { x: { time: true, range: (_, min, max) => spanOf(state.current.span, min, max) } },
        axes: [
          { ...axis, space: 80, values: (_, ticks, __, ___, step) => [...namesOf(ticks, step)] },
          { ...axis, size: (_, names) => widthOf(names), values: (_, ticks) => ticks.map(formatFigure) }
        ],
        series: [
          { label: common.time, value: (_, time) => time === null ? "" : exact(time * 1000) },
          ...lines.map(({ isStepped = false, title, unit }, index): uPlot.Series => ({
            label: title,
            stroke: color(`--plot-${index % 6 + 1}`),
            width: 2,
            spanGaps: false,
            points: {
              show: (_, __, first, last) => last - first < 60,
              filter: ({ data }, line, areAllShown) => areAllShown ? null : aloneIn(data[line]!),
              size: 5
            },
            value: (_, value) => value === null || value === undefined ? "–" : `${formatFigure(value)}${unit ? ` ${unit}` : ""}`,
            ...isStepped ? { paths: uPlot.paths.stepped!({ align: 1 }) } : {}
          }))
        ],
        legend: { live: true },
        cursor: { drag: { x: state.current.onSpan !== undefined, y: false, setScale: false } },
        hooks: {
          setSelect: [(drawn) => {
            const { left, width } = drawn.select
            if (width < 4) return
            state.current.onSpan?.(drawn.posToVal(left, "x") * 1000, drawn.posToVal(left + width, "x") * 1000)
            drawn.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
          }],
          draw: [(drawn) => drawMarks(drawn, state.current.marks, colors.text)]
        }
      },
      data(),
      element
    )
    plot.current = made
    const resized = new ResizeObserver(() => made.setSize({ width: Math.max(element.clientWidth, 50), height }))
    resized.observe(element)
    return () => {
      resized.disconnect()
      made.destroy()
      plot.current = undefined
    }
  }, [shape, height, isDark.value, language.value])

  useEffect(() => plot.current?.setData(data()), [times, lines, marks, span?.[0], span?.[1]])

  return <div class="plot" role="img" aria-label={[label, ...lines.map(wordsOf)].join(". ")} ref={frame} />
}

/** The room of the names at an axis, pixels. There are none before the first values. */
const widthOf = (names: ReadonlyArray<string> | null): number =>
  Math.max(64, ...(names ?? []).map((name) => 16 + 7 * name.length))

/** Which values stand alone: a line leads neither to them nor on, so that they are points or are not seen. */
const aloneIn = (values: uPlot.AlignedData[number]): Array<number> => {
  const places = [...values.keys()].filter((place) => values[place] !== undefined)
  const isInterrupted = (place: number | undefined) => place === undefined || values[place] === null
  return places.filter((place, i) =>
    !isInterrupted(place) && isInterrupted(places[i - 1]) && isInterrupted(places[i + 1])
  )
}

/** A line in figures, for those who do not see it. */
const wordsOf = ({ title, unit, values }: Line): string => {
  const { common } = texts()
  const known = values.filter((value) => typeof value === "number")
  if (known.length === 0) return common.plotEmpty(title)
  const [least, most] = known.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [
    known[0]!,
    known[0]!
  ])
  const figure = (value: number) => [formatFigure(value), unit].filter(Boolean).join(" ")
  return common.plotWords(title, figure(least), figure(most), figure(known.at(-1)!))
}

const spanOf = (
  span: readonly [number, number] | undefined,
  min: number,
  max: number
): [number, number] => {
  if (span !== undefined) return [span[0] / 1000, span[1] / 1000]
  return min === max ? [min - 60, max + 60] : [min, max]
}

const drawMarks = ({ bbox, ctx, valToPos }: uPlot, marks: ReadonlyArray<Mark>, color: string) => {
  ctx.save()
  ctx.strokeStyle = color
  ctx.fillStyle = color
  ctx.textAlign = "left"
  ctx.setLineDash([4, 4])
  let titled = -Infinity
  for (const { at, title } of [...marks].sort((a, b) => a.at - b.at)) {
    const x = valToPos(at / 1000, "x", true)
    if (x < bbox.left || x > bbox.left + bbox.width) continue
    ctx.beginPath()
    ctx.moveTo(x, bbox.top)
    ctx.lineTo(x, bbox.top + bbox.height)
    ctx.stroke()
    // Of marks that stand close together the first has its title.
    if (x < titled) continue
    const { width } = ctx.measureText(title)
    const isAtEnd = x + 4 + width > bbox.left + bbox.width
    ctx.fillText(title, isAtEnd ? x - 4 - width : x + 4, bbox.top + 12)
    titled = x + width + 12
  }
  ctx.restore()
}

/** A canvas does not know `light-dark()`: the browser says which colour it is now. */
const resolve = (element: HTMLElement, color: string): string => {
  const probe = document.createElement("span")
  probe.style.color = color
  element.append(probe)
  const resolved = getComputedStyle(probe).color
  probe.remove()
  return resolved
}

const exact = (at: number): string =>
  new Intl.DateTimeFormat(language.value, { dateStyle: "short", timeStyle: "medium" }).format(at)
