/**
 * `mqtt-latency`: the time from post to reply at half of the rate that saturates
 * the broker. The reference is a fixed time: a ratio of 1 or more is within it.
 */
import type { CloudPlan } from "./Cloud.ts"
import { type Comparison, rounds, summarize } from "./Comparison.ts"
import type { LoadDevice, LoadPlan } from "./Load.ts"
import { withDatabase } from "./Database.ts"
import type { LoadResult } from "./Measurement.ts"
import { load, withServer } from "./Processes.ts"

const connections = 200
const times = { warmupMillis: 2000, measureMillis: 5000 }

const latency = (options: {
  readonly scenario: string
  readonly qos: 0 | 1
  readonly limitMillis: number
  readonly databaseUrl?: string
}): Promise<Comparison> => {
  const plan: CloudPlan = {
    devices: connections,
    ...options.databaseUrl === undefined ? {} : { databaseUrl: options.databaseUrl }
  }
  return withServer(
    "./Cloud",
    [JSON.stringify(plan)],
    async ({ devices, port }: { readonly port: number; readonly devices: ReadonlyArray<LoadDevice> }) => {
      // One post at a time, as in the paced load: posts that come together cost less.
      const job: LoadPlan["job"] = { kind: "ingest", qos: options.qos, window: 1, subscribe: false, ...times }
      const saturated = await load({ port, devices, job })
      const perSecond = Math.floor(saturated.count / saturated.seconds / 2)
      const results: Array<LoadResult> = []
      for (let round = 0; round < rounds; round++) {
        results.push(await load({ port, devices, job: { ...job, perSecond } }))
      }
      const ours = summarize(results)
      return {
        benchmark: "mqtt-latency",
        scenario: `${options.scenario}, ${perSecond} posts a second`,
        reference: "p99 in milliseconds",
        ours,
        theirs: { perSecond: options.limitMillis, p50: 0, p99: options.limitMillis },
        ratio: options.limitMillis / ours.p99,
        bar: 1
      }
    }
  )
}

export const mqttLatency = async (): Promise<ReadonlyArray<Comparison>> => [
  await latency({ scenario: "memory", qos: 0, limitMillis: 10 }),
  await withDatabase((databaseUrl) => latency({ scenario: "PostgreSQL", qos: 1, limitMillis: 30, databaseUrl }))
]
