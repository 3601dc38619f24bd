/**
 * The load of most curves: 200 devices that report as fast as they get replies, each
 * eight posts at a time.
 */
import { setTimeout as sleep } from "node:timers/promises"
import type { CloudPlan, Said } from "../Cloud.ts"
import { type Query, withDatabase } from "../Database.ts"
import type { LoadDevice } from "../Load.ts"
import { withServer } from "../Processes.ts"
import { type Costly, costOfEach, listeningProcess, untilUsed } from "./Cost.ts"
import type { Measure, Subject } from "./Curve.ts"
import { type Fleet, withFleet } from "./Fleet.ts"
import type { Posting } from "./Traffic.ts"

export const reporters = 200
/** Milliseconds of processor time. `first`: until the code is compiled. */
const times = { first: 3000, warmup: 300, measure: 2000 }
const lookMillis = 100
const closedLoop: Posting = { window: 8 }

/** A hundred posts of three values. */
export const bodies: ReadonlyArray<string> = Array.from(
  { length: 100 },
  (_, i) =>
    `{"id":"1","version":"1.0","params":{"temperature":${(20 + i / 100).toFixed(2)},` +
    `"humidity":{"value":48,"time":1795231554300},"mode":"eco"},"method":"thing.event.property.post"}`
)

/** A cloud in a process of its own, and its database. */
export interface RunningCloud extends Said {
  readonly pid: number
  readonly durable?: { readonly url: string; readonly query: Query; readonly pid: number }
}

export const costly = ({ durable, pid }: RunningCloud): Costly => ({ server: pid, database: durable?.pid })

export interface CloudOptions {
  readonly plan: CloudPlan
  /** On a new database of PostgreSQL; otherwise in memory. */
  readonly isDurable?: boolean
  /** Fills the database before the cloud starts. */
  readonly fill?: (databaseUrl: string) => Promise<void>
  readonly nodeOptions?: ReadonlyArray<string>
}

type ServerSaid = Said & { readonly pid: number }

/** Runs a cloud while `use` runs. */
export const withCloud = (
  { fill, isDurable = false, nodeOptions = [], plan }: CloudOptions,
  use: (cloud: RunningCloud) => Promise<void>
): Promise<void> =>
  isDurable
    ? withDatabase(async (databaseUrl, query) => {
      await fill?.(databaseUrl)
      const durable: CloudPlan = { ...plan, databaseUrl }
      await withServer("./Cloud", [JSON.stringify(durable)], async (said: ServerSaid) =>
        use({ ...said, durable: { url: databaseUrl, query, pid: await listeningProcess(query) } }), { nodeOptions })
    })
    : withServer("./Cloud", [JSON.stringify(plan)], (said: ServerSaid) =>
      use(said), { nodeOptions })

/** Measures what a report costs a server on which a fleet posts, once there have been `after` reports. */
export const costOfReport = (costly: Costly, fleet: Fleet, posting: string, after = 0): Measure => {
  let warmup = times.first
  return async () => {
    await fleet.begin(posting)
    await untilUsed(costly, warmup)
    while (await fleet.count() < after) await sleep(lookMillis)
    warmup = times.warmup
    const cost = await costOfEach(costly, fleet.count, () => untilUsed(costly, times.measure))
    await fleet.pause()
    return cost
  }
}

export interface ReportingOptions {
  readonly cloud: (point: number) => Omit<CloudOptions, "nodeOptions">
  readonly bodies?: (point: number) => ReadonlyArray<string>
  /** Nothing is measured before so many reports. Default: 0. */
  readonly after?: number
  /** Default: the first 200. */
  readonly reporters?: (devices: ReadonlyArray<LoadDevice>) => ReadonlyArray<LoadDevice>
  readonly posting?: Posting
  /** Brings the cloud to the point, and returns what is measured beside the reports. */
  readonly prepare?: (cloud: RunningCloud, point: number) => Promise<Measure | void>
}

/** What a report costs the server and PostgreSQL. */
export const reporting = (options: ReportingOptions): Subject => (point, use) =>
  withCloud(options.cloud(point), async (cloud) => {
    const more = await options.prepare?.(cloud, point)
    await withFleet({
      mqtt: `mqtt://127.0.0.1:${cloud.port}`,
      devices: options.reporters?.(cloud.devices) ?? cloud.devices.slice(0, reporters),
      subscriptions: [],
      bodies: options.bodies?.(point) ?? bodies,
      qos: cloud.durable === undefined ? 0 : 1,
      postings: { report: options.posting ?? closedLoop }
    }, async (fleet) => {
      const measureReport = costOfReport(costly(cloud), fleet, "report", options.after)
      await use(async () => ({ ...await more?.(), ...await measureReport() }))
    })
  })

/** Devices for Aedes, which accepts everybody. */
export const anyDevices = (count: number): ReadonlyArray<LoadDevice> =>
  Array.from({ length: count }, (_, i) => ({
    deviceId: `bare${i}`,
    productKey: "bare",
    deviceName: `bare${i}`,
    deviceSecret: "",
    clientId: `bare${i}`,
    username: `bare${i}`,
    password: "",
    topic: `/sys/bare/bare${i}/thing/event/property/post`
  }))

/** The same load on Aedes alone. */
export const bareReporting = (
  devices: (point: number) => ReadonlyArray<LoadDevice>,
  bodiesOf: (point: number) => ReadonlyArray<string>
): Subject =>
(point, use) =>
  withServer("./BareBroker", [], ({ pid, port }: { readonly port: number; readonly pid: number }) =>
    withFleet({
      mqtt: `mqtt://127.0.0.1:${port}`,
      devices: devices(point),
      subscriptions: ["thing/event/property/post_reply"],
      bodies: bodiesOf(point),
      qos: 0,
      postings: { report: closedLoop }
    }, (fleet) => use(costOfReport({ server: pid }, fleet, "report"))))
