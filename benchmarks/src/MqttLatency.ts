/**
 * `mqtt-latency`: the time from post to reply at half of the rate that saturates
 * the broker, and the longest pause of its event loop, held against limits. `tails`:
 * the same for half an hour.
 */
import type { CloudPlan, Said } from "./Cloud.ts"
import { firstTimes, type Part, rounds, times, within } from "./Comparison.ts"
import { setTimeout } from "node:timers/promises"
import { withDatabase } from "./Database.ts"
import type { LoadPlan } from "./Load.ts"
import type { LoadResult, Times } from "./Measurement.ts"
import { load, withServer } from "./Processes.ts"

const connections = 200
/** What the load takes to start. Pauses while devices connect and code warms up do not count. */
const startMillis = 500

interface Storage {
  readonly name: string
  readonly qos: 0 | 1
  /** Milliseconds. */
  readonly limits: { readonly p99: number; readonly longest: number }
}

const memory: Storage = { name: "memory", qos: 0, limits: { p99: 10, longest: 50 } }
const postgres: Storage = { name: "PostgreSQL", qos: 1, limits: { p99: 30, longest: 100 } }

/** How long, and how often. */
interface Form {
  readonly benchmark: string
  readonly times: ReadonlyArray<Times>
}

const short: Form = { benchmark: "mqtt-latency", times: Array.from({ length: rounds }, () => times) }
const long: Form = { benchmark: "tails", times: [{ warmupMillis: 10_000, measureMillis: 1_800_000 }] }

const latency = (
  { benchmark, times }: Form,
  { limits, name, qos }: Storage,
  databaseUrl?: string
): ReturnType<Part> => {
  const plan: CloudPlan = { devices: connections, ...databaseUrl === undefined ? {} : { databaseUrl } }
  return withServer("./Cloud", [JSON.stringify(plan)], async ({ devices, longestPause, port }: Said & Gauged) => {
    // One post at a time, as in the paced load: posts that come together cost less.
    const job = (times: Times): LoadPlan["job"] & { readonly kind: "ingest" } => ({
      kind: "ingest",
      qos,
      window: 1,
      subscribe: false,
      ...times
    })
    const saturated = await load({ port, devices, job: job(firstTimes) })
    const perSecond = Math.floor(saturated.count / saturated.seconds / 2)
    const results: Array<LoadResult> = []
    const pauses: Array<number> = []
    for (const each of times) {
      const loading = load({ port, devices, job: { ...job(each), perSecond } })
      await setTimeout(startMillis + each.warmupMillis)
      await longestPause()
      results.push(await loading)
      pauses.push(await longestPause())
    }
    const row = (what: string, limit: number, values: ReadonlyArray<number>) =>
      within({ benchmark, scenario: `${name}, ${what} in ms`, unit: "ms", limit, values })
    return [
      row("p99", limits.p99, results.map(({ p99 }) => p99)),
      row("p99.9", limits.longest, results.map(({ p999 }) => p999!)),
      row("slowest post", limits.longest, [Math.max(...results.map(({ longest }) => longest!))]),
      row("longest pause of the event loop", limits.longest, [Math.max(...pauses)])
    ]
  }, { isGauged: true })
}

interface Gauged {
  readonly longestPause: () => Promise<number>
}

const partsOf = (form: Form): ReadonlyArray<Part> => [
  () => latency(form, memory),
  () => withDatabase((databaseUrl) => latency(form, postgres, databaseUrl))
]

export const mqttLatency = partsOf(short)
export const tails = partsOf(long)
