/**
 * `scale-out`: reports of 200 connections on two nodes beside the same on one, with
 * one PostgreSQL, on the same cores.
 */
import type { CloudPlan, Said } from "./Cloud.ts"
import { compare, type Comparison } from "./Comparison.ts"
import { withDatabase } from "./Database.ts"
import type { LoadDevice } from "./Load.ts"
import type { LoadResult } from "./Measurement.ts"
import { load, withServer } from "./Processes.ts"

const connections = 200

/** Two loads at the same time, each with half of the connections. */
const loadHalves = async (
  devices: ReadonlyArray<LoadDevice>,
  ports: readonly [number, number],
  window: number
): Promise<LoadResult> => {
  const half = connections / 2
  const [first, second] = await Promise.all(ports.map((port, i) =>
    load({
      port,
      devices: devices.slice(i * half, (i + 1) * half),
      job: { kind: "ingest", qos: 1, window, subscribe: false, warmupMillis: 1500, measureMillis: 3000 }
    })
  )) as [LoadResult, LoadResult]
  return {
    count: first.count + second.count,
    seconds: Math.max(first.seconds, second.seconds),
    p50: Math.max(first.p50, second.p50),
    p99: Math.max(first.p99, second.p99)
  }
}

export const scaleOut = (): Promise<ReadonlyArray<Comparison>> =>
  withDatabase((databaseUrl) => {
    const plan = (devices: number): string => JSON.stringify({ devices, databaseUrl } satisfies CloudPlan)
    return withServer("./Cloud", [plan(connections)], (one: Said) =>
      withServer("./Cloud", [plan(0)], async (other: Said) => {
        const results: Array<Comparison> = []
        for (const window of [1, 8]) {
          results.push(
            ...await compare({
              benchmark: "scale-out",
              scenario: `${connections} connections, window ${window}, two nodes`,
              bar: 0.95,
              ours: () =>
                loadHalves(one.devices, [one.port, other.port], window),
              references: {
                "one node": {
                  measure: () =>
                    loadHalves(one.devices, [one.port, one.port], window)
                }
              }
            })
          )
        }
        return results
      }))
  })
