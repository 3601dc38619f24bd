/**
 * `million`: what 1,000,000 stored devices cost those that report, lists, and
 * everybody when a node dies that has held 100,000 of them.
 */
import { setTimeout } from "node:timers/promises"
import type { CloudPlan, Said } from "./Cloud.ts"
import { compare, type Measure, type Part, type Row, within } from "./Comparison.ts"
import { type Query, withDatabase } from "./Database.ts"
import { load, withServer } from "./Processes.ts"
import { connectToDyingNode, heldByDeadNode, storeDevices } from "./StoredDevices.ts"

const connections = 200
const many = 1_000_000
const few = 1000
const ofDyingNode = 100_000
const limits = { page: 20, offline: 15_000 }
const pageSize = 10
const reads = 20

/** A row that is held against a limit of milliseconds. */
const limited = (scenario: string, limit: number, values: ReadonlyArray<number>): Row =>
  within({ benchmark: "million", scenario, unit: "ms", limit, values })

/** How long pages of a list take, one after the other, after a first read. */
const readPages = async ({ http }: Said, query: string): Promise<ReadonlyArray<number>> => {
  const millis: Array<number> = []
  for (let i = 0; i <= reads; i++) {
    const from = performance.now()
    const response = await fetch(`${http.url}/openapi/v1/things?page_size=${pageSize}&${query}`, {
      headers: { authorization: `Bearer ${http.accessKey}` }
    })
    await response.text()
    if (response.status !== 200) throw new Error(`HTTP ${response.status}`)
    if (i > 0) millis.push(performance.now() - from)
  }
  return millis
}

/** Runs `use` on a cloud beside stored devices. */
const withStored = <A>(stored: number, use: (cloud: Said, query: Query) => Promise<A>): Promise<A> =>
  withDatabase((databaseUrl, query) => {
    const plan: CloudPlan = { devices: connections, databaseUrl }
    return withServer("./Cloud", [JSON.stringify(plan)], async (cloud: Said) => {
      await storeDevices(query, cloud.devices[0]!.deviceId, stored)
      return use(cloud, query)
    })
  })

const besideDevices: Part = () =>
  withStored(few, (beside) =>
    withStored(many, async (cloud, query) => {
      const measure = ({ devices, port }: Said): Measure => (times) =>
        load({ port, devices, job: { kind: "ingest", qos: 1, window: 8, subscribe: false, ...times } })
      const results: Array<Row> = [
        ...await compare({
          benchmark: "million",
          scenario: `${connections} connections, 1 M devices`,
          ours: measure(cloud),
          references: { "1000 devices": { bar: 0.9, measure: measure(beside) } }
        })
      ]
      const middle = Math.floor(many / pageSize / 2)
      const product = `product_key=${cloud.devices[0]!.productKey}`
      for (
        const [what, filter] of [
          ["first page", "page=1"],
          ["middle page", `page=${middle}`],
          ["first page of a status", `page=1&${product}&status=unactive`],
          ["middle page of a status", `page=${middle}&${product}&status=unactive`]
        ] as const
      ) {
        results.push(limited(`${what}, 1 M devices, ms`, limits.page, await readPages(cloud, filter)))
      }
      const untilOffline: Array<number> = []
      const whileDying: Measure = async (times) => {
        await connectToDyingNode(query, ofDyingNode)
        const died = performance.now()
        // It is held for dead after nine seconds; the load measures from then on.
        await setTimeout(8000)
        const measuring = measure(cloud)({ ...times, untilSteady: false, measureMillis: 5000 })
        while (await heldByDeadNode(query) > 0) await setTimeout(250)
        untilOffline.push(performance.now() - died)
        return measuring
      }
      results.push(
        ...await compare({
          benchmark: "million",
          scenario: "while a node dies with 100,000 devices",
          ours: whileDying,
          references: { "no node dies": { bar: 0.9, measure: measure(cloud) } }
        }),
        limited("100,000 devices of a dead node, ms until offline", limits.offline, untilOffline)
      )
      return results
    }))

export const million: ReadonlyArray<Part> = [besideDevices]
