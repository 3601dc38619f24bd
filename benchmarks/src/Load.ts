/**
 * The load: many connections in their own process. Over MQTT, devices post
 * properties, receive commands, or connect and disconnect; over HTTP, connections
 * repeat requests. It speaks just enough MQTT to be much cheaper than the measured
 * broker.
 */
import { readFileSync } from "node:fs"
import { Agent, request as httpRequest } from "node:http"
import { connect as connectTcp, type Socket } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { connect as connectTls } from "node:tls"
import { type HttpJob, sendRequests } from "./HttpLoad.ts"
import { fail, Latencies, type LoadResult, measured, type Times } from "./Measurement.ts"
import { connectPacket, packet, puback, refusalIn, splitter, subscribePacket, text } from "./MqttPackets.ts"

export interface LoadDevice {
  readonly deviceId: string
  readonly productKey: string
  readonly deviceName: string
  readonly deviceSecret: string
  readonly clientId: string
  readonly username: string
  readonly password: string
  /** The topic of the device's property posts; replies come on `{topic}_reply`. */
  readonly topic: string
}

export interface LoadPlan {
  readonly port: number
  /** Certificate authority in PEM; absent: plain TCP. */
  readonly ca?: string
  readonly devices: ReadonlyArray<LoadDevice>
  readonly job:
    | Times & {
      readonly kind: "ingest"
      readonly qos: 0 | 1
      /** Posts without reply that each connection may have. */
      readonly window: number
      /** The broker delivers replies only after a SUBSCRIBE. */
      readonly subscribe: boolean
      /** What ends a post. Default: the reply. */
      readonly endsWith?: "puback"
      /**
       * Posts per second over all connections, independent of replies. Absent:
       * each reply triggers the next post.
       */
      readonly perSecond?: number
    }
    /** Sets a property over HTTP; the device receives and answers it, and the broker acknowledges the answer. */
    | Times & {
      readonly kind: "downlink"
      /** The URL that sets a property; `{device}` stands for the device id. */
      readonly url: string
      readonly accessKey: string
      /** The broker delivers commands only after a SUBSCRIBE. */
      readonly subscribe: boolean
    }
    /** Connections that subscribe to their own topics of these names, and stay. */
    | { readonly kind: "hold"; readonly subscriptions: ReadonlyArray<string> }
    /** Keeps `concurrency` connections opening, and closes each when the broker accepts it. */
    | Times & {
      readonly kind: "connect"
      readonly concurrency: number
    }
    | HttpJob
}

/** The values that devices report in turn: numbers of the same length. */
const temperatures = Array.from({ length: 100 }, (_, i) => (20.01 + i / 100).toFixed(2))
const [firstTemperature] = temperatures as [string]

const payload = `{"id":"1","version":"1.0","params":{"temperature":${firstTemperature},` +
  `"humidity":{"value":48,"time":1795231554300},"mode":"eco"},"method":"thing.event.property.post"}`

const publishPacket = (topic: string, qos: 0 | 1): Buffer =>
  packet(0x30 | (qos << 1), text(topic), qos === 0 ? Buffer.alloc(0) : Buffer.from([0, 1]), Buffer.from(payload))

const open = (plan: LoadPlan, onOpen: (socket: Socket) => void): Socket => {
  const socket: Socket = plan.ca === undefined
    ? connectTcp({ port: plan.port, host: "127.0.0.1", noDelay: true }, () => onOpen(socket))
    : connectTls({ port: plan.port, host: "localhost", ca: plan.ca }, () => onOpen(socket))
  if (plan.ca !== undefined) socket.setNoDelay(true)
  return socket
}

