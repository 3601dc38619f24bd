/**
 * `ota-campaign`: an upgrade task for 100,000 devices, on PostgreSQL.
 */
import type { Said } from "./Cloud.ts"
import { compare, type Part, within } from "./Comparison.ts"
import { withDatabase } from "./Database.ts"
import type { LoadResult } from "./Measurement.ts"
import { outputOf, withServer } from "./Processes.ts"

const devices = 100_000
const limitMillis = 10_000

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

/** A result of one task. */
const resultOf = (millis: number): LoadResult => ({ count: devices, seconds: millis / 1000, p50: millis, p99: millis })

const campaigns: Part = () =>
  withDatabase((databaseUrl) =>
    withServer("./Cloud", [JSON.stringify({ devices, databaseUrl })], async (said: Said) => {
      const productKey = (await ask(said, "GET", "/products")).results[0].product_key as string
      const times: Array<number> = []
      let lastTask = ""
      const create = async () => {
        const { id } = await ask(said, "POST", `/products/${productKey}/ota/firmwares`, {
          name: "Measured",
          version: `2.0.${times.length}`,
          oss_path: "https://example.com/firmware.bin",
          algorithms: 1,
          hash: "0".repeat(32)
        })
        const from = performance.now()
        const { task_id } = await ask(said, "POST", `/ota/firmwares/${id}/upgrade-tasks`, { scope_mode: 0 })
        const millis = performance.now() - from
        times.push(millis)
        const { total } = await ask(said, "GET", `/ota/upgrade-tasks/${task_id}`)
        if (total !== devices) throw new Error(`${total} records`)
        await ask(said, "PUT", `/ota/upgrade-tasks/${task_id}/status`)
        lastTask = String(task_id)
        return resultOf(millis)
      }
      const rows = await compare({
        benchmark: "ota-campaign",
        scenario: `${devices} devices, records a second`,
        ours: create,
        references: {
          // At most three times its time.
          "one raw insert": {
            bar: 1 / 3,
            measure: async () =>
              resultOf((await outputOf<{ readonly millis: number }>("./RawRecords", [databaseUrl, lastTask])).millis)
          }
        }
      })
      const limit = within({
        benchmark: "ota-campaign",
        scenario: `${devices} devices, ms`,
        unit: "ms",
        limit: limitMillis,
        values: times
      })
      return [...rows, limit]
    })
  )

export const otaCampaign: ReadonlyArray<Part> = [campaigns]
