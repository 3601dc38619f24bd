/**
 * All curves, and how they are measured.
 */
import { median } from "../Comparison.ts"
import type { Curve, Figures, Measure, MeasuredCurve, MeasuredPoint, Subject } from "./Curve.ts"
import { connections, connectionsTls } from "./Connections.ts"
import { devices } from "./Devices.ts"
import { InvalidArgument } from "../suite/Arguments.ts"
import { elements, values } from "./Models.ts"
import { projects, projectsDurable } from "./Projects.ts"
import { samples } from "./Samples.ts"
import { scenes } from "./Scenes.ts"
import { subscriptions } from "./Subscriptions.ts"

/** The first argument of `npm run bench`, before the names of curves. */
export const curvesName = "curves"

const curves: ReadonlyArray<Curve> = [
  connections,
  connectionsTls,
  devices,
  samples,
  scenes,
  elements,
  values,
  projects,
  projectsDurable,
  subscriptions
]

const rounds = 2

const medians = (measured: ReadonlyArray<Figures>): Figures =>
  Object.fromEntries(
    Object.keys(measured[0]!).map((figure) => [figure, median(measured.map((figures) => figures[figure]!))])
  )

const unused: Subject = (_, use) => use(() => Promise.resolve({}))

/** The named curves, or all. Throws `InvalidArgument`. */
export const named = (names: ReadonlyArray<string>): ReadonlyArray<Curve> => {
  const known = curves.map(({ name }) => name)
  const unknown = names.filter((name) => !known.includes(name))
  if (unknown.length > 0) {
    throw new InvalidArgument(`There is no curve ${unknown.join(", ")}. There are ${known.join(", ")}.`)
  }
  return names.length === 0 ? curves : curves.filter(({ name }) => names.includes(name))
}

/** Measures the points one after the other; at each in turns with the first one, and with bare Aedes. */
export const measureCurve = async (curve: Curve, onPoint: (point: MeasuredPoint) => void): Promise<MeasuredCurve> => {
  const points: Array<MeasuredPoint> = []
  const { bare = unused, cloud } = curve
  const [start] = curve.points

  const measurePoint = (point: number, measureFirst: Measure, measureCloud: Measure) =>
    bare(point, async (measureBare) => {
      const [first, here, beside]: [Array<Figures>, Array<Figures>, Array<Figures>] = [[], [], []]
      for (let round = 0; round < rounds; round++) {
        const reference = await measureFirst()
        first.push(reference)
        here.push(measureCloud === measureFirst ? reference : await measureCloud())
        beside.push(await measureBare())
      }
      const measured = {
        point,
        cloud: medians(here),
        first: medians(first),
        ...curve.bare === undefined ? {} : { bare: medians(beside) }
      }
      points.push(measured)
      onPoint(measured)
    })

  await cloud(start!, async (measureFirst) => {
    await measurePoint(start!, measureFirst, measureFirst)
    for (const point of curve.points.slice(1)) {
      await cloud(point, (measureCloud) => measurePoint(point, measureFirst, measureCloud))
    }
  })
  return { name: curve.name, points }
}
