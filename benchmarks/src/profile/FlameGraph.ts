/**
 * A flame graph as an SVG that stands for itself: no script, readable on light and dark grounds.
 */
import type { Call } from "./Profile.ts"
import type { Place } from "./Stages.ts"

const width = 1200
const rowHeight = 17
const head = 46

/** The smallest part of all time that is drawn. */
const smallest = 0.003

/** Pixels of a letter. */
const letter = 6.7

/** Colours for each group of stages, which white and black text can stand on. */
const groups: ReadonlyArray<{ readonly name: string; readonly hue: number; readonly places: ReadonlyArray<Place> }> = [
  { name: "kernel", hue: 0, places: ["kernel", "system calls"] },
  { name: "Node", hue: 205, places: ["sockets", "TLS", "HTTP"] },
  { name: "MQTT", hue: 160, places: ["packet", "topic"] },
  { name: "JSON, schemas, reply", hue: 55, places: ["JSON", "schemas", "reply"] },
  {
    name: "the domain",
    hue: 110,
    places: ["signature", "access and audit", "uplink", "model", "shadow", "scenes", "commands", "presence"]
  },
  { name: "storage", hue: 275, places: ["memory storage", "SQL text", "driver"] },
  { name: "Effect", hue: 30, places: ["Effect"] },
  { name: "collection and others", hue: 330, places: ["garbage collection", "other", "outside"] }
]

const groupOf = (place: Place): number => Math.max(0, groups.findIndex(({ places }) => places.includes(place)))

const escape = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\"", "&quot;")

const style = [
  "text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#1f2328}",
  ".h{font:bold 14px system-ui,sans-serif}",
  "rect{stroke:#fff;stroke-width:.5}",
  ...groups.map(({ hue }, group) => `.g${group}{fill:hsl(${hue} 65% 78%)}`),
  "@media(prefers-color-scheme:dark){text{fill:#f0f6fc}rect{stroke:#0d1117}",
  ...groups.map(({ hue }, group) => `.g${group}{fill:hsl(${hue} 45% 30%)}`),
  "}"
].join("")

/** Draws the calls below a root; the width of a box is its part of the time. */
export const flameGraph = (title: string, root: Call): string => {
  const boxes: Array<string> = []
  let depth = 0
  const draw = (call: Call, x: number, row: number): void => {
    depth = Math.max(depth, row + 1)
    let at = x
    const called = [...call.calls.values()].sort((a, b) => b.micros - a.micros)
    for (const below of called) {
      const part = below.micros / root.micros
      if (part < smallest) break
      const wide = part * width
      const y = head + row * rowHeight
      const fits = Math.floor((wide - 4) / letter)
      const label = fits < 3 ? "" : below.name.length <= fits ? below.name : `${below.name.slice(0, fits - 1)}…`
      boxes.push(
        `<g><title>${escape(below.name)}, ${(part * 100).toFixed(1)} %</title>` +
          `<rect class="g${groupOf(below.place)}" x="${at.toFixed(1)}" y="${y}" width="${
            wide.toFixed(1)
          }" height="16"/>` +
          (label === "" ? "" : `<text x="${(at + 2).toFixed(1)}" y="${y + 12}">${escape(label)}</text>`) +
          "</g>"
      )
      draw(below, at, row + 1)
      at += wide
    }
  }
  draw(root, 0, 0)
  let legendAt = 4
  const legend = groups.map(({ name }, group) => {
    const x = legendAt
    legendAt += 30 + name.length * 7
    return `<rect class="g${group}" x="${x}" y="27" width="12" height="12"/><text x="${x + 16}" y="37">${name}</text>`
  })
  const height = head + depth * rowHeight
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${
      escape(title)
    }">`,
    `<style>${style}</style>`,
    `<text class="h" x="4" y="17">${escape(title)}</text>`,
    ...legend,
    ...boxes,
    "</svg>",
    ""
  ].join("\n")
}
