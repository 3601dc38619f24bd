/**
 * `ota-campaign`: an upgrade task for 100,000 devices, on PostgreSQL.
 */
import type { Said } from "./Cloud.ts"
import { type Comparison, median } from "./Comparison.ts"
import { withDatabase } from "./Database.ts"
import { outputOf, withServer } from "./Processes.ts"

const devices = 100_000
const rounds = 3

const ask = async ({ http }: Said, method: string, path: string, body?: object) => {
  const response = await fetch(`${http.url}/openapi/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${http.accessKey}`, "content-type": "application/json" },
    ...body === undefined ? {} : { body: JSON.stringify(body) }
  })
  const { code, data, message } = await response.json() as {
    readonly code: number
    readonly message: string
    // oxlint-disable-next-line no-explicit-any -- each call returns another body
    readonly data: any
  }
  if (code !== 0) throw new Error(`${method} ${path}: ${code} ${message}`)
  return data
}

export const otaCampaign = (): Promise<ReadonlyArray<Comparison>> =>
  withDatabase((databaseUrl) =>
    withServer("./Cloud", [JSON.stringify({ devices, databaseUrl })], async (said: Said) => {
      const productKey = (await ask(said, "GET", "/products")).results[0].product_key as string
      const ours: Array<number> = []
      const theirs: Array<number> = []
      for (let round = 0; round < rounds; round++) {
        const { id } = await ask(said, "POST", `/products/${productKey}/ota/firmwares`, {
          name: "Measured",
          version: `2.0.${round}`,
          oss_path: "https://example.com/firmware.bin",
          algorithms: 1,
          hash: "0".repeat(32)
        })
        const from = performance.now()
        const { task_id } = await ask(said, "POST", `/ota/firmwares/${id}/upgrade-tasks`, { scope_mode: 0 })
        ours.push(performance.now() - from)
        const { total } = await ask(said, "GET", `/ota/upgrade-tasks/${task_id}`)
        if (total !== devices) throw new Error(`${total} records`)
        await ask(said, "PUT", `/ota/upgrade-tasks/${task_id}/status`)
        theirs.push(
          (await outputOf<{ readonly millis: number }>("./RawRecords", [databaseUrl, String(task_id)])).millis
        )
      }
      const measured = (millis: ReadonlyArray<number>) => ({
        perSecond: Math.round(devices / (median(millis) / 1000)),
        p50: median(millis),
        p99: Math.max(...millis)
      })
      return [{
        benchmark: "ota-campaign",
        scenario: `${devices} devices, records a second`,
        reference: "one raw insert",
        ours: measured(ours),
        theirs: measured(theirs),
        // At most three times the time of the reference.
        ratio: median(theirs) / median(ours),
        bar: 1 / 3
      }]
    })
  )
