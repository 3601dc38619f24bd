/**
 * Port: a broker in front of the cloud, to which devices connect.
 *
 * The broker's messages and connections come in shares. A share belongs to one node
 * at a time, and each device to one share of connections: its node is the owner of
 * the device. When a node ends, the broker gives its shares to others at once, with
 * everything that the node had not settled.
 */
import type { DeviceName, ProductKey } from "@device-cloud/core"
import { Context, type Effect, Schema, type Scope } from "effect"

/** A message of a device. The broker has acknowledged it already, and keeps it until it is settled. */
export interface BrokerMessage {
  readonly topic: string
  readonly payload: Buffer
  /** When the broker took it, Unix milliseconds; undefined: the broker does not say. */
  readonly takenAt: number | undefined
  /** Whether a node had the message before, and has not settled it. */
  readonly isRedelivered: boolean
  /** The cloud has stored the message, or has no use for it: the broker forgets it. A second call has no effect. */
  readonly settle: () => void
}

/** The connection of a device to the broker. */
export interface BrokerConnection {
  /** Unique among the connections of the broker. */
  readonly id: string
  readonly device: { readonly productKey: ProductKey; readonly deviceName: DeviceName }
  readonly clientId: string
  /** The address of the device. */
  readonly ip: string
  /** Unix milliseconds. */
  readonly since: number
  /** The broker need not tell the next owner of the share about the connection. A second call has no effect. */
  readonly settle: () => void
}

/** What a node does with a share, as long as it has it. */
export interface ShareHandler {
  readonly message: (message: BrokerMessage) => void
  readonly connected: (connection: BrokerConnection) => void
  /** A connection has ended, of this share or of another one. */
  readonly disconnected: (id: string) => void
  /** Waits until the messages so far are settled. */
  readonly drained: Effect.Effect<void>
}

/** The broker cannot be reached, or does not take the message. */
export class BrokerUnreachable extends Schema.TaggedError<BrokerUnreachable>()("BrokerUnreachable", {
  message: Schema.String
}) {}

export class BrokerLink extends Context.Service<BrokerLink, {
  /**
   * Takes part in the work of the broker until the scope closes: calls `open` for
   * each share that the node gets, whose scope closes when the node has it no more.
   * Waits for a broker that is away. At the end, gives the shares to other nodes.
   */
  readonly serve: (
    open: (share: number) => Effect.Effect<ShareHandler, never, Scope.Scope>
  ) => Effect.Effect<void, never, Scope.Scope>
  /** Whether the broker keeps for the cloud what devices say from now on, and tells it who connects. */
  readonly isCarrying: () => boolean
  /** How many nodes shared the work when this one looked last, itself among them. */
  readonly nodes: () => number
  /** Publishes to a device. Returns, once the broker has the message, whether somebody has subscribed to the topic. */
  readonly publish: (topic: string, payload: Buffer) => Effect.Effect<boolean, BrokerUnreachable>
  /** Publishes to a device without waiting; the message is lost while the broker is away. */
  readonly send: (topic: string, payload: Buffer) => void
  /** Ends the connection with this client id, and forgets its session. */
  readonly disconnect: (clientId: string) => Effect.Effect<void, BrokerUnreachable>
}>()("@device-cloud/mqtt-bridge/BrokerLink") {}
