/**
 * `mqtt-ingest-memory`, `mqtt-ingest-durable`, `mqtt-ingest-sqlite`: property posts per second, from
 * the device through validation and shadow to the reply.
 */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { asGuests, type Broker, withBrokers } from "./brokers/Brokers.ts"
import type { CloudPlan, Said } from "./Cloud.ts"
import { compare, type Measure, type Part, type Reference } from "./Comparison.ts"
import type { CopiedRowsPlan } from "./CopiedRows.ts"
import { withDatabase } from "./Database.ts"
import type { LoadPlan } from "./Load.ts"
import type { LoadResult, Times } from "./Measurement.ts"
import { load, outputOf, withDirectory, withServer } from "./Processes.ts"
import type { RawUpsertPlan } from "./RawUpserts.ts"

interface Scenario {
  readonly connections: number
  readonly window: number
}

const scenarios: ReadonlyArray<Scenario> = [200, 2000].flatMap((connections) =>
  [1, 8].map((window) => ({ connections, window }))
)

const textOf = ({ connections, window }: Scenario): string => `${connections} connections, window ${window}`

const job = (
  qos: 0 | 1,
  window: number,
  subscribe: boolean,
  times: Times
): LoadPlan["job"] & { readonly kind: "ingest" } => ({
  kind: "ingest",
  qos,
  window,
  subscribe,
  ...times
})

/** Posts of the cloud's first devices. */
const posting = ({ devices, port }: Said, qos: 0 | 1, { connections, window }: Scenario): Measure => (times) =>
  load({ port, devices: devices.slice(0, connections), job: job(qos, window, false, times) })

const withCloud = <A>(plan: CloudPlan, use: (cloud: Said) => Promise<A>): Promise<A> =>
  withServer("./Cloud", [JSON.stringify(plan)], use)

/** One scenario is compared with the brokers of others. */
const isBesideBrokers = ({ connections, window }: Scenario): boolean => connections === 200 && window === 8

/**
 * A broker that publishes to a responder, whose reply it delivers; at QoS 1 also the
 * broker alone, which acknowledges messages that nobody gets.
 */
const besideBroker = (
  broker: Broker,
  { devices }: Said,
  qos: 0 | 1,
  window: number
): Readonly<Record<string, Reference>> => {
  const { name } = broker
  const measure = (use: (port: number) => Measure): Reference => ({
    measure: "leftOut" in broker ? broker : use(broker.port)
  })
  const guests = asGuests(devices)
  return {
    [`${name} and a responder`]: measure((port) => (times) =>
      withServer(
        "./brokers/Responder",
        [String(port), String(qos)],
        () => load({ port, devices: guests, job: job(qos, window, true, times) })
      )
    ),
    ...qos === 0 ? {} : {
      [`${name}, PUBACK alone`]: measure((port) => (times) =>
        load({ port, devices: guests, job: { ...job(qos, window, false, times), endsWith: "puback" } })
      )
    }
  }
}

const ingest = (options: {
  readonly benchmark: string
  readonly scenario: Scenario
  readonly qos: 0 | 1
  /** The bar beside bare aedes. */
  readonly bar: number
  readonly databaseUrl?: string
  readonly more?: Readonly<Record<string, Reference>>
}): ReturnType<Part> => {
  const { databaseUrl, qos, scenario } = options
  const { connections, window } = scenario
  const plan: CloudPlan = { devices: connections, ...databaseUrl === undefined ? {} : { databaseUrl } }
  const compareWith = (brokers: ReadonlyArray<Broker>) =>
    withCloud(plan, (cloud) =>
      withServer("./BareBroker", [], (bare: { readonly port: number }) =>
        compare({
          benchmark: options.benchmark,
          scenario: textOf(scenario),
          ours: posting(cloud, qos, scenario),
          references: {
            "bare aedes": {
              bar: options.bar,
              measure: (times) => load({ port: bare.port, devices: cloud.devices, job: job(qos, window, true, times) })
            },
            ...options.more,
            ...Object.assign({}, ...brokers.map((broker) => besideBroker(broker, cloud, qos, window)))
          }
        })))
  return isBesideBrokers(scenario) ? withBrokers(compareWith) : compareWith([])
}

