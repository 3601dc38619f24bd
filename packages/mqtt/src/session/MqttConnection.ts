/**
 * The MQTT connection of one authenticated device: what the cloud sends to it.
 */
import {
  bytesOf,
  downlinkOf,
  methodPrefix,
  ownerKey,
  type Payload,
  type Route,
  type Router,
  shadowTopic
} from "@device-cloud/alink"
import {
  type DeviceConnection,
  type DeviceIdentity,
  type DeviceSession,
  type DisconnectReason,
  disconnectSentences,
  type DownlinkMessage,
  throughGateway,
  tracedText,
  type TraceRecorder,
  userMethod
} from "@device-cloud/core"
import type { Client } from "aedes"
import { Effect } from "effect"
import type { Duplex } from "node:stream"
import { maxPacketId, nextPacketId } from "../protocol/AedesInternals.ts"
import * as PublishPacket from "../protocol/PublishPacket.ts"
import type { TurnWrites } from "../protocol/TurnWrites.ts"
import { Readiness, type ReadinessWatch } from "./Readiness.ts"
import { Subscriptions } from "./Subscriptions.ts"
import { Output, type UnsentOutput } from "./UnsentOutput.ts"

/** How long a device may take to read its last messages before the connection is cut. */
const goodbyeTime = "500 millis"

/** What a connection is made of. */
export interface ConnectionParts {
  readonly client: Client
  readonly stream: Duplex
  readonly device: DeviceIdentity
  /** The address of the device. */
  readonly ip: string
  readonly transport: string
  /** Notes what a traced device gets. */
  readonly recorder: TraceRecorder["Service"]
  /** The fingerprint of the certificate with which the device has proved who it is. */
  readonly certificate: string | undefined
  /** Routes the device's topics. */
  readonly route: Router
  /** Looks after the readiness of all devices. */
  readonly readiness: ReadinessWatch
  /** The output of all connections. */
  readonly unsent: UnsentOutput
  readonly writes: TurnWrites
  /** Bytes that may wait in the socket. */
  readonly maxUnsentBytes: number
}

export class MqttConnection implements DeviceConnection {
  readonly device: DeviceIdentity
  readonly ip: string
  readonly transport: string
  readonly certificate: string | undefined
  readonly subscriptions: Subscriptions
  readonly readiness: Readiness
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
  readonly #unsent: UnsentOutput
  readonly #writes: TurnWrites
  readonly #output: Output
  readonly #maxUnsentBytes: number
  readonly #recorder: TraceRecorder["Service"]
  #endReason: string | undefined
  /** Replies that wait until the device reads, and are not encoded yet. */
  #postponed: Array<(isOpen: boolean) => void> = []
  #lastTopic: string | undefined
  #lastRoute: Route | undefined

  constructor(
    { certificate, client, device, ip, maxUnsentBytes, readiness, recorder, route, stream, transport, unsent, writes }:
      ConnectionParts
  ) {
    this.#client = client
    this.#stream = stream
    this.#route = route
    this.#prefix = methodPrefix(device)
    this.device = device
    this.ip = ip
    this.transport = transport
    this.#recorder = recorder
    this.certificate = certificate
    this.subscriptions = new Subscriptions(client)
    this.readiness = new Readiness(readiness)
    this.#unsent = unsent
    this.#writes = writes
    this.#output = new Output(stream)
    this.#maxUnsentBytes = maxUnsentBytes
  }

  /** Sends a message of the cloud; `acknowledged` is called when the device confirms it. */
  deliver(message: DownlinkMessage, acknowledged?: () => void): Effect.Effect<void> {
    return Effect.sync(() => {
      // The message counts as not delivered: it is told again to those who come back.
      if (this.#stream.writableLength > this.#maxUnsentBytes) {
        this.ends("the device does not read what it gets")
        return void this.#stream.destroy()
      }
      const receiver = message.subDevice ?? this.device
      const { callTopics, payload, topic: usual } = downlinkOf(message, receiver)
      const topic = callTopics?.find((each) => this.subscriptions.granted(each) !== undefined) ?? usual
      // It goes out again when the device comes back.
      if (message.method === userMethod && this.subscriptions.isStopped(topic)) return
      this.#trace(receiver, topic, payload)
      this.send(topic, payload, 1, acknowledged)
    })
  }