const ingest = async (plan: LoadPlan, job: LoadPlan["job"] & { kind: "ingest" }): Promise<LoadResult> => {
  const latencies = new Latencies()
  const starts: Array<() => void> = []
  await Promise.all(plan.devices.map((device) =>
    new Promise<void>((resolve) => {
      const publish = publishPacket(device.topic, job.qos)
      // The packet identifier follows the fixed header (2 bytes of length), the topic's length and the topic.
      const idAt = publish.length - Buffer.byteLength(payload) - 2
      const temperatureAt = publish.length - payload.length + payload.indexOf(firstTemperature)
      let id = 0
      let turn = starts.length
      const sent: Array<number> = []
      const posts = Array.from({ length: job.window + 1 }, (_, n) =>
        Buffer.concat(Array.from({ length: n }, () => publish)))
      /** Packet identifiers of replies that the device has not acknowledged yet. */
      let unacknowledged: Array<number> = []
      /** Acknowledges the received replies and posts `n` times, in one write. */
      const post = (n: number) => {
        const now = performance.now()
        for (let i = 0; i < n; i++) {
          sent.push(now)
        }
        const start = unacknowledged.length * puback.length
        const bytes = Buffer.allocUnsafe(start + posts[n]!.length)
        for (let i = 0; i < unacknowledged.length; i++) {
          puback.copy(bytes, i * puback.length)
          bytes.writeUInt16BE(unacknowledged[i]!, i * puback.length + 2)
        }
        unacknowledged = []
        posts[n]!.copy(bytes, start)
        for (let i = 0; i < n; i++) {
          const at = start + i * publish.length
          bytes.write(temperatures[turn++ % temperatures.length]!, at + temperatureAt, "latin1")
          if (job.qos === 0) {
            continue
          }
          id = (id % 65_535) + 1
          bytes.writeUInt16BE(id, at + idAt)
        }
        if (bytes.length > 0) {
          socket.write(bytes)
        }
      }
      let replies = 0
      const end = () => {
        const at = sent.shift()!
        latencies.record(performance.now() - at)
        replies++
      }
      const split = splitter((header, bytes, start, packetEnd) => {
        switch (header >> 4) {
          case 2:
            if (bytes[start + 1] !== 0) {
              fail(`CONNACK ${bytes[start + 1]}`)
            }
            if (job.subscribe) {
              socket.write(subscribePacket(`${device.topic}_reply`, job.qos))
            } else resolve()
            return
          case 9:
            resolve()
            return
          case 3: {
            const topicEnd = start + 2 + bytes.readUInt16BE(start)
            const hasId = (header & 6) !== 0
            if (hasId) {
              unacknowledged.push(bytes.readUInt16BE(topicEnd))
            }
            const refusal = refusalIn(bytes, topicEnd + (hasId ? 2 : 0), packetEnd)
            if (refusal !== undefined) {
              fail(`a post was refused: ${refusal}`)
            }
            end()
            return
          }
          case 4:
            if (job.endsWith === "puback") {
              end()
            }
        }
      })
      const socket = open(plan, () =>
        socket.write(connectPacket(device)))
      socket.on("data", (chunk) => {
        split(chunk)
        post(job.perSecond === undefined ? replies : 0)
        replies = 0
      })
      socket.on("error", (error) => fail(String(error)))
      socket.on("close", () => fail("the broker closed a connection"))
      starts.push(() => post(job.perSecond === undefined ? job.window : 1))
    })
  ))
  if (job.perSecond === undefined) { for (const start of starts) start() }
  else pace(job.perSecond, starts)
  return measured(job, latencies)
}

/** Calls the functions in turn, `perSecond` times a second. */
const pace = (perSecond: number, functions: ReadonlyArray<() => void>): void => {
  const from = performance.now()
  let done = 0
  const turn = () => {
    const due = Math.floor((performance.now() - from) / 1000 * perSecond)
    for (; done < due; done++) functions[done % functions.length]!()
    setTimeout(turn, 1)
  }
  turn()
}

/** Packet identifiers of the device's answers to commands. */
const counted = 1
const leftOver = 2

/** The cloud sends no commands until it thinks that a device listens, three seconds after the connect at the latest. */
const listeningMillis = 3500

