/**
 * Devices whose connections stay open and that post when they are told to, in a
 * process of its own.
 */
import { readFileSync } from "node:fs"
import type { Socket } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { openDevice, publish } from "../DeviceSocket.ts"
import type { LoadDevice } from "../Load.ts"
import { fail } from "../Measurement.ts"
import { refusalIn, subscribePacket } from "../MqttPackets.ts"
import { answer } from "../Processes.ts"

/** Each reply triggers the next post, `window` of them on each connection; or all connections in turn, in all `perSecond`. */
export type Posting = { readonly window: number } | { readonly perSecond: number }

export interface TrafficPlan {
  /** The URL of MQTT, plain or over TLS. */
  readonly mqtt: string
  readonly devices: ReadonlyArray<LoadDevice>
  /** The devices subscribe to their own topics of these names. */
  readonly subscriptions: ReadonlyArray<string>
  /** The payloads of posts, one after the other. */
  readonly bodies: ReadonlyArray<string>
  readonly qos: 0 | 1
  /** Ways of posting, by name. */
  readonly postings: Readonly<Record<string, Posting>>
}

/** Connections that are opened at the same time. */
const opening = 50
/** Ports of an address are used up after 28,000 connections. */
const connectionsOfAddress = 10_000
/** How long no reply may come while some are missing. */
const maxSilenceMillis = 30_000

const plan = JSON.parse(
  readFileSync((JSON.parse(process.argv[2]!) as { readonly file: string }).file, "utf8")
) as TrafficPlan
const posts: Array<() => void> = []
const bodies = plan.bodies.map((body) => Buffer.from(body))
/** `pacing`: the number of the latest time that posts were paced. */
const state = { replies: 0, sent: 0, isClosedLoop: false, pacing: 0 }

/** Addresses of this process alone: a closed connection keeps its port for a minute. */
const addressOf = (n: number): string | undefined =>
  process.platform === "linux"
    ? `127.0.${1 + process.pid % 250}.${1 + Math.floor(n / connectionsOfAddress)}`
    : undefined

const open = (device: LoadDevice, n: number): Promise<void> =>
  new Promise((resolve) => {
    let [turn, packetId] = [n, 0]
    const post = () => {
      packetId = packetId % 65_535 + 1
      state.sent++
      socket.write(publish(device.topic, bodies[turn++ % bodies.length]!, plan.qos, packetId))
    }
    const socket: Socket = openDevice(device, {
      mqtt: plan.mqtt,
      from: addressOf(n),
      onConnack: (code) => {
        if (code !== 0) fail(`CONNACK ${code}`)
        for (const name of plan.subscriptions) {
          socket.write(subscribePacket(device.topic.replace("thing/event/property/post", name), 1))
        }
        posts.push(post)
        resolve()
      },
      onMessage: (_, payload) => {
        const refusal = refusalIn(payload, 0, payload.length)
        if (refusal !== undefined) fail(`a post was refused: ${refusal}`)
        state.replies++
        if (state.isClosedLoop) post()
      },
      onClose: () => fail("the broker closed a connection")
    })
    // What a chunk of replies triggers is written at once.
    socket.prependListener("data", () => {
      socket.cork()
      process.nextTick(() => socket.uncork())
    })
  })

const openAll = async (): Promise<void> => {
  const devices = plan.devices.entries()
  await Promise.all(Array.from({ length: opening }, async () => {
    for (const [n, device] of devices) await open(device, n)
  }))
}

/** Calls all posts in turn, `perSecond` times a second. */
const pace = async (perSecond: number): Promise<void> => {
  const own = ++state.pacing
  const from = performance.now()
  let done = 0
  while (own === state.pacing) {
    const due = Math.floor((performance.now() - from) / 1000 * perSecond)
    for (; done < due; done++) posts[done % posts.length]!()
    await sleep(5)
  }
}

const begin = (posting: Posting) => () => {
  if ("perSecond" in posting) {
    void pace(posting.perSecond)
    return
  }
  state.isClosedLoop = true
  for (const post of posts) for (let i = 0; i < posting.window; i++) post()
}

/** Posts no more, and waits for the replies that are missing. */
const pause = async (): Promise<void> => {
  state.pacing++
  state.isClosedLoop = false
  let [known, since] = [state.replies, performance.now()]
  while (state.replies < state.sent) {
    await sleep(20)
    if (state.replies > known) [known, since] = [state.replies, performance.now()]
    if (performance.now() - since > maxSilenceMillis) fail(`${state.sent - state.replies} posts have no reply`)
  }
}

const opened = openAll()

answer({
  opened: () => opened,
  count: () => state.replies,
  pause,
  ...Object.fromEntries(Object.entries(plan.postings).map(([name, posting]) => [name, begin(posting)]))
})
