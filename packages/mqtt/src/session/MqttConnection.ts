/**
 * One device's MQTT connection, from CONNECT to its end.
 */
import {
  type DeviceConnection,
  type DeviceIdentity,
  type DeviceSession,
  type DisconnectReason,
  type DownlinkMessage,
  sessionErrorMethod,
  upgradeMethod,
  userMethod
} from "@device-cloud/core"
import type { Client } from "aedes"
import { Effect } from "effect"
import type { Duplex } from "node:stream"
import {
  encodeControl,
  encodeRequest,
  encodeSessionError,
  encodeUpgrade,
  encodeUserMessage
} from "../alink/AlinkMessage.ts"
import { nextPacketId } from "../protocol/DeviceBroker.ts"
import * as PublishPacket from "../protocol/PublishPacket.ts"
import {
  covers,
  methodPrefix,
  methodToTopic,
  ownerOf,
  type Route,
  route,
  sessionErrorTopic,
  shadowTopic,
  upgradeTopic,
  userTopicPrefix
} from "../topics/Topic.ts"

/** Bytes that may wait for a device that does not read; more end its connection. */
const maxUnsentBytes = 1024 * 1024

/** Subscriptions of one session: a gateway has some for each of its 1,500 sub-devices. */
const maxSubscriptions = 25_000

/** Of a filter: each is kept as long as the session. */
const maxFilterLength = 512
const maxFilterLevels = 16

/** Those of them that have wildcards, for each device: all are compared with each topic of the device. */
const maxWildcards = 100

/** Bytes that wait for a device before it gets no more commands for now. */
const maxBacklogBytes = 128 * 1024

/** How long a device may take to read the last words before its connection is cut. */
const goodbyeTime = "500 millis"

export class MqttConnection implements DeviceConnection {
  readonly client: Client
  readonly stream: Duplex
  readonly device: DeviceIdentity
  readonly ip: string
  /** The prefix of the device's method topics. */
  readonly prefix: string
  /** Set when the device is attached. */
  session: DeviceSession | undefined
  /** What is to be sent after the CONNACK; undefined: it has been sent. */
  #held: Array<() => void> | undefined = []
  /** By packet identifier, what to do when the device confirms it. */
  readonly #unacknowledged = new Map<number, () => void>()
  #subscriptionCount = 0
  /** Filters with wildcards, by the device that they belong to. */
  readonly #wildcards = new Map<string, Set<string>>()
  /** Of what is sent, by topic. */
  readonly #qos = new Map<string, 0 | 1>()
  #lastTopic: string | undefined
  #lastRoute: Route | undefined

  constructor(options: Pick<MqttConnection, "client" | "stream" | "device" | "ip">) {
    this.client = options.client
    this.stream = options.stream
    this.device = options.device
    this.ip = options.ip
    this.prefix = methodPrefix(options.device)
  }

  deliver(message: DownlinkMessage, acknowledged?: () => void): Effect.Effect<void> {
    return Effect.sync(() => {
      const owner = message.subDevice ?? this.device
      switch (message.method) {
        case "thing.shadow":
          return this.send(
            shadowTopic(`${owner.productKey}/${owner.deviceName}`),
            encodeControl(message),
            1,
            acknowledged
          )
        case upgradeMethod:
          return this.send(upgradeTopic(owner), encodeUpgrade(message), 1, acknowledged)
        case sessionErrorMethod:
          return this.send(sessionErrorTopic(owner), encodeSessionError(message), 1, acknowledged)
        case userMethod: {
          const { payload, topic } = encodeUserMessage(message)
          return this.send(userTopicPrefix(owner) + topic, payload, 1, acknowledged)
        }
        default: {
          const prefix = owner === this.device ? this.prefix : methodPrefix(owner)
          return this.send(methodToTopic(prefix, message.method), encodeRequest(message), 1, acknowledged)
        }
      }
    })
  }

  /** The way of a topic of the device's own: mostly that of its last message. */
  routeOf(topic: string): Route | undefined {
    if (topic !== this.#lastTopic) {
      this.#lastTopic = topic
      this.#lastRoute = route(topic, this.prefix, this.device)
    }
    return this.#lastRoute
  }

  /** The CONNACK has been sent: what was held back follows it. */
  opened(): void {
    const held = this.#held
    this.#held = undefined
    for (const send of held ?? []) send()
  }

  /** The device has confirmed a packet. */
  acknowledge(packetId: number): void {
    const acknowledged = this.#unacknowledged.get(packetId)
    this.#unacknowledged.delete(packetId)
    acknowledged?.()
  }

