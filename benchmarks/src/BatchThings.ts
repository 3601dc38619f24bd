/**
 * `batch-things`: creates 10,000 devices in one call of the API, on PostgreSQL.
 */
import type { Said } from "./Cloud.ts"
import { setTimeout } from "node:timers/promises"
import { type Comparison, median } from "./Comparison.ts"
import { withDatabase } from "./Database.ts"
import { outputOf, withServer } from "./Processes.ts"

const rounds = 5
const devices = 10_000

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

export const batchThings = (): Promise<ReadonlyArray<Comparison>> =>
  withDatabase((databaseUrl) =>
    withServer("./Cloud", [JSON.stringify({ devices: 1, databaseUrl })], async (said: Said) => {
      const productKey = await productOf(said)
      const ours: Array<number> = []
      const theirs: Array<number> = []
      for (let round = 0; round < rounds; round++) {
        ours.push(await create(said, productKey))
        await setTimeout(500)
        theirs.push(
          (await outputOf<{ readonly millis: number }>("./RawDevices", [databaseUrl, productKey, String(devices)]))
            .millis
        )
        await setTimeout(500)
      }
      const measured = (millis: ReadonlyArray<number>) => ({
        perSecond: Math.round(devices / (median(millis) / 1000)),
        p50: median(millis),
        p99: Math.max(...millis)
      })
      return [{
        benchmark: "batch-things",
        scenario: `${devices} devices, devices a second`,
        reference: "one raw insert",
        ours: measured(ours),
        theirs: measured(theirs),
        // At most twice the time of the reference.
        ratio: median(theirs) / median(ours),
        bar: 0.5
      }]
    })
  )
