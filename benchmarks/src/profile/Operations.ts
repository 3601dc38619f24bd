/**
 * The operations whose cost by stage is shown: how each is loaded, its floors, and the reference beside it.
 */
import type { CloudPlan, Said } from "../Cloud.ts"
import { detailOf } from "../HttpRead.ts"
import { postOf } from "../HttpUplink.ts"
import type { LoadPlan } from "../Load.ts"
import type { Times } from "../Measurement.ts"
import type { Certificates, Floors } from "./Floors.ts"
import type { MeasuredJob } from "./Recorded.ts"
import type { Stage } from "./Stages.ts"

export interface Operation {
  /** Of its graph and its place on the page. */
  readonly name: string
  readonly title: string
  /** The benchmark that measures its rate. */
  readonly benchmark: string
  readonly isDurable: boolean
  readonly isSecure?: true
  readonly devices: number
  /** Where the main thread's own code that is no JavaScript belongs. */
  readonly native: Stage
  readonly load: (
    said: Said,
    times: Times,
    certificates: Certificates
  ) => LoadPlan & { readonly job: MeasuredJob }
  /** What each stage would cost alone. */
  readonly floors: (floors: Floors) => Partial<Record<Stage, number>>
}

const ingest = (qos: 0 | 1): Operation["load"] => ({ devices, port }, times) => ({
  port,
  devices,
  job: { kind: "ingest", qos, window: 1, subscribe: false, ...times }
})

const connect: Operation["load"] = ({ devices, port }, times) => ({
  port,
  devices,
  job: { kind: "connect", concurrency: 32, ...times }
})

const downlink: Operation["load"] = ({ devices, http, port }, times) => ({
  port,
  devices,
  job: {
    kind: "downlink",
    url: `${http.url}/openapi/v1/things/{device}/properties`,
    accessKey: http.accessKey,
    subscribe: false,
    ...times
  }
})

const portOf = ({ http }: Said): number => Number(new URL(http.url).port)

const ofReport = (floors: Floors) => ({
  "system calls": floors.echo.kernel,
  "sockets": floors.echo.user,
  "packet": floors.parseReport,
  "topic": floors.findTopic,
  "JSON": floors.parseJson,
  "model": floors.model,
  "shadow": floors.shadow,
  "reply": floors.writeJson + floors.generateReply
})

const ofConnect = (floors: Floors) => ({
  "system calls": floors.accept.kernel,
  "sockets": floors.accept.user,
  "packet": floors.parseConnect,
  "signature": floors.hmac
})

/** A request and its answer, a command and its acknowledgement, the device's reply and its acknowledgement. */
const ofDownlink = (floors: Floors) => ({
  "system calls": floors.http.kernel + floors.echo.kernel,
  "sockets": floors.echo.user,
  "HTTP": floors.http.user,
  "packet": floors.generateReply + floors.parseReport,
  "topic": floors.findTopic,
  "JSON": floors.parseJson + floors.writeJson,
  "access and audit": floors.sha256,
  "model": floors.model / 3
})

/** Stored, and once more when it ends: as a report of one value each, which costs a third of one of three or more. */
const writes = ({ writeReport: { database, driver } }: Floors, part: number) => ({
  "driver": driver * part,
  "PostgreSQL": database * part
})

export const operations: ReadonlyArray<Operation> = [
  {
    name: "report-memory",
    title: "A report, storage in memory",
    benchmark: "mqtt-ingest-memory",
    isDurable: false,
    devices: 200,
    native: "sockets",
    load: ingest(0),
    floors: ofReport
  },
  {
    name: "report-durable",
    title: "A report, on PostgreSQL",
    benchmark: "mqtt-ingest-durable",
    isDurable: true,
    devices: 200,
    native: "sockets",
    load: ingest(1),
    floors: (floors) => ({ ...ofReport(floors), ...writes(floors, 1) })
  },
  {
    name: "connect-tcp",
    title: "A connection over TCP",
    benchmark: "mqtt-connect",
    isDurable: false,
    devices: 2000,
    native: "sockets",
    load: connect,
    floors: ofConnect
  },
  {
    name: "connect-tls",
    title: "A connection over TLS",
    benchmark: "mqtt-connect",
    isDurable: false,
    isSecure: true,
    devices: 2000,
    native: "TLS",
    load: (said, times, { authority }) => ({ ...connect(said, times, { authority } as Certificates), ca: authority }),
    floors: (floors) => ({
      ...ofConnect(floors),
      "system calls": floors.handshake.kernel,
      "TLS": floors.handshake.user - floors.accept.user
    })
  },
  {
    name: "downlink-memory",
    title: "A property set, storage in memory",
    benchmark: "downlink",
    isDurable: false,
    devices: 200,
    native: "sockets",
    load: downlink,
    floors: ofDownlink
  },
  {
    name: "downlink-durable",
    title: "A property set, on PostgreSQL",
    benchmark: "downlink",
    isDurable: true,
    devices: 200,
    native: "sockets",
    load: downlink,
    floors: (floors) => ({ ...ofDownlink(floors), ...writes(floors, 2 / 3) })
  },
  {
    name: "http-uplink",
    title: "A report over HTTP, on PostgreSQL",
    benchmark: "http-uplink",
    isDurable: true,
    devices: 200,
    native: "HTTP",
    load: (said, times) => ({
      port: portOf(said),
      devices: [],
      job: { kind: "http", connections: 200, requests: said.devices.map(postOf), ...times }
    }),
    floors: (floors) => ({
      "system calls": floors.http.kernel,
      "HTTP": floors.http.user,
      "JSON": floors.parseJson,
      "signature": floors.hmac,
      "model": floors.model,
      "shadow": floors.shadow,
      "reply": floors.writeJson,
      ...writes(floors, 1)
    })
  },
  {
    name: "http-read",
    title: "The detail of a device, on PostgreSQL",
    benchmark: "http-read",
    isDurable: true,
    devices: 1000,
    native: "HTTP",
    load: (said, times) => ({
      port: portOf(said),
      devices: [],
      job: { kind: "http", connections: 100, requests: said.devices.map(detailOf(said.http.accessKey)), ...times }
    }),
    floors: (floors) => ({
      "system calls": floors.http.kernel,
      "HTTP": floors.http.user,
      "access and audit": floors.sha256,
      "driver": floors.readRow.driver,
      "PostgreSQL": floors.readRow.database,
      "reply": floors.writeJson
    })
  }
]

/** Names of the benchmarks that can be profiled. */
export const profiled: ReadonlyArray<string> = [...new Set(operations.map(({ benchmark }) => benchmark))]

export const cloudPlan = (
  { devices, isSecure }: Operation,
  { certificate, key }: Certificates,
  databaseUrl: string | undefined
): CloudPlan => ({
  devices,
  ...databaseUrl === undefined ? {} : { databaseUrl },
  ...isSecure === undefined ? {} : { tls: { certificate, key } }
})