  backlog(): Effect.Effect<void> | undefined {
    const { stream } = this
    if (stream.destroyed) return undefined
    if (this.#held !== undefined) {
      const held = this.#held
      return held.length === 0 ? undefined : Effect.callback<void>((resume) => {
        if (this.#held === undefined) return resume(Effect.void)
        held.push(() => resume(Effect.void))
        stream.once("close", () => resume(Effect.void))
      })
    }
    if (stream.writableLength <= maxBacklogBytes) return undefined
    return Effect.callback<void>((resume) => {
      const go = () => {
        stream.off("drain", go)
        stream.off("close", go)
        resume(Effect.void)
      }
      stream.on("drain", go)
      stream.on("close", go)
      return Effect.sync(go)
    })
  }

  close(reason: DisconnectReason): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (reason === "replaced") {
        this.client.close()
        return Effect.void
      }
      const ended = Effect.callback<void>((resume) => {
        this.stream.once("close", () => resume(Effect.void))
        this.stream.end()
      })
      return this.stream.destroyed ? Effect.void : Effect.timeoutOrElse(ended, {
        duration: goodbyeTime,
        orElse: () => Effect.sync(() => void this.stream.destroy())
      })
    })
  }

  /**
   * Writes to the device without its having subscribed, exactly once also when
   * it has. A subscription lowers the quality of service to its own. `confirms`:
   * the packet of QoS 1 to which this is the reply.
   */
  send(
    topic: string,
    payload: string | Buffer,
    maxQos: 0 | 1,
    acknowledged?: () => void,
    confirms?: number
  ): void {
    if (this.#held !== undefined) {
      this.#held.push(() => this.send(topic, payload, maxQos, acknowledged, confirms))
      return
    }
    if (this.client.closed || this.stream.destroyed) return
    const packetId = maxQos === 1 && this.#qosOf(topic) === 1 ? nextPacketId(this.client) : undefined
    if (packetId !== undefined && acknowledged !== undefined) this.#unacknowledged.set(packetId, acknowledged)
    this.#write(PublishPacket.encode(topic, payload, packetId, confirms))
    if (this.stream.writableLength > maxUnsentBytes) this.stream.destroy()
  }

  /** Confirms a packet of QoS 1 that has no reply. */
  confirm(packetId: number): void {
    if (!this.client.closed && !this.stream.destroyed) this.#write(PublishPacket.confirmation(packetId))
  }

  /** What is sent to the device in one turn leaves in one write. */
  #write(bytes: Buffer): void {
    const { stream } = this
    if (stream.writableCorked === 0) {
      stream.cork()
      process.nextTick(uncork, stream)
    }
    stream.write(bytes)
  }

  /** Whether there is room for a subscription to a topic or filter. */
  admitsSubscription(topic: string): boolean {
    if (Object.hasOwn(this.#subscriptions, topic)) return true
    if (this.#subscriptionCount >= maxSubscriptions || topic.length > maxFilterLength) return false
    if (topic.split("/").length > maxFilterLevels) return false
    if (/[+#]/.test(topic)) {
      const owner = ownerKey(topic)
      const wildcards = this.#wildcards.get(owner) ?? new Set()
      if (wildcards.size >= maxWildcards) return false
      this.#wildcards.set(owner, wildcards.add(topic))
    }
    this.#subscriptionCount++
    return true
  }

  /** The device has subscribed or unsubscribed. */
  subscriptionsChanged(): void {
    this.#qos.clear()
  }

  /** The device has unsubscribed. */
  unsubscribed(filters: ReadonlyArray<string>): void {
    this.#subscriptionCount = Object.keys(this.#subscriptions).length
    for (const filter of filters) this.#wildcards.get(ownerKey(filter))?.delete(filter)
    this.subscriptionsChanged()
  }

  get #subscriptions(): Record<string, { readonly qos: number }> {
    return (this.client as unknown as { readonly subscriptions: Record<string, { readonly qos: number }> })
      .subscriptions
  }

  /** That of the device's subscription; 1 without one. */
  #qosOf(topic: string): 0 | 1 {
    const known = this.#qos.get(topic)
    if (known !== undefined) return known
    const wildcards = this.#wildcards.get(ownerKey(topic)) ?? []
    const granted = [topic, ...wildcards].flatMap((filter) =>
      Object.hasOwn(this.#subscriptions, filter) && covers(filter, topic) ? [this.#subscriptions[filter]!.qos] : []
    )
    const qos = granted.length > 0 && Math.max(...granted) === 0 ? 0 : 1
    if (this.#qos.size < maxRememberedTopics) this.#qos.set(topic, qos)
    return qos
  }
}

/** No filter covers a topic of another device. */
const ownerKey = (topic: string): string => {
  const { deviceName, productKey } = ownerOf(topic) ?? { deviceName: "", productKey: "" }
  return `${productKey}/${deviceName}`
}

const uncork = (stream: Duplex): void => stream.uncork()

/** Topics whose subscription is remembered, for each connection. */
const maxRememberedTopics = 64
