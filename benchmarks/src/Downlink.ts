/**
 * `downlink`: the load sets a property over HTTP, the device receives and answers
 * the command, and the broker acknowledges the answer, which ends the command.
 */
import type { CloudPlan, Said } from "./Cloud.ts"
import { compare, type Comparison } from "./Comparison.ts"
import { withDatabase } from "./Database.ts"
import { load, withServer } from "./Processes.ts"

const connections = 200
const times = { warmupMillis: 1500, measureMillis: 3000 }

const downlinkOn = (scenario: string, databaseUrl?: string): Promise<ReadonlyArray<Comparison>> => {
  const plan: CloudPlan = { devices: connections, ...databaseUrl === undefined ? {} : { databaseUrl } }
  return withServer(
    "./Cloud",
    [JSON.stringify(plan)],
    ({ devices, http, port }: Said) =>
      withServer("./BareDownlink", [], (bare: { readonly port: number; readonly url: string }) => {
        const { accessKey } = http
        const topics = Object.fromEntries(devices.map(({ deviceId, topic }) => [deviceId, topic]))
        return compare({
          benchmark: "downlink",
          scenario,
          bar: 0.4,
          ours: () => {
            const url = `${http.url}/openapi/v1/things/{device}/properties`
            return load({ port, devices, job: { kind: "downlink", url, accessKey, subscribe: false, ...times } })
          },
          references: {
            "bare node:http and aedes": {
              measure: () => {
                // The reference needs no ids: the path is the topic.
                const known = devices.map((device) => ({
                  ...device,
                  deviceId: encodeURIComponent(topics[device.deviceId]!)
                }))
                const url = `${bare.url}/{device}`
                return load({
                  port: bare.port,
                  devices: known,
                  job: { kind: "downlink", url, accessKey, subscribe: true, ...times }
                })
              }
            }
          }
        })
      })
  )
}

export const downlink = async (): Promise<ReadonlyArray<Comparison>> => [
  ...await downlinkOn("memory"),
  ...await withDatabase((databaseUrl) => downlinkOn("PostgreSQL", databaseUrl))
]
