/**
 * The pictures of a curve as an SVG that stands for itself: no script, readable on
 * light and dark grounds.
 */
import type { Curve, Figures, MeasuredCurve, MeasuredPoint, Panel } from "./Curve.ts"

const panelSize = { width: 380, height: 230 }
const inner = { left: 52, right: 18, top: 34, bottom: 34 }
const head = 58
const columns = 2
/** Above this ratio of the highest to the lowest value, the second axis is logarithmic too. */
const widestLinear = 30

/** The lines of a picture, those above come last. */
const lines: ReadonlyArray<{
  readonly of: (point: MeasuredPoint) => Figures | undefined
  readonly name: string
  readonly style: string
}> = [
  { of: ({ first }) => first, name: "the first point, at the same time", style: "first" },
  { of: ({ bare }) => bare, name: "bare aedes", style: "bare" },
  { of: ({ cloud }) => cloud, name: "this point", style: "cloud" }
]

const palette = (text: string, ground: string, grid: string, cloud: string, bare: string, first: string): string =>
  `text{fill:${text}}.ground{fill:${ground}}.grid{stroke:${grid}}.cloud{stroke:${cloud}}.bare{stroke:${bare}}` +
  `.first{stroke:${first}}circle.cloud{fill:${cloud}}circle.bare{fill:${bare}}circle.first{fill:${first}}`

const style = "text{font:11px system-ui,sans-serif}.title{font-size:14px;font-weight:600}.panel{font-weight:600}" +
  "path{fill:none;stroke-width:2}.first{stroke-dasharray:4 3}.grid{stroke-width:1}" +
  palette("#1f2328", "#ffffff", "#d8dee4", "#0969da", "#bc4c00", "#6e7781") +
  `@media(prefers-color-scheme:dark){${palette("#e6edf3", "#0d1117", "#30363d", "#58a6ff", "#f0883e", "#8b949e")}}`

const escape = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

/** `1700000` as `1.7M`. */
export const short = (value: number): string => {
  const [unit, name] = value >= 1e6 ? [1e6, "M"] : value >= 1e4 ? [1e3, "k"] : [1, ""]
  const scaled = value / unit
  return `${Number(scaled.toPrecision(3)).toLocaleString("en")}${name}`
}

/** A rounded number that is at least as great. */
const above = (value: number): number => {
  const power = 10 ** Math.floor(Math.log10(value))
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => step * power >= value)! * power
}

interface Scale {
  readonly ticks: ReadonlyArray<number>
  /** The part of the height. */
  readonly at: (value: number) => number
}

const scaleOf = (values: ReadonlyArray<number>): Scale => {
  const [least, most] = [Math.min(...values), Math.max(...values)]
  if (least > 0 && most / least > widestLinear) {
    const [from, to] = [Math.floor(Math.log10(least)), Math.ceil(Math.log10(most))]
    return {
      ticks: Array.from({ length: to - from + 1 }, (_, i) => 10 ** (from + i)),
      at: (value) => (Math.log10(value) - from) / (to - from)
    }
  }
  const top = above(Math.max(most, Number.MIN_VALUE))
  return { ticks: [0, top / 2, top], at: (value) => value / top }
}

const drawPanel = (curve: Curve, points: ReadonlyArray<MeasuredPoint>, panel: Panel): string => {
  const [width, height] = [panelSize.width - inner.left - inner.right, panelSize.height - inner.top - inner.bottom]
  const drawn = lines.map((line) => ({
    ...line,
    values: points.flatMap((point) => {
      const value = line.of(point)?.[panel.figure]
      return value === undefined ? [] : [{ point: point.point, value }]
    })
  }))
  const scale = scaleOf(drawn.flatMap(({ values }) => values.map(({ value }) => value)))
  const [least, most] = [Math.log10(points[0]!.point), Math.log10(points.at(-1)!.point)]
  const x = (point: number) =>
    inner.left + (most === least ? 0.5 : (Math.log10(point) - least) / (most - least)) * width
  const y = (value: number) => inner.top + (1 - scale.at(value)) * height
  const at = (point: number, value: number) => `${x(point).toFixed(1)} ${y(value).toFixed(1)}`
  return [
    `<text class="panel" x="12" y="18">${escape(panel.title)}</text>`,
    ...scale.ticks.map((tick) =>
      `<line class="grid" x1="${inner.left}" x2="${inner.left + width}" y1="${y(tick).toFixed(1)}" y2="${
        y(tick).toFixed(1)
      }"/><text x="${inner.left - 6}" y="${(y(tick) + 4).toFixed(1)}" text-anchor="end">${short(tick)}</text>`
    ),
    ...points.map(({ point }) =>
      `<text x="${x(point).toFixed(1)}" y="${inner.top + height + 16}" text-anchor="middle">${short(point)}</text>`
    ),
    `<text x="${inner.left + width / 2}" y="${inner.top + height + 30}" text-anchor="middle">${curve.axis}</text>`,
    ...drawn.filter(({ values }) => values.length > 0).flatMap(({ style, values }) => [
      `<path class="${style}" d="M${values.map(({ point, value }) => at(point, value)).join("L")}"/>`,
      ...values.map(({ point, value }) =>
        `<circle class="${style}" cx="${x(point).toFixed(1)}" cy="${y(value).toFixed(1)}" r="3"/>`
      )
    ])
  ].join("\n")
}

/** The figures as a sentence, for those who do not see the picture. */
export const describe = (curve: Curve, { points }: MeasuredCurve): string =>
  curve.panels.map(({ figure, title }) =>
    `${title}: ${points.map(({ cloud, point }) => `${short(cloud[figure]!)} at ${short(point)}`).join(", ")}.`
  ).join(" ")

export const chart = (curve: Curve, measured: MeasuredCurve): string => {
  const wide = Math.min(columns, curve.panels.length)
  const width = Math.max(wide * panelSize.width, 480)
  const height = head + Math.ceil(curve.panels.length / columns) * panelSize.height
  const shown = lines.filter(({ of }) => measured.points.some((point) => of(point) !== undefined)).toReversed()
  let legendAt = 12
  const legend = shown.map(({ name, style }) => {
    const from = legendAt
    legendAt += 40 + name.length * 6.5
    return `<path class="${style}" d="M${from} 42h22"/><text x="${from + 28}" y="46">${name}</text>`
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" ` +
    "role=\"img\" aria-labelledby=\"title desc\">",
    `<title id="title">${escape(curve.title)}</title>`,
    `<desc id="desc">${escape(describe(curve, measured))}</desc>`,
    `<style>${style}</style>`,
    `<rect class="ground" width="${width}" height="${height}"/>`,
    `<text class="title" x="12" y="22">${escape(curve.title)}</text>`,
    ...legend,
    ...curve.panels.map((panel, i) =>
      `<g transform="translate(${i % columns * panelSize.width} ${
        head + Math.floor(i / columns) * panelSize.height
      })">\n${drawPanel(curve, measured.points, panel)}\n</g>`
    ),
    "</svg>\n"
  ].join("\n")
}
