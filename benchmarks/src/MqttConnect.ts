/**
 * `mqtt-connect`: connections per second, each authenticated by its signature
 * and recorded as online before the CONNACK.
 */
import { asGuests, withBrokers } from "./brokers/Brokers.ts"
import type { Said } from "./Cloud.ts"
import { DevelopmentCertificate } from "@device-cloud/mqtt"
import { Effect } from "effect"
import { join } from "node:path"
import { compare, type Measure, type Part } from "./Comparison.ts"
import { load, withDirectory, withServer } from "./Processes.ts"

const devices = 2000
const bar = 0.8

const connecting = ({ port }: { readonly port: number }, { devices }: Said, ca?: string): Measure => (times) =>
  load({ port, devices, job: { kind: "connect", concurrency: 32, ...times }, ...ca === undefined ? {} : { ca } })

const overTcp: Part = () =>
  withServer(
    "./Cloud",
    [JSON.stringify({ devices })],
    (cloud: Said) =>
      withServer("./BareBroker", [], (bare: { readonly port: number }) =>
        withBrokers((brokers) =>
          compare({
            benchmark: "mqtt-connect",
            scenario: "TCP",
            ours: connecting(cloud, cloud),
            references: {
              "bare aedes": { bar, measure: connecting(bare, cloud) },
              ...Object.fromEntries(brokers.map((broker) => [broker.name, {
                measure: "leftOut" in broker
                  ? broker
                  : connecting(broker, { ...cloud, devices: asGuests(cloud.devices) })
              }]))
            }
          })
        ))
  )

const overTls: Part = () =>
  withDirectory(async (directory) => {
    const { authority } = await Effect.runPromise(DevelopmentCertificate.loadOrMake(directory))
    const tls = { certificate: join(directory, "server.pem"), key: join(directory, "server.key") }
    return withServer("./Cloud", [JSON.stringify({ devices, tls })], (cloud: Said) =>
      withServer("./BareTls", [tls.certificate, tls.key], (bare: { readonly port: number }) =>
        compare({
          benchmark: "mqtt-connect",
          scenario: "TLS",
          ours: connecting(cloud, cloud, authority),
          references: { "bare node:tls": { bar, measure: connecting(bare, cloud, authority) } }
        })))
  })

export const mqttConnect: ReadonlyArray<Part> = [overTcp, overTls]
