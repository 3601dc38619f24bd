/**
 * `downlink`: the load sets a property over HTTP, the device receives and answers
 * the command, and the broker acknowledges the answer, which ends the command. Of two
 * nodes on one database, the device is connected to the one that gets the request, or
 * to the other one.
 */
import type { CloudPlan, Said } from "./Cloud.ts"
import { compare, type Part } from "./Comparison.ts"
import { withDatabase } from "./Database.ts"
import type { Times } from "./Measurement.ts"
import { load, withServer } from "./Processes.ts"

const connections = 200

const measureThrough = ({ devices, port }: Said, { accessKey, url }: Said["http"]) => (times: Times) =>
  load({
    port,
    devices,
    job: {
      kind: "downlink",
      url: `${url}/openapi/v1/things/{device}/properties`,
      accessKey,
      subscribe: false,
      ...times
    }
  })

const downlinkOn = (scenario: string, bar: number, databaseUrl?: string): ReturnType<Part> => {
  const plan: CloudPlan = { devices: connections, ...databaseUrl === undefined ? {} : { databaseUrl } }
  return withServer(
    "./Cloud",
    [JSON.stringify(plan)],
    (said: Said) =>
      withServer("./BareDownlink", [], (bare: { readonly port: number; readonly url: string }) => {
        const { devices, http } = said
        const { accessKey } = http
        const topics = Object.fromEntries(devices.map(({ deviceId, topic }) => [deviceId, topic]))
        return compare({
          benchmark: "downlink",
          scenario,
          ours: measureThrough(said, http),
          references: {
            "bare node:http and aedes": {
              bar,
              measure: (times) => {
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

const downlinkThroughAnother = (databaseUrl: string): ReturnType<Part> => {
  const cloud = (devices: number): ReadonlyArray<string> => {
    const plan: CloudPlan = { devices, databaseUrl }
    return [JSON.stringify(plan)]
  }
  return withServer(
    "./Cloud",
    cloud(connections),
    (own: Said) =>
      withServer("./Cloud", cloud(0), (other: Said) =>
        compare({
          benchmark: "downlink",
          scenario: "PostgreSQL, through another node",
          ours: measureThrough(own, other.http),
          references: { "through its own node": { bar: 0.8, measure: measureThrough(own, own.http) } }
        }))
  )
}

export const downlink: ReadonlyArray<Part> = [
  () => downlinkOn("memory", 0.6),
  () => withDatabase((databaseUrl) => downlinkOn("PostgreSQL", 0.5, databaseUrl)),
  () => withDatabase(downlinkThroughAnother)
]
