/**
 * The connection of a device to a node, as a broker sees it: packets take their time
 * and keep their order, either side may end it, and the network may end it without
 * telling anybody.
 */
import {
  type DeviceIdentity,
  type DeviceReply,
  type DeviceSession,
  DeviceSessions,
  type DisconnectReason,
  type DownlinkMessage,
  Uplink,
  type UplinkMessage
} from "@device-cloud/core"
import { Context, Effect, Exit } from "effect"
import type { CloudNode, Cluster } from "./Cluster.ts"
import type { SeededRandom } from "./SeededRandom.ts"
import type { VirtualTime } from "./VirtualTime.ts"

/** After how many milliseconds without a sign of life a node ends a connection: half more than a keep-alive time of 60 s. */
export const keepAliveMillis = 90_000

/** What the device hears of its connection. */
export interface LinkEnd {
  readonly opened: () => void
  /** The connection has ended, or has not come about. */
  readonly closed: () => void
  /** Call `confirm` to confirm the packet. */
  readonly received: (message: DownlinkMessage, confirm: () => void) => void
}

/** What the world sees of connections. */
export interface LinkObserver {
  /** The node has attached the connection. */
  readonly attached: (link: Link) => void
  /** The node knows that the connection has ended. */
  readonly ended: (link: Link) => void
}

export class Link {
  readonly device: DeviceIdentity
  readonly node: CloudNode
  /** When the node attached the connection, Unix milliseconds. */
  attachedAt: number | undefined
  session: DeviceSession | undefined
  /** Whether the device holds its end. */
  isOpen = true
  /** Whether the node holds its end. */
  isHeld = true
  readonly #time: VirtualTime
  readonly #cluster: Cluster
  readonly #random: SeededRandom
  readonly #end: LinkEnd
  readonly #observer: LinkObserver
  /** When the latest packet arrives, in each direction. */
  #upAt = 0
  #downAt = 0

  constructor(
    device: DeviceIdentity,
    node: CloudNode,
    world: { readonly time: VirtualTime; readonly cluster: Cluster; readonly random: SeededRandom },
    end: LinkEnd,
    observer: LinkObserver
  ) {
    this.device = device
    this.node = node
    this.#time = world.time
    this.#cluster = world.cluster
    this.#random = world.random
    this.#end = end
    this.#observer = observer
    this.#up(() => this.#attach())
  }

  /** Sends a message. `replied` hears the reply when it has come back. `stored` hears it on the node, at once. */
  send(
    message: Omit<UplinkMessage, "receivedAt" | "device"> & { readonly device?: DeviceIdentity },
    stored: (reply: DeviceReply.DeviceReply) => void,
    replied: (reply: DeviceReply.DeviceReply) => void = () => {}
  ): void {
    this.#up(() => {
      const uplink = Context.get(this.node.cloud!, Uplink)
      const receivedAt = this.#time.now
      const later = uplink.offer({ device: this.device, ...message, receivedAt }, (end) => {
        if (Exit.isFailure(end)) return
        stored(end.value)
        this.#down(() => replied(end.value))
      })
      if (later !== undefined) this.#cluster.fork(this.node, later)
    })
  }

  /** Runs it on the node when a packet arrives that is sent now. */
  request<A, E>(effect: (session: DeviceSession) => Effect.Effect<A, E, never>, replied: (value: A) => void): void {
    this.#up(() => {
      const { session } = this
      if (session === undefined) return
      this.#cluster.fork(
        this.node,
        Effect.map(effect(session), (value) => this.#down(() => replied(value)))
      )
    })
  }

  /** The device ends the connection. */
  close(): void {
    if (!this.isOpen) return
    this.#up(() => this.#drop())
    this.isOpen = false
  }

  /** The network ends the connection. `silent`: nobody tells the node. */
  cut(silent: boolean): void {
    if (!this.isOpen) return
    this.isOpen = false
    if (silent) this.node.process.after(keepAliveMillis, () => this.#drop())
    else this.node.process.after(this.#random.between(5, 100), () => this.#drop())
    this.#end.closed()
  }

  /** The node is gone, and its machine says so. */
  reset(): void {
    this.isHeld = false
    this.#time.after(this.#random.between(5, 100), () => this.#closed())
  }

  #closed(): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.#end.closed()
  }

  /** A packet to the node. */
  #up(arrived: () => void): void {
    if (!this.isOpen) return
    this.#upAt = Math.max(this.#time.now + this.#random.int(5, 60), this.#upAt)
    this.node.process.after(this.#upAt - this.#time.now, () => {
      if (this.isHeld) arrived()
    })
  }

  /** A packet to the device. */
  #down(arrived: () => void): void {
    this.#downAt = Math.max(this.#time.now + this.#random.int(5, 60), this.#downAt)
    this.#time.after(this.#downAt - this.#time.now, () => {
      if (this.isOpen) arrived()
    })
  }

  #attach(): void {
    const { cloud } = this.node
    if (cloud === undefined) {
      this.isHeld = false
      return this.#down(() => this.#closed())
    }
    const sessions = Context.get(cloud, DeviceSessions)
    const attach = sessions.attach({
      device: this.device,
      ip: "192.0.2.1",
      deliver: (message, acknowledged) =>
        Effect.sync(() => this.#down(() => this.#end.received(message, () => this.#up(() => acknowledged?.())))),
      backlog: () => undefined,
      close: (reason) => this.#close(reason)
    })
    this.#cluster.fork(
      this.node,
      attach.pipe(
        Effect.flatMap((session) => {
          this.session = session
          if (!this.isHeld) return sessions.detach(session)
          this.attachedAt = this.#time.now
          this.#observer.attached(this)
          this.#down(() => this.#end.opened())
          return Effect.void
        }),
        Effect.catch(() =>
          Effect.sync(() => {
            this.isHeld = false
            this.#down(() => this.#closed())
          })
        )
      )
    )
  }

  /** The node ends the connection. */
  #close(_reason: DisconnectReason): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#down(() => this.#closed())
      return this.#detach()
    })
  }

  /** The node finds that the connection has ended. */
  #drop(): void {
    this.#cluster.fork(this.node, this.#detach())
  }

  #detach(): Effect.Effect<void> {
    if (this.isHeld) {
      this.isHeld = false
      if (this.attachedAt !== undefined) this.#observer.ended(this)
    }
    const { session } = this
    return session === undefined ? Effect.void : Context.get(this.node.cloud!, DeviceSessions).detach(session)
  }
}
