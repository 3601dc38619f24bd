/**
 * `scenes`: what scenes that are merely stored cost a report.
 */
import type { Curve } from "./Curve.ts"
import { reporters, reporting } from "./Reporting.ts"

export const scenes: Curve = {
  name: "scenes",
  title: "Stored scenes",
  text: "Each scene is one of a device of its own, of the same product; the devices that report have none. " +
    "Storage in memory.",
  axis: "scenes",
  points: [10, 100, 1000, 10_000, 100_000],
  panels: [{ figure: "server", title: "Server, µs for a report" }],
  cloud: reporting({ cloud: (point) => ({ plan: { devices: reporters + point, scenes: point } }) })
}
