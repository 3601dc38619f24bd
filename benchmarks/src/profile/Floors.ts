/**
 * What stages cost alone: the same payload, in a loop that does nothing else. In microseconds of processor time.
 */
import { ModelFormat, ModelValidator } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Redacted } from "effect"
import { generate, parser } from "mqtt-packet"
import { createHash, createHmac } from "node:crypto"
import { withDatabase } from "../Database.ts"
import type { LoadDevice, LoadPlan } from "../Load.ts"
import { connectPacket, packet, text } from "../MqttPackets.ts"
import { makeReportRows, type Report } from "../ReportRows.ts"
import { familyMicros } from "./Processor.ts"
import { listenerOf, type MeasuredJob, recorded } from "./Recorded.ts"

/** A server's processor time for one operation. */
export interface Split {
  readonly kernel: number
  /** All but the kernel's part for the main thread. */
  readonly user: number
}

export interface Floors {
  /** A packet read from a socket of Node and one written; a connection accepted; a request read and answered. */
  readonly echo: Split
  readonly accept: Split
  readonly handshake: Split
  readonly http: Split
  readonly parseReport: number
  readonly parseConnect: number
  readonly generateReply: number
  readonly findTopic: number
  readonly parseJson: number
  readonly writeJson: number
  readonly hmac: number
  readonly sha256: number
  readonly model: number
  readonly shadow: number
  /** For each report of three values: all of this process, and of PostgreSQL. */
  readonly writeReport: { readonly driver: number; readonly database: number }
  /** For a row by its key. */
  readonly readRow: { readonly driver: number; readonly database: number }
}

const payload =
  `{"id":"1","version":"1.0","params":{"temperature":20.01,"humidity":{"value":48,"time":1795231554300},` +
  `"mode":"eco"},"method":"thing.event.property.post"}`
const topic = "/sys/a1B2c3D4e5F/load1/thing/event/property/post"
const reply = { code: 200, data: {}, id: "1", message: "success", method: "thing.event.property.post", version: "1.0" }

const loopMicros = 300_000

/** The processor time of this process, in microseconds. */
const ownMicros = (): number => {
  const { system, user } = process.cpuUsage()
  return user + system
}

/** Microseconds of one turn, after as many turns to warm up. */
const micros = (turn: () => void): number => {
  const loop = () => {
    const from = ownMicros()
    let turns = 0
    while (ownMicros() - from < loopMicros) {
      for (let i = 0; i < 200; i++) turn()
      turns += 200
    }
    return (ownMicros() - from) / turns
  }
  loop()
  return loop()
}

/** Something that every turn changes, so that no turn is left out. */
let sink = 0

const shadowOf = (values: Readonly<Record<string, unknown>>) => {
  const shadow = new Map<string, { readonly value: unknown; readonly time: number }>()
  return () => {
    for (const id in values) shadow.set(id, { value: values[id], time: sink++ })
  }
}

const model = {
  properties: [
    { id: "temperature", name: "Temperature", accessMode: "rw", dataType: { type: "double", min: -40, max: 120 } },
    { id: "humidity", name: "Humidity", accessMode: "r", dataType: { type: "int", min: 0, max: 100 } },
    { id: "mode", name: "Mode", accessMode: "rw", dataType: { type: "text", length: 16 } }
  ]
}

const alone = async () => {
  const report = packet(0x32, text(topic), Buffer.from([0, 1]), Buffer.from(payload))
  const connect = connectPacket({
    clientId: "load1|signmethod=hmacsha1,authType=1|",
    username: "load1&a1B2c3D4e5F",
    password: "0".repeat(40)
  })
  const parse = parser()
  parse.on("packet", () => sink++)
  const bytes = Buffer.from(payload)
  const topicBytes = Buffer.from(topic)
  const topics = new Map([[topic, 1]])
  const decoded = await Effect.runPromise(ModelFormat.decode("metadata", model))
  const validator = ModelValidator.make(decoded.model, 1)
  const text1 = JSON.stringify(reply)
  return {
    parseReport: micros(() => parse.parse(report)),
    parseConnect: micros(() => parse.parse(connect)),
    generateReply: micros(() =>
      sink += generate({
        cmd: "publish",
        topic: `${topic}_reply`,
        payload: text1,
        qos: 0,
        dup: false,
        retain: false
      }).length
    ),
    findTopic: micros(() => sink += topics.get(topicBytes.toString("latin1"))!),
    parseJson: micros(() => sink += (JSON.parse(bytes.toString()) as { readonly id: string }).id.length),
    writeJson: micros(() => sink += JSON.stringify(reply).length),
    hmac: micros(() => sink += createHmac("sha1", "secret1".padEnd(32, "0")).update(topic).digest("hex").length),
    sha256: micros(() => sink += createHash("sha256").update(`dck_${"b".repeat(56)}`).digest("hex").length),
    model: micros(() => {
      if (validator.reported("temperature", 20.01) !== undefined) sink++
      if (validator.reported("humidity", 48) !== undefined) sink++
      if (validator.reported("mode", "eco") !== undefined) sink++
    }),
    shadow: micros(shadowOf({ temperature: 20.01, humidity: 48, mode: "eco" }))
  }
}

