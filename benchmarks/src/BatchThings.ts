/**
 * `batch-things`: creates 10,000 devices in one call of the API, on PostgreSQL.
 */
import type { Said } from "./Cloud.ts"
import { setTimeout } from "node:timers/promises"
import { compare, type Part, within } from "./Comparison.ts"
import { withDatabase } from "./Database.ts"
import type { LoadResult } from "./Measurement.ts"
import { outputOf, withServer } from "./Processes.ts"

const devices = 10_000
const limitMillis = 1000
/** Between calls. */
const restMillis = 500

/** Measures one call, in milliseconds. */
const create = async ({ http }: Said, productKey: string): Promise<number> => {
  const from = performance.now()
  const response = await fetch(`${http.url}/openapi/v1/products/${productKey}/batch-things`, {
    method: "POST",
    headers: { authorization: `Bearer ${http.accessKey}`, "content-type": "application/json" },
    body: JSON.stringify({ num: devices, desc: "measured" })
  })
  if (response.status !== 200) throw new Error(`HTTP ${response.status}`)
  await response.text()
  return performance.now() - from
}

const productOf = async ({ http }: Said): Promise<string> => {
  const response = await fetch(`${http.url}/openapi/v1/products`, {
    headers: { authorization: `Bearer ${http.accessKey}` }
  })
  const { data } = await response.json() as {
    readonly data: { readonly results: readonly [{ readonly product_key: string }] }
  }
  return data.results[0].product_key
}

/** A result of one call. */
const resultOf = (millis: number): LoadResult => ({ count: devices, seconds: millis / 1000, p50: millis, p99: millis })

const batches: Part = () =>
  withDatabase((databaseUrl) =>
    withServer("./Cloud", [JSON.stringify({ devices: 1, databaseUrl })], async (said: Said) => {
      const productKey = await productOf(said)
      const times: Array<number> = []
      const rows = await compare({
        benchmark: "batch-things",
        scenario: `${devices} devices, devices a second`,
        ours: async () => {
          const millis = await create(said, productKey)
          times.push(millis)
          await setTimeout(restMillis)
          return resultOf(millis)
        },
        references: {
          // At most twice its time.
          "one raw insert": {
            bar: 0.5,
            measure: async () => {
              const args = [databaseUrl, productKey, String(devices)]
              const { millis } = await outputOf<{ readonly millis: number }>("./RawDevices", args)
              await setTimeout(restMillis)
              return resultOf(millis)
            }
          }
        }
      })
      const limit = within({
        benchmark: "batch-things",
        scenario: `${devices} devices, ms`,
        unit: "ms",
        limit: limitMillis,
        values: times
      })
      return [...rows, limit]
    })
  )

export const batchThings: ReadonlyArray<Part> = [batches]
