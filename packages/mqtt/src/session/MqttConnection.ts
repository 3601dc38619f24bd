/**
 * The MQTT connection of one authenticated device: what the cloud sends to it.
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
import { nextPacketId } from "../protocol/AedesInternals.ts"
import * as PublishPacket from "../protocol/PublishPacket.ts"
import { writeInTurn } from "../protocol/TurnWrites.ts"
import {
  methodPrefix,
  methodToTopic,
  type Route,
  type Router,
  sessionErrorTopic,
  shadowTopic,
  upgradeTopic,
  userTopicPrefix
} from "../topics/TopicRouter.ts"
import { Subscriptions } from "./Subscriptions.ts"

/** Bytes that may wait for a device that does not read; more end its connection. */
const maxUnsentBytes = 1024 * 1024

/** Bytes that may wait before the device gets no more commands. */
const maxBacklogBytes = 128 * 1024

/** How long a device may take to read its last messages before the connection is cut. */
const goodbyeTime = "500 millis"

/** What a connection is made of. */
export interface ConnectionParts {
  readonly client: Client
  readonly stream: Duplex
  readonly device: DeviceIdentity
  /** The address of the device. */
  readonly ip: string
  /** Routes the device's topics. */
  readonly route: Router
}

export class MqttConnection implements DeviceConnection {
  readonly device: DeviceIdentity
  readonly ip: string
  readonly subscriptions: Subscriptions
  /** The session of the device; set when the device is attached. */
  session: DeviceSession | undefined
  readonly #client: Client
  readonly #stream: Duplex
  readonly #route: Router
  /** The prefix of the device's method topics. */
  readonly #prefix: string
  /** What to send after the CONNACK; undefined: the CONNACK has been sent. */
  #held: Array<() => void> | undefined = []
  /** What to call when the device confirms a packet, by packet identifier. */
  readonly #unacknowledged = new Map<number, () => void>()
  #lastTopic: string | undefined
  #lastRoute: Route | undefined

  constructor({ client, device, ip, route, stream }: ConnectionParts) {
    this.#client = client
    this.#stream = stream
    this.#route = route
    this.#prefix = methodPrefix(device)
    this.device = device
    this.ip = ip
    this.subscriptions = new Subscriptions(client)
  }

  /** Sends a message of the cloud; `acknowledged` is called when the device confirms it. */
  deliver(message: DownlinkMessage, acknowledged?: () => void): Effect.Effect<void> {
    return Effect.sync(() => {
      const owner = message.subDevice ?? this.device
      switch (message.method) {
        case "thing.shadow":
          return this.send(shadowTopic(owner), encodeControl(message), 1, acknowledged)
        case upgradeMethod:
          return this.send(upgradeTopic(owner), encodeUpgrade(message), 1, acknowledged)
        case sessionErrorMethod:
          return this.send(sessionErrorTopic(owner), encodeSessionError(message), 1, acknowledged)
        case userMethod: {
          const { payload, topic } = encodeUserMessage(message)
          return this.send(userTopicPrefix(owner) + topic, payload, 1, acknowledged)
        }
        default: {
          const prefix = owner === this.device ? this.#prefix : methodPrefix(owner)
          return this.send(methodToTopic(prefix, message.method), encodeRequest(message), 1, acknowledged)
        }
      }
    })
  }

  /** Returns the route of one of the device's own topics. Most messages come on the topic of the one before. */
  routeOf(topic: string): Route | undefined {
    if (topic !== this.#lastTopic) {
      this.#lastTopic = topic
      this.#lastRoute = this.#route(topic, this.#prefix, this.device)
    }
    return this.#lastRoute
  }

  /** The CONNACK has been sent: sends what was held back. */
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

  /** Returns undefined while there is room for another message, otherwise an effect that waits for room. */
  backlog(): Effect.Effect<void> | undefined {
    const stream = this.#stream
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

  /** Ends the connection; the device may read what was sent before. A connection that was replaced is cut. */
  close(reason: DisconnectReason): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (reason === "replaced") {
        this.#client.close()
        return Effect.void
      }
      const ended = Effect.callback<void>((resume) => {
        this.#stream.once("close", () => resume(Effect.void))
        this.#stream.end()
      })
      return this.#stream.destroyed ? Effect.void : Effect.timeoutOrElse(ended, {
        duration: goodbyeTime,
        orElse: () => Effect.sync(() => void this.#stream.destroy())
      })
    })
  }

  /**
   * Sends one packet, whether or not the device has subscribed to the topic. The
   * quality of service is the lower of `maxQos` and the device's subscription.
   * `confirms`: the QoS 1 packet to which this is the reply.
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
    if (this.#client.closed || this.#stream.destroyed) return
    const packetId = maxQos === 1 && this.subscriptions.qosOf(topic) === 1 ? nextPacketId(this.#client) : undefined
    if (packetId !== undefined && acknowledged !== undefined) this.#unacknowledged.set(packetId, acknowledged)
    writeInTurn(this.#stream, PublishPacket.encode(topic, payload, packetId, confirms))
    if (this.#stream.writableLength > maxUnsentBytes) this.#stream.destroy()
  }

  /** Confirms a QoS 1 packet that gets no reply. */
  confirm(packetId: number): void {
    if (!this.#client.closed && !this.#stream.destroyed) {
      writeInTurn(this.#stream, PublishPacket.confirmation(packetId))
    }
  }
}