/** Reports in one statement, about as many as the cloud's batches have. */
const batch = 64

const ofDatabase = (): Promise<Pick<Floors, "writeReport" | "readRow">> =>
  withDatabase(async (url, query) => {
    const listener = await listenerOf(query)
    const program = Effect.gen(function*() {
      const sql = yield* PgClient.PgClient
      const write = yield* makeReportRows
      const reports = Array.from({ length: batch }, (_, i): Report => ({
        deviceId: `loada1b2c3d4e5f${i}`,
        reported: JSON.stringify({
          temperature: { value: 21.5, time: 1795231554300 },
          humidity: { value: 48, time: 1795231554300 },
          mode: { value: "eco", time: 1795231554300 }
        }),
        properties: ["temperature", "humidity", "mode"],
        values: ["21.5", "48", "\"eco\""]
      }))
      const measure = Effect.fnUntraced(function*<E>(rows: number, work: Effect.Effect<unknown, E>) {
        const loop = Effect.gen(function*() {
          const from = ownMicros()
          let turns = 0
          while (ownMicros() - from < loopMicros) {
            yield* work
            turns++
          }
          return turns
        })
        yield* loop
        const before = ownMicros()
        const databaseBefore = familyMicros(listener)
        const turns = yield* loop
        return {
          driver: (ownMicros() - before) / turns / rows,
          database: (familyMicros(listener) - databaseBefore) / turns / rows
        }
      })
      const writeReport = yield* measure(batch, Effect.suspend(() => write(reports, 1795231554300)))
      const ids = reports.map(({ deviceId }) => deviceId)
      const readRow = yield* measure(
        batch,
        Effect.forEach(ids, (id) => sql`SELECT * FROM raw_shadow WHERE device_id = ${id}`, { concurrency: batch })
      )
      return { writeReport, readRow }
    })
    return Effect.runPromise(
      program.pipe(Effect.provide(PgClient.layer({ url: Redacted.make(url), multiplex: true })), Effect.scoped)
    )
  })

const ofServer = async <Addresses>(
  program: string,
  args: ReadonlyArray<string>,
  plan: (addresses: Addresses) => LoadPlan & { readonly job: MeasuredJob }
): Promise<Split> => {
  const { count, recording: { main, process } } = await recorded({ program, args, plan, hasProfile: false })
  return { kernel: main.systemMicros / count, user: (process - main.systemMicros) / count }
}

const times = { warmupMillis: 1000, measureMillis: 2000 }

export interface Certificates {
  readonly certificate: string
  readonly key: string
  /** In PEM. */
  readonly authority: string
}

/** Devices of no cloud. */
const devices = Array.from({ length: 200 }, (_, i): LoadDevice => ({
  deviceId: `load${i}`,
  productKey: "a1B2c3D4e5F",
  deviceName: `load${i}`,
  deviceSecret: `secret${i}`.padEnd(32, "0"),
  clientId: `load${i}|signmethod=hmacsha1,authType=1|`,
  username: `load${i}&a1B2c3D4e5F`,
  password: "0".repeat(40),
  topic
}))

/** Measures all floors. */
export const measureFloors = async ({ authority, certificate, key }: Certificates): Promise<Floors> => {
  const server = "./profile/BareServer"
  interface Ports {
    readonly port: number
    readonly httpPort: number
  }
  return {
    echo: await ofServer(server, [], ({ port }: Ports) => ({
      port,
      devices,
      job: { kind: "ingest", qos: 0, window: 1, subscribe: false, ...times }
    })),
    accept: await ofServer(server, [], ({ port }: Ports) => ({
      port,
      devices,
      job: { kind: "connect", concurrency: 32, ...times }
    })),
    handshake: await ofServer("./BareTls", [certificate, key], ({ port }: Pick<Ports, "port">) => ({
      port,
      ca: authority,
      devices,
      job: { kind: "connect", concurrency: 32, ...times }
    })),
    http: await ofServer(server, [], ({ httpPort }: Ports) => ({
      port: httpPort,
      devices: [],
      job: {
        kind: "http",
        connections: 100,
        requests: devices.map(({ deviceId }) => ({
          method: "POST",
          path: `/openapi/v1/things/${deviceId}`,
          headers: { "content-type": "application/json" },
          body: payload
        })),
        ...times
      }
    })),
    ...await alone(),
    ...await ofDatabase()
  }
}
