/**
 * `connections`, `connections-tls`: what open connections cost a node.
 */
import { DevelopmentCertificate } from "@device-cloud/mqtt"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import type { CloudPlan } from "../Cloud.ts"
import { withDirectory, withServer } from "../Processes.ts"
import { collecting, residentBytes } from "../ResidentBytes.ts"
import { costOfEach, useOfCore } from "./Cost.ts"
import type { Curve, Measure, Panel, Subject } from "./Curve.ts"
import { withFleet } from "./Fleet.ts"
import type { LoadDevice } from "../Load.ts"
import { anyDevices, bodies, withCloud } from "./Reporting.ts"

type Tls = NonNullable<CloudPlan["tls"]>

const replyTopic = "thing/event/property/post_reply"
const subscriptions = [replyTopic, "thing/service/property/set", "thing/event/+/post_reply"]
const secondsOfMinute = 60
const reportsPerSecond = 1000
/** `warmup`: until the code is compiled. */
const millis = { settle: 1000, warmup: 10_000, use: 4000 }

/** Files of a process that are no connections. */
const otherFiles = 1000
const mostConnections = (): number => {
  if (process.platform !== "linux") return Infinity
  const [, limit] = /Max open files\s+\d+\s+(\d+)/.exec(readFileSync("/proc/self/limits", "utf8")) ?? []
  return limit === undefined ? Infinity : Number(limit) - otherFiles
}
const points = [100, 1000, 10_000, 50_000]
const possible = [...new Set(points.map((point) => Math.min(point, mostConnections())))]

/** Opens so many connections to a server, and measures what they cost it. */
const measureConnections = async (
  point: number,
  { devices, mqtt, pid }: {
    readonly mqtt: string
    readonly pid: number
    readonly devices: ReadonlyArray<LoadDevice>
  },
  use: (measure: Measure) => Promise<void>
): Promise<void> => {
  const before = await residentBytes(pid)
  await withFleet({
    mqtt,
    devices,
    subscriptions,
    bodies,
    qos: 0,
    postings: {
      minute: { perSecond: point / secondsOfMinute },
      report: { perSecond: reportsPerSecond }
    }
  }, async (fleet) => {
    await setTimeout(millis.settle)
    const bytes = (await residentBytes(pid) - before) / point
    await fleet.begin("report")
    await setTimeout(millis.warmup)
    await fleet.pause()
    await use(async () => {
      const costly = { server: pid }
      await setTimeout(millis.settle)
      const { idleServer } = await useOfCore(costly, millis.use)
      await fleet.begin("minute")
      const { idleServer: minute } = await useOfCore(costly, millis.use)
      await fleet.pause()
      await fleet.begin("report")
      const { server } = await costOfEach(costly, fleet.count, () => setTimeout(millis.use))
      await fleet.pause()
      return { bytes, idle: idleServer!, minute: minute!, server: server! }
    })
  })
}

const scheme = (tls: Tls | undefined): string => tls === undefined ? "mqtt" : "mqtts"

const cloud = (tls?: Tls): Subject => (point, use) =>
  withCloud(
    { plan: { devices: point, ...tls === undefined ? {} : { tls } }, nodeOptions: collecting },
    ({ devices, pid, port }) =>
      measureConnections(point, { mqtt: `${scheme(tls)}://127.0.0.1:${port}`, pid, devices }, use)
  )

const bare = (tls?: Tls): Subject => (point, use) =>
  withServer(
    "./BareBroker",
    tls === undefined ? [] : [tls.certificate, tls.key],
    ({ pid, port }: { readonly port: number; readonly pid: number }) =>
      measureConnections(point, { mqtt: `${scheme(tls)}://127.0.0.1:${port}`, pid, devices: anyDevices(point) }, use),
    { nodeOptions: collecting }
  )

const withTls = (subject: (tls: Tls) => Subject): Subject => (point, use) =>
  withDirectory(async (directory) => {
    await Effect.runPromise(DevelopmentCertificate.loadOrMake(directory))
    return subject({ certificate: join(directory, "server.pem"), key: join(directory, "server.key") })(point, use)
  })

const panels: ReadonlyArray<Panel> = [
  { figure: "bytes", title: "Resident bytes of a connection" },
  { figure: "idle", title: "Without reports, ms of a core a second" },
  { figure: "minute", title: "A report a minute from each, ms of a core a second" },
  { figure: "server", title: "1,000 reports a second in all, µs for each" }
]
const text =
  "Connections with three subscriptions to one process, which has storage in memory, from several addresses. " +
  "There are as many as 50,000, and at most 1,000 fewer than the files that a process may have."

export const connections: Curve = {
  name: "connections",
  title: "Connections over TCP",
  text,
  axis: "connections",
  points: possible,
  panels,
  cloud: cloud(),
  bare: bare()
}

export const connectionsTls: Curve = {
  name: "connections-tls",
  title: "Connections over TLS",
  text: "The same over TLS.",
  axis: "connections",
  points: possible,
  panels,
  cloud: withTls(cloud),
  bare: withTls(bare)
}