  /** Sends a broadcast, if the device has subscribed to its topic and reads what it gets. */
  broadcast(topic: string, payload: Buffer): void {
    if (this.subscriptions.granted(topic) === undefined || this.#isBacklogged()) return
    this.#trace(this.device, topic, payload)
    this.send(topic, payload, 1)
  }

  /** Notes a message of the cloud, if its receiver is traced. */
  #trace(receiver: DeviceIdentity, topic: string, payload: Payload): void {
    if (!this.#recorder.isTraced(receiver.deviceId)) return
    this.#recorder.note(receiver.deviceId, {
      kind: "downlink",
      transport: this.transport,
      topic,
      payload: tracedText(bytesOf(payload)),
      ...throughGateway(receiver, this.device)
    })
  }

  /** Says why the connection ends; the first reason counts. */
  ends(reason: string): void {
    this.#endReason ??= reason
  }

  endReason(): string {
    return this.#endReason ?? "the connection was closed without DISCONNECT"
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
    // A clean session has no subscriptions yet.
    this.readiness.opened(this.subscriptions.isEmpty() ? undefined : this.subscriptions.shadowOwners())
  }

  hearsShadow(then: () => void, subDevice = this.device): boolean {
    return this.readiness.hearsShadow(ownerKey(shadowTopic(subDevice)), then)
  }

  /** The device has confirmed a packet. */
  acknowledge(packetId: number): void {
    const acknowledged = this.#unacknowledged.get(packetId)
    this.#unacknowledged.delete(packetId)
    acknowledged?.()
  }

  /** Returns undefined while the device is ready and has room for another message, otherwise an effect that waits. */
  backlog(): Effect.Effect<void> | undefined {
    const stream = this.#stream
    if (stream.destroyed) return undefined
    if (!this.readiness.isReady()) {
      return Effect.callback<void>((resume) => this.readiness.whenReady(() => resume(Effect.void)))
    }
    if (!this.#isBacklogged()) return undefined
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

  /**
   * Ends the connection; the device may read what was sent before. A connection is
   * cut that was replaced, or whose certificate no longer counts.
   */
  close(reason: DisconnectReason): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.ends(disconnectSentences[reason])
      if (reason === "replaced" || reason === "revoked") {
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
    payload: Payload,
    maxQos: 0 | 1,
    acknowledged?: () => void,
    confirms?: number
  ): void {
    if (this.#held !== undefined) {
      this.#held.push(() => this.send(topic, payload, maxQos, acknowledged, confirms))
      return
    }
    if (!this.#isOpen()) return
    const packetId = maxQos === 1 && this.subscriptions.qosOf(topic) === 1 ? this.#nextPacketId() : undefined
    if (packetId !== undefined && acknowledged !== undefined) this.#unacknowledged.set(packetId, acknowledged)
    if (typeof payload === "string" || Buffer.isBuffer(payload)) {
      this.#write(PublishPacket.encode(topic, payload, packetId, confirms))
    } else {
      const parts = payload as ReadonlyArray<Uint8Array>
      const length = parts.reduce((sum, part) => sum + part.length, 0)
      this.#write(PublishPacket.encodeHead(topic, length, packetId, confirms))
      for (const part of parts) this.#write(part)
    }
    if (this.#stream.writableNeedDrain) this.#unsent.waits(this.#output)
  }

  /**
   * Calls `send` with true as soon as there is room for a reply, with false when
   * the connection has ended. Replies may be large: they are made when there is room.
   */
  whenRoom(send: (isOpen: boolean) => void): void {
    if (this.#postponed.length > 0 || this.#isBacklogged()) this.#postponed.push(send)
    else send(true)
  }

  /** The socket takes more, or the connection has ended. */
  drained(): void {
    this.#unsent.drained(this.#output)
    if (this.#stream.destroyed) this.readiness.end()
    if (this.#postponed.length === 0) return
    const postponed = this.#postponed
    this.#postponed = []
    const isOpen = this.#isOpen()
    for (const send of postponed) {
      if (isOpen) this.whenRoom(send)
      else send(false)
    }
  }

  /** Passes over identifiers of messages that the device has not confirmed: its PUBACK would confirm two. */
  #nextPacketId(): number {
    let id = nextPacketId(this.#client)
    while (this.#unacknowledged.has(id) && this.#unacknowledged.size < maxPacketId) id = nextPacketId(this.#client)
    return id
  }

  #isBacklogged(): boolean {
    return this.#stream.writableNeedDrain && this.#stream.writableLength > this.#maxUnsentBytes / 2
  }

  /** Confirms a QoS 1 packet that gets no reply. */
  confirm(packetId: number): void {
    if (this.#isOpen()) this.#write(PublishPacket.confirmation(packetId))
  }

  #write(bytes: Uint8Array): void {
    this.#writes.write(this.#stream, bytes, this.device.projectId, this.device.deviceId)
  }

  /**
   * Whether the device still gets something. A write to a socket that the cloud is ending
   * would cut it, and the last message could be lost.
   */
  #isOpen(): boolean {
    return !this.#client.closed && this.#stream.writable
  }
}
