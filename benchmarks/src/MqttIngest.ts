/**
 * `mqtt-ingest-memory`, `mqtt-ingest-durable`, `mqtt-ingest-sqlite`: property posts per second, from
 * the device through validation and shadow to the reply.
 */
import { join } from "node:path"
import type { CloudPlan, Said } from "./Cloud.ts"
import { compare, type Comparison } from "./Comparison.ts"
import { withDatabase } from "./Database.ts"
import type { LoadPlan } from "./Load.ts"
import type { LoadResult } from "./Measurement.ts"
import { load, outputOf, withDirectory, withServer } from "./Processes.ts"
import type { RawUpsertPlan } from "./RawUpserts.ts"

const scenarios = [200, 2000].flatMap((connections) => [1, 8].map((window) => ({ connections, window })))
const times = { warmupMillis: 1500, measureMillis: 3000 }

const job = (qos: 0 | 1, window: number, subscribe: boolean): LoadPlan["job"] => ({
  kind: "ingest",
  qos,
  window,
  subscribe,
  ...times
})

const ingest = async (options: {
  readonly benchmark: string
  readonly qos: 0 | 1
  readonly bar: number
  readonly databaseUrl?: string
  readonly more?: (
    connections: number
  ) => Record<string, { readonly bar: number; readonly measure: () => Promise<LoadResult> }>
}): Promise<ReadonlyArray<Comparison>> => {
  const { databaseUrl, qos } = options
  const results: Array<Comparison> = []
  for (const { connections, window } of scenarios) {
    const plan: CloudPlan = { devices: connections, ...databaseUrl === undefined ? {} : { databaseUrl } }
    results.push(
      ...await withServer(
        "./Cloud",
        [JSON.stringify(plan)],
        (cloud: Said) =>
          withServer("./BareBroker", [], (bare: { readonly port: number }) =>
            compare({
              benchmark: options.benchmark,
              scenario: `${connections} connections, window ${window}`,
              bar: options.bar,
              ours: () => load({ port: cloud.port, devices: cloud.devices, job: job(qos, window, false) }),
              references: {
                "bare aedes": {
                  measure: () => load({ port: bare.port, devices: cloud.devices, job: job(qos, window, true) })
                },
                ...options.more?.(connections)
              }
            }))
      )
    )
  }
  return results
}

export const mqttIngestMemory = () => ingest({ benchmark: "mqtt-ingest-memory", qos: 0, bar: 0.8 })

/** `scene-ingest`: the same with 10,000 scenes; one in a hundred posts fires a scene. */
export const sceneIngest = async (): Promise<ReadonlyArray<Comparison>> => {
  const plan: CloudPlan = { devices: 10_000 }
  const results: Array<Comparison> = []
  for (const { connections, window } of scenarios) {
    const measure = ({ devices, port }: Said) => () =>
      load({ port, devices: devices.slice(0, connections), job: job(0, window, false) })
    results.push(
      ...await withServer(
        "./Cloud",
        [JSON.stringify(plan)],
        (without: Said) =>
          withServer("./Cloud", [JSON.stringify({ ...plan, hasScenes: true })], (having: Said) =>
            compare({
              benchmark: "scene-ingest",
              scenario: `10000 scenes, ${connections} connections, window ${window}`,
              bar: 0.9,
              ours: measure(having),
              references: { "no scenes": { measure: measure(without) } }
            }))
      )
    )
  }
  return results
}

export const mqttIngestDurable = () =>
  withDatabase((databaseUrl) =>
    ingest({
      benchmark: "mqtt-ingest-durable",
      qos: 1,
      bar: 0.4,
      databaseUrl,
      more: (connections) => {
        const plan: RawUpsertPlan = { databaseUrl, devices: connections, batch: connections, ...times }
        return {
          "raw upserts": { bar: 0.5, measure: () => outputOf<LoadResult>("./RawUpserts", [JSON.stringify(plan)]) }
        }
      }
    })
  )

/** `mqtt-ingest-sqlite`: the same on one SQLite file, in turns with PostgreSQL on the same disk. */
export const mqttIngestSqlite = () =>
  withDatabase((databaseUrl) =>
    withDirectory(async (directory) => {
      const results: Array<Comparison> = []
      for (const window of [1, 8]) {
        const start = (storage: Partial<CloudPlan>, use: (said: Said) => Promise<ReadonlyArray<Comparison>>) =>
          withServer("./Cloud", [JSON.stringify({ devices: 200, ...storage })], use)
        const measure = ({ devices, port }: Said) => () => load({ port, devices, job: job(1, window, false) })
        results.push(
          ...await start({ sqliteFile: join(directory, `${window}.sqlite`) }, (sqlite) =>
            start({ databaseUrl }, (postgres) =>
              compare({
                benchmark: "mqtt-ingest-sqlite",
                scenario: `200 connections, window ${window}`,
                bar: 0.25,
                ours: measure(sqlite),
                references: { "on PostgreSQL": { measure: measure(postgres) } }
              })))
        )
      }
      return results
    })
  )

/** `feed`: the same with a subscriber of the stream of events that reads every one. */
export const feed = () =>
  withDatabase(async (databaseUrl) => {
    const results: Array<Comparison> = []
    for (const window of [1, 8]) {
      const plan: CloudPlan = { devices: 200, databaseUrl }
      results.push(
        ...await withServer("./Cloud", [JSON.stringify(plan)], ({ devices, http, port }: Said) => {
          const measure = () => load({ port, devices, job: job(1, window, false) })
          return compare({
            benchmark: "feed",
            scenario: `200 connections, window ${window}`,
            bar: 0.85,
            ours: () => withServer("./EventReader", [http.url, http.accessKey], measure),
            references: { "no subscriber": { measure } }
          })
        })
      )
    }
    return results
  })