const downlink = async (plan: LoadPlan, job: LoadPlan["job"] & { kind: "downlink" }): Promise<LoadResult> => {
  const latencies = new Latencies()
  const agent = new Agent({ keepAlive: true, noDelay: true })
  const body = Buffer.from(JSON.stringify({ params: { temperature: 21.5 } }))
  const starts: Array<() => void> = []
  await Promise.all(plan.devices.map((device) =>
    new Promise<void>((resolve) => {
      const command = device.topic.replace("event/property/post", "service/property/set")
      let at = 0
      const set = () => {
        at = performance.now()
        const request = httpRequest(job.url.replace("{device}", device.deviceId), {
          method: "POST",
          agent,
          headers: {
            authorization: `Bearer ${job.accessKey}`,
            "content-type": "application/json",
            "content-length": body.length
          }
        }, (response) => {
          if (response.statusCode !== 200) fail(`HTTP ${response.statusCode}`)
          response.resume()
        })
        request.on("error", (error) => fail(String(error)))
        request.end(body)
      }
      const split = splitter((header, bytes, start, end) => {
        switch (header >> 4) {
          case 2:
            if (bytes[start + 1] !== 0) fail(`CONNACK ${bytes[start + 1]}`)
            if (job.subscribe) socket.write(subscribePacket(command, 1))
            else resolve()
            return
          case 9:
            resolve()
            return
          case 3: {
            const topicLength = bytes.readUInt16BE(start)
            const idAt = start + 2 + topicLength
            const ack = Buffer.from([0x40, 2, 0, 0])
            bytes.copy(ack, 2, idAt, idAt + 2)
            const { id } = JSON.parse(bytes.subarray(idAt + 2, end).toString()) as { readonly id: string }
            const reply = Buffer.from(JSON.stringify({ id, code: 200, data: {} }))
            // Commands that an earlier load has left are answered and not counted.
            const packetId = Buffer.from([0, at === 0 ? leftOver : counted])
            socket.write(Buffer.concat([ack, packet(0x32, text(`${command}_reply`), packetId, reply)]))
            return
          }
          case 4:
            if (bytes[start + 1] === leftOver) return
            latencies.record(performance.now() - at)
            set()
        }
      })
      const socket = open(plan, () => socket.write(connectPacket(device)))
      socket.on("data", split)
      socket.on("error", (error) => fail(String(error)))
      socket.on("close", () => fail("the broker closed a connection"))
      starts.push(set)
    })
  ))
  if (!job.subscribe) await sleep(listeningMillis)
  for (const start of starts) start()
  return measured(job, latencies)
}

const connects = async (plan: LoadPlan, job: LoadPlan["job"] & { kind: "connect" }): Promise<LoadResult> => {
  let stopped = false
  let next = 0
  const latencies = new Latencies()
  const again = () => {
    if (stopped) return
    const device = plan.devices[next++ % plan.devices.length]!
    const at = performance.now()
    const socket = open(plan, () => socket.write(connectPacket(device)))
    socket.once("data", (bytes) => {
      if (bytes[3] !== 0) fail(`CONNACK ${bytes[3]}`)
      latencies.record(performance.now() - at)
      socket.destroy()
      again()
    })
    socket.on("error", (error) => stopped || fail(String(error)))
  }
  for (let i = 0; i < job.concurrency; i++) again()
  const result = await measured(job, latencies)
  stopped = true
  return result
}

/** Connections that are opened at the same time. */
const opening = 50

const holdOpen = async (plan: LoadPlan, job: LoadPlan["job"] & { kind: "hold" }): Promise<void> => {
  const devices = plan.devices.values()
  const openNext = async (): Promise<void> => {
    for (const device of devices) {
      await new Promise<void>((resolve) => {
        let left = job.subscriptions.length
        const split = splitter((header, bytes, start) => {
          if (header >> 4 === 2) {
            if (bytes[start + 1] !== 0) fail(`CONNACK ${bytes[start + 1]}`)
            for (const rest of job.subscriptions) {
              socket.write(subscribePacket(device.topic.replace("thing/event/property/post", rest), 1))
            }
          } else if (--left === 0) resolve()
        })
        const socket = open(plan, () => socket.write(connectPacket(device)))
        socket.on("data", split)
        socket.on("error", (error) => fail(String(error)))
        socket.on("close", () => fail("the broker closed a connection"))
      })
    }
  }
  await Promise.all(Array.from({ length: opening }, openNext))
  process.stdout.write("{}\n")
  await new Promise(() => {})
}

const plan = JSON.parse(readFileSync(process.argv[2]!, "utf8")) as LoadPlan
const { job } = plan
if (job.kind === "hold") await holdOpen(plan, job)
const result = job.kind === "ingest"
  ? await ingest(plan, job)
  : job.kind === "downlink"
  ? await downlink(plan, job)
  : job.kind === "http"
  ? await sendRequests(plan.port, job)
  : await connects(plan, job as LoadPlan["job"] & { kind: "connect" })
process.stdout.write(`${JSON.stringify(result)}\n`)
process.exit(0)
