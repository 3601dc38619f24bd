/**
 * `elements` and `values`: what larger thing models and larger messages cost.
 */
import type { Curve, Subject } from "./Curve.ts"
import { anyDevices, bareReporting, reporters, reporting } from "./Reporting.ts"

const ownProperties = 3
const variants = 10

/** Values that the memory keeps of a property: while it has fewer, each more makes it grow. */
const kept = 1000

/** The same values for all, a tenth of a degree higher in each post. */
const bodiesOf = (values: number): ReadonlyArray<string> =>
  Array.from({ length: variants }, (_, variant) =>
    JSON.stringify({
      id: "1",
      version: "1.0",
      params: Object.fromEntries(Array.from({ length: values }, (_, i) => [`p${i}`, (i % 100 + variant) / 10])),
      method: "thing.event.property.post"
    }))

export const elements: Curve = {
  name: "elements",
  title: "Properties of the thing model",
  text: "Each report has three values, whatever the model has beside them. Storage in memory.",
  axis: "properties",
  points: [3, 10, 100, 1500],
  panels: [{ figure: "server", title: "Server, µs for a report" }],
  cloud: reporting({ cloud: (point) => ({ plan: { devices: reporters, moreProperties: point - ownProperties } }) })
}

/** Adds what a value costs. */
const perValue = (subject: Subject): Subject => (point, use) =>
  subject(point, (measure) =>
    use(async () => {
      const figures = await measure()
      return { ...figures, ofValue: figures["server"]! / point }
    }))

export const values: Curve = {
  name: "values",
  title: "Values in a message",
  text:
    "The model has 1,000 properties at each point; a message has at most 200 of them. Storage in memory, which has its " +
    "1,000 values of each property already; Aedes only parses the JSON.",
  axis: "values",
  points: [1, 10, 100, 200],
  panels: [{ figure: "server", title: "Server, µs for a report" }, {
    figure: "ofValue",
    title: "Server, µs for a value"
  }],
  cloud: perValue(
    reporting({
      cloud: () => ({ plan: { devices: reporters, moreProperties: 1000 } }),
      bodies: bodiesOf,
      after: reporters * kept
    })
  ),
  bare: perValue(bareReporting(() => anyDevices(reporters), bodiesOf))
}
