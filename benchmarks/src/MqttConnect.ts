/**
 * `mqtt-connect`: connections per second, each authenticated by its signature
 * and recorded as online before the CONNACK.
 */
import type { Said } from "./Cloud.ts"
import { DevelopmentCertificate } from "@device-cloud/mqtt"
import { Effect } from "effect"
import { join } from "node:path"
import { compare, type Comparison } from "./Comparison.ts"
import type { LoadPlan } from "./Load.ts"
import { load, withDirectory, withServer } from "./Processes.ts"

const devices = 2000
const bar = 0.8

const job: LoadPlan["job"] = { kind: "connect", concurrency: 32, warmupMillis: 1500, measureMillis: 3000 }

const connect = (said: { readonly port: number }, cloud: Said, ca?: string) => () =>
  load({ port: said.port, devices: cloud.devices, job, ...ca === undefined ? {} : { ca } })

export const mqttConnect = (): Promise<ReadonlyArray<Comparison>> =>
  withDirectory(async (directory) => {
    const { authority } = await Effect.runPromise(DevelopmentCertificate.loadOrMake(directory))
    const tls = { certificate: join(directory, "server.pem"), key: join(directory, "server.key") }
    const tcp = await withServer("./Cloud", [JSON.stringify({ devices })], (cloud: Said) =>
      withServer("./BareBroker", [], (bare: { readonly port: number }) =>
        compare({
          benchmark: "mqtt-connect",
          scenario: "TCP",
          bar,
          ours: connect(cloud, cloud),
          references: { "bare aedes": { measure: connect(bare, cloud) } }
        })))
    const secure = await withServer("./Cloud", [JSON.stringify({ devices, tls })], (cloud: Said) =>
      withServer("./BareTls", [tls.certificate, tls.key], (bare: { readonly port: number }) =>
        compare({
          benchmark: "mqtt-connect",
          scenario: "TLS",
          bar,
          ours: connect(cloud, cloud, authority),
          references: { "bare node:tls": { measure: connect(bare, cloud, authority) } }
        })))
    return [...tcp, ...secure]
  })
