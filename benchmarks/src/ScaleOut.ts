/**
 * `scale-out`: reports of 200 connections on two nodes beside the same on one, with
 * one PostgreSQL, on the same cores.
 */
import type { CloudPlan, Said } from "./Cloud.ts"
import { compare, type Part } from "./Comparison.ts"
import { withDatabase } from "./Database.ts"
import type { LoadDevice } from "./Load.ts"
import type { LoadResult, Times } from "./Measurement.ts"
import { load, withServer } from "./Processes.ts"

const connections = 200

/** Both halves measure at the same time: the warm-up of each is as long. */
const together = ({ untilSteady = false, ...times }: Times): Times =>
  untilSteady ? { ...times, warmupMillis: 6000 } : times

/** Two loads at the same time, each with half of the connections. */
const loadHalves = async (
  devices: ReadonlyArray<LoadDevice>,
  ports: readonly [number, number],
  window: number,
  times: Times
): Promise<LoadResult> => {
  const half = connections / 2
  const [first, second] = await Promise.all(ports.map((port, i) =>
    load({
      port,
      devices: devices.slice(i * half, (i + 1) * half),
      job: { kind: "ingest", qos: 1, window, subscribe: false, ...together(times) }
    })
  )) as [LoadResult, LoadResult]
  return {
    count: first.count + second.count,
    seconds: Math.max(first.seconds, second.seconds),
    p50: Math.max(first.p50, second.p50),
    p99: Math.max(first.p99, second.p99)
  }
}

const twoNodes = (window: number): Part => () =>
  withDatabase((databaseUrl) => {
    const plan = (devices: number): string => JSON.stringify({ devices, databaseUrl } satisfies CloudPlan)
    return withServer("./Cloud", [plan(connections)], (one: Said) =>
      withServer("./Cloud", [plan(0)], (other: Said) => {
        const { devices } = one
        return compare({
          benchmark: "scale-out",
          scenario: `${connections} connections, window ${window}, two nodes`,
          ours: (times) => loadHalves(devices, [one.port, other.port], window, times),
          references: {
            "one node": {
              bar: 0.95,
              measure: (times) => loadHalves(devices, [one.port, one.port], window, times)
            }
          }
        })
      }))
  })

export const scaleOut: ReadonlyArray<Part> = [twoNodes(1), twoNodes(8)]
