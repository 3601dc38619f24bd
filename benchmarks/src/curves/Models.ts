/**
 * `elements` and `values`: what larger thing models and larger messages cost.
 */
import type { Curve, Subject } from "./Curve.ts"
import { anyDevices, bareReporting, type Posts, reporters, reporting } from "./Reporting.ts"

const ownProperties = 3
const variants = 10

/** A message has at most so many properties; more values are several of each. */
const maxProperties = 200
/** Values that the memory keeps of a property: while it has fewer, each more makes it grow. */
const kept = 1000

/** The same values for all, a tenth of a degree higher in each post. */
const postsOf = (values: number): Posts => {
  const ofProperty = Math.ceil(values / maxProperties)
  const valueOf = (i: number, variant: number) => (i % 100 + variant) / 10
  const bodiesOf = (method: string, paramsOf: (variant: number) => unknown) =>
    Array.from(
      { length: variants },
      (_, variant) => JSON.stringify({ id: "1", version: "1.0", params: paramsOf(variant), method })
    )
  const ofEach = <A>(valuesOf: (i: number) => A) =>
    Object.fromEntries(Array.from({ length: values / ofProperty }, (_, i) => [`p${i}`, valuesOf(i)]))
  const after = reporters * kept / ofProperty
  if (ofProperty === 1) {
    const bodies = bodiesOf("thing.event.property.post", (variant) => ofEach((i) => valueOf(i, variant)))
    return { name: "thing/event/property/post", bodies, after }
  }
  const now = Date.now()
  const bodies = bodiesOf("thing.event.property.batch.post", (variant) => ({
    properties: ofEach((i) =>
      Array.from({ length: ofProperty }, (_, n) => ({ value: valueOf(i + n, variant), time: now + n }))
    )
  }))
  return { name: "thing/event/property/batch/post", bodies, after }
}

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
    "The model has 1,000 properties at each point. Up to 200 values are of one property each; 1,000 are a batch of " +
    "five of each of 200 properties. Storage in memory, which has its 1,000 values of each property already; Aedes " +
    "only parses the JSON.",
  axis: "values",
  points: [1, 10, 100, maxProperties, 1000],
  panels: [{ figure: "server", title: "Server, µs for a report" }, {
    figure: "ofValue",
    title: "Server, µs for a value"
  }],
  cloud: perValue(
    reporting({ cloud: () => ({ plan: { devices: reporters, moreProperties: 1000 } }), posts: postsOf })
  ),
  bare: perValue(bareReporting(() => anyDevices(reporters), postsOf))
}
