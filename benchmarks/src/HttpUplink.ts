/**
 * `http-uplink`: property posts over HTTP per second, signed, from the request
 * through validation, shadow and history to the answer.
 */
import { createHmac } from "node:crypto"
import type { BareUplinkPlan } from "./BareUplink.ts"
import type { CloudPlan, Said } from "./Cloud.ts"
import { compare, type Measure, type Part } from "./Comparison.ts"
import type { HttpRequest } from "./HttpLoad.ts"
import type { LoadDevice } from "./Load.ts"
import { withDatabase } from "./Database.ts"
import { load, withServer } from "./Processes.ts"

const connections = 200

const body = JSON.stringify({
  id: "1",
  version: "1.0",
  params: { temperature: 21.5, humidity: { value: 48, time: 1795231554300 }, mode: "eco" },
  method: "thing.event.property.post"
})

export const postOf = ({ deviceName, deviceSecret, productKey }: LoadDevice): HttpRequest => {
  const random = "1a2b3c4d5e6f"
  const sign = createHmac("sha256", deviceSecret)
    .update(`productKey${productKey}deviceName${deviceName}random${random}`).digest("hex")
  const query = new URLSearchParams({
    product_key: productKey,
    device_name: deviceName,
    sign_method: "hmacsha256",
    random,
    sign,
    action: "PostProperty"
  })
  return {
    method: "POST",
    path: `/openapi/v1/thing-uplink?${query}`,
    headers: { "content-type": "application/json" },
    body
  }
}

const posts: Part = () =>
  withDatabase((databaseUrl) => {
    const plan: CloudPlan = { devices: connections, databaseUrl }
    return withServer("./Cloud", [JSON.stringify(plan)], ({ devices, http }: Said) => {
      const requests = devices.map(postOf)
      const measure = (port: number): Measure => (times) =>
        load({ port, devices: [], job: { kind: "http", connections, requests, ...times } })
      const known = devices.map(({ deviceId, deviceName, deviceSecret, productKey }) => ({
        deviceId,
        deviceName,
        deviceSecret,
        productKey
      }))
      const withBare = <A>(server: BareUplinkPlan["server"], use: (bare: { readonly port: number }) => Promise<A>) => {
        const barePlan: BareUplinkPlan = { server, databaseUrl, devices: known }
        return withServer("./BareUplink", [JSON.stringify(barePlan)], use)
      }
      return withBare("fastify", (withFastify) =>
        withBare("node:http", (withNodeHttp) =>
          compare({
            benchmark: "http-uplink",
            scenario: `${connections} connections`,
            ours: measure(Number(new URL(http.url).port)),
            references: {
              "fastify": { bar: 0.8, measure: measure(withFastify.port) },
              "node:http": { measure: measure(withNodeHttp.port) }
            }
          })))
    })
  })

export const httpUplink: ReadonlyArray<Part> = [posts]