export const mqttIngestMemory = scenarios.map((scenario): Part => () =>
  ingest({ benchmark: "mqtt-ingest-memory", scenario, qos: 0, bar: scenario.window === 1 ? 0.95 : 1.3 })
)

const isPsqlInstalled = (): boolean => spawnSync("psql", ["--version"]).status === 0

export const mqttIngestDurable = scenarios.map((scenario): Part => () =>
  withDatabase((databaseUrl) => {
    const { connections, window } = scenario
    const rawUpserts = ({ measureMillis }: Times) => {
      // Its process is a new one in each round.
      const plan: RawUpsertPlan = {
        databaseUrl,
        devices: connections,
        batch: connections,
        warmupMillis: 2000,
        measureMillis
      }
      return outputOf<LoadResult>("./RawUpserts", [JSON.stringify(plan)])
    }
    const copiedRows = (times: Times) => {
      const plan: CopiedRowsPlan = { databaseUrl, devices: connections, ...times }
      return outputOf<LoadResult>("./CopiedRows", [JSON.stringify(plan)])
    }
    return ingest({
      benchmark: "mqtt-ingest-durable",
      scenario,
      qos: 1,
      bar: 0.6,
      databaseUrl,
      more: {
        "raw upserts": { bar: window === 1 ? 0.7 : 1, measure: rawUpserts },
        "COPY by psql": { measure: isPsqlInstalled() ? copiedRows : { leftOut: "psql is not installed" } }
      }
    })
  })
)

/** `mqtt-ingest-sqlite`: the same on one SQLite file, in turns with PostgreSQL on the same disk. */
export const mqttIngestSqlite = [1, 8].map((window): Part => () =>
  withDatabase((databaseUrl) =>
    withDirectory((directory) => {
      const scenario: Scenario = { connections: 200, window }
      const devices = scenario.connections
      return withCloud({ devices, sqliteFile: join(directory, "cloud.sqlite") }, (sqlite) =>
        withCloud({ devices, databaseUrl }, (postgres) =>
          compare({
            benchmark: "mqtt-ingest-sqlite",
            scenario: textOf(scenario),
            ours: posting(sqlite, 1, scenario),
            references: { "on PostgreSQL": { bar: 0.25, measure: posting(postgres, 1, scenario) } }
          })))
    })
  )
)

/** `feed`: the same with a subscriber of the stream of events that reads every one. */
export const feed = [1, 8].map((window): Part => () =>
  withDatabase((databaseUrl) => {
    const scenario: Scenario = { connections: 200, window }
    return withCloud({ devices: scenario.connections, databaseUrl }, (cloud) => {
      const measure = posting(cloud, 1, scenario)
      const { accessKey, url } = cloud.http
      return compare({
        benchmark: "feed",
        scenario: textOf(scenario),
        ours: (times) => withServer("./EventReader", [url, accessKey], () => measure(times)),
        references: { "no subscriber": { bar: 0.85, measure } }
      })
    })
  })
)

/** `scene-ingest`: in memory with 10,000 scenes; one in a hundred posts fires a scene. */
export const sceneIngest = [scenarios.at(0)!, scenarios.at(-1)!].map((scenario): Part => () => {
  const plan: CloudPlan = { devices: 10_000 }
  return withCloud(plan, (without) =>
    withCloud({ ...plan, scenes: plan.devices }, (having) =>
      compare({
        benchmark: "scene-ingest",
        scenario: `10000 scenes, ${textOf(scenario)}`,
        ours: posting(having, 0, scenario),
        references: { "no scenes": { bar: 0.9, measure: posting(without, 0, scenario) } }
      })))
})
