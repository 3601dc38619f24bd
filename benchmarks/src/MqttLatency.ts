/**
 * `mqtt-latency`: the time from post to reply at half of the rate that saturates
 * the broker, held against limits.
 */
import type { CloudPlan, Said } from "./Cloud.ts"
import { type Part, rounds, type Row, timesOf, within } from "./Comparison.ts"
import type { LoadPlan } from "./Load.ts"
import { withDatabase } from "./Database.ts"
import type { LoadResult, Times } from "./Measurement.ts"
import { load, withServer } from "./Processes.ts"

const connections = 200

const latency = (options: {
  readonly scenario: string
  readonly qos: 0 | 1
  readonly limitMillis: number
  readonly databaseUrl?: string
}): Promise<ReadonlyArray<Row>> => {
  const { databaseUrl, limitMillis, qos, scenario } = options
  const plan: CloudPlan = { devices: connections, ...databaseUrl === undefined ? {} : { databaseUrl } }
  return withServer("./Cloud", [JSON.stringify(plan)], async ({ devices, port }: Said) => {
    // One post at a time, as in the paced load: posts that come together cost less.
    const job = (times: Times): LoadPlan["job"] & { kind: "ingest" } => ({
      kind: "ingest",
      qos,
      window: 1,
      subscribe: false,
      ...times
    })
    const saturated = await load({ port, devices, job: job(timesOf(0)) })
    const perSecond = Math.floor(saturated.count / saturated.seconds / 2)
    const results: Array<LoadResult> = []
    for (let round = 0; round < rounds; round++) {
      results.push(await load({ port, devices, job: { ...job(timesOf(round)), perSecond } }))
    }
    return [
      within({
        benchmark: "mqtt-latency",
        scenario: `${scenario}, p99 in ms`,
        unit: "ms",
        limit: limitMillis,
        values: results.map(({ p99 }) => p99)
      })
    ]
  })
}

export const mqttLatency: ReadonlyArray<Part> = [
  () => latency({ scenario: "memory", qos: 0, limitMillis: 10 }),
  () => withDatabase((databaseUrl) => latency({ scenario: "PostgreSQL", qos: 1, limitMillis: 30, databaseUrl }))
]
