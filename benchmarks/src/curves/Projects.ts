/**
 * `projects`: what many projects cost, when nothing happens and when they report.
 */
import type { LoadDevice } from "../Load.ts"
import { useOfCore } from "./Cost.ts"
import type { Curve, Subject } from "./Curve.ts"
import { costly, reporting } from "./Reporting.ts"

const devices = 10_000
/** Every fifth device reports. */
const share = 5
const idleMillis = 5000

const subject = (isDurable: boolean): Subject =>
  reporting({
    cloud: (point) => ({ plan: { devices, projects: point }, isDurable }),
    reporters: (all: ReadonlyArray<LoadDevice>) => all.filter((_, i) => i % share === 0),
    posting: { window: 1 },
    prepare: async (cloud) => {
      const idle = await useOfCore(costly(cloud), idleMillis)
      return () => Promise.resolve(idle)
    }
  })

const text = "10,000 devices are spread over the projects, each of which has a product and a model of its own; every " +
  "fifth device reports, one post at a time. "

export const projects: Curve = {
  name: "projects",
  title: "Projects",
  text: `${text}Storage in memory.`,
  axis: "projects",
  points: [1, 10, 100, 1000, 10_000],
  panels: [
    { figure: "server", title: "Server, µs for a report" },
    { figure: "idleServer", title: "Server without reports, ms of a core a second" }
  ],
  cloud: subject(false)
}

export const projectsDurable: Curve = {
  name: "projects-durable",
  title: "Projects on PostgreSQL",
  text: `${text}PostgreSQL.`,
  axis: "projects",
  points: [1, 100, 10_000],
  panels: [
    { figure: "server", title: "Server, µs for a report" },
    { figure: "database", title: "PostgreSQL, µs for a report" },
    { figure: "idleServer", title: "Server without reports, ms of a core a second" },
    { figure: "idleDatabase", title: "PostgreSQL without reports, ms of a core a second" }
  ],
  cloud: subject(true)
}
