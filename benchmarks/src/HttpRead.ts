/**
 * `http-read`: details of devices per second, by id, over HTTP.
 */
import { deepStrictEqual } from "node:assert"
import type { BareReadPlan } from "./BareRead.ts"
import type { CloudPlan, Said } from "./Cloud.ts"
import { compare, type Measure, type Part } from "./Comparison.ts"
import type { HttpRequest } from "./HttpLoad.ts"
import type { LoadDevice } from "./Load.ts"
import { withDatabase } from "./Database.ts"
import { load, withServer } from "./Processes.ts"

const devices = 1000
const connections = 100

/** The response without secrets, which the reference reads in their sealed form. */
const answerOf = async (port: number, { headers, path }: HttpRequest): Promise<unknown> => {
  const text = await (await fetch(`http://127.0.0.1:${port}${path}`, { headers })).text()
  return JSON.parse(text, (name, value: unknown) => name.endsWith("_secret") ? "" : value)
}

export const detailOf = (accessKey: string) => ({ deviceId }: LoadDevice): HttpRequest => ({
  method: "GET",
  path: `/openapi/v1/things/${deviceId}/detail`,
  headers: { authorization: `Bearer ${accessKey}` }
})

const details: Part = () =>
  withDatabase((databaseUrl) => {
    const plan: CloudPlan = { devices, databaseUrl }
    return withServer("./Cloud", [JSON.stringify(plan)], (cloud: Said) => {
      const { accessKey, url } = cloud.http
      const requests = cloud.devices.map(detailOf(accessKey))
      const measure = (port: number): Measure => (times) =>
        load({ port, devices: [], job: { kind: "http", connections, requests, ...times } })
      const withBare = <A>(server: BareReadPlan["server"], use: (bare: { readonly port: number }) => Promise<A>) => {
        const barePlan: BareReadPlan = { server, databaseUrl, accessKey }
        return withServer("./BareRead", [JSON.stringify(barePlan)], use)
      }
      return withBare("fastify", (withFastify) =>
        withBare("node:http", async (withNodeHttp) => {
          const port = Number(new URL(url).port)
          for (const bare of [withFastify, withNodeHttp]) {
            deepStrictEqual(await answerOf(bare.port, requests[0]!), await answerOf(port, requests[0]!))
          }
          return compare({
            benchmark: "http-read",
            scenario: `${connections} connections`,
            ours: measure(port),
            references: {
              "fastify": { bar: 0.9, measure: measure(withFastify.port) },
              "node:http": { measure: measure(withNodeHttp.port) }
            }
          })
        }))
    })
  })

export const httpRead: ReadonlyArray<Part> = [details]
