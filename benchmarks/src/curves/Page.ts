/**
 * The parts of `docs/performance.md` that are made: a picture and a table for each
 * curve, between markers.
 */
import { writeFile } from "node:fs/promises"
import { table, writeBlock } from "../profile/Page.ts"
import { type Machine, textOf } from "../suite/Machine.ts"
import { chart, describe, short } from "./Chart.ts"
import type { Curve, MeasuredCurve, MeasuredPoint, Panel } from "./Curve.ts"

const docs = new URL("../../../docs/", import.meta.url)

const cellOf = ({ bare, cloud, first }: MeasuredPoint, { figure }: Panel): string => {
  const [value, reference, other] = [cloud[figure]!, first[figure]!, bare?.[figure]]
  const ratio = reference === 0 ? "" : ` (${(value / reference).toFixed(2)} ×)`
  return `${short(value)}${ratio}${other === undefined ? "" : `, aedes ${short(other)}`}`
}

const graphOf = ({ name }: Curve): string => `performance/growth-${name}.svg`

const blockOf = (curve: Curve, measured: MeasuredCurve, machine: Machine): string =>
  [
    `### ${curve.title}`,
    curve.text,
    `![${curve.title}. ${describe(curve, measured)}](${graphOf(curve)})`,
    table([
      [curve.axis, ...curve.panels.map(({ title }) => title)],
      ...measured.points.map((point) => [short(point.point), ...curve.panels.map((panel) => cellOf(point, panel))])
    ]),
    `${textOf(machine)}.`
  ].join("\n\n")

/** What is printed of a point when it is measured. */
export const sentenceOf = (curve: Curve, point: MeasuredPoint): string =>
  `${short(point.point)} ${curve.axis}: ${
    curve.panels.map((panel) => `${panel.title} ${cellOf(point, panel)}`).join("; ")
  }\n`

/** Draws the curve, and puts it in the place of what stands between its markers. */
export const publish = async (curve: Curve, measured: MeasuredCurve, machine: Machine): Promise<void> => {
  await writeFile(new URL(graphOf(curve), docs), chart(curve, measured))
  await writeBlock(`growth-${curve.name}`, blockOf(curve, measured, machine))
}
