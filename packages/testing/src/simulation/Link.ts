/**
 * The connection of a device to a node, as a broker sees it: packets take their time
 * and keep their order, either side may end it, and the network may end it without
 * telling anybody.
 */
import {
  DeviceAuthenticator,
  type DeviceIdentity,
  type DeviceReply,
  type DeviceSession,
  DeviceSessions,
  type DownlinkMessage,
  SubDeviceSessions,
  Uplink,
  type UplinkMessage
} from "@device-cloud/core"
import { Context, Effect, Exit, Option } from "effect"
import type { CloudNode, Cluster } from "./Cluster.ts"
import type { SeededRandom } from "./SeededRandom.ts"
import type { VirtualTime } from "./VirtualTime.ts"

/** After how many milliseconds without a sign of life a node ends a connection: half more than a keep-alive time of 60 s. */
export const keepAliveMillis = 90_000

/** The address of all devices. */
const address = "192.0.2.1"

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
  /** The node knows that the device has confirmed a command. */
  readonly confirmed: (device: DeviceIdentity, messageId: number) => void
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
    node.connections.add(this.#reset)
    this.#up(() => this.#attach())
  }

  /** Sends a message. `replied` hears the reply when it has come back. `stored` hears it on the node, at once. */
  send(
    message: Pick<UplinkMessage, "method" | "params">,
    stored: (reply: DeviceReply.DeviceReply) => void,
    replied: () => void
  ): void {
    this.#up(() => this.#offer({ ...message, device: this.device }, stored, replied))
  }

  /** Sends a message of a sub-device; the reply has code 520 if that is not logged in. */
  sendFor(
    subDevice: DeviceIdentity,
    message: Pick<UplinkMessage, "method" | "params">,
    stored: (reply: DeviceReply.DeviceReply) => void,
    replied: () => void
  ): void {
    this.#up(() => {
      const { session } = this
      const carrying = Context.get(this.node.cloud!, SubDeviceSessions)
      if (session === undefined || carrying.carried(session, subDevice) === undefined) {
        this.#cluster.fork(this.node, carrying.refuse(this.device, subDevice))
        return this.#down(replied)
      }
      this.#offer({ ...message, device: subDevice, carrier: this.device }, stored, replied)
    })
  }

  /** Logs sub-devices in or out. */
  requestSession(method: string, params: unknown, replied: (reply: DeviceReply.DeviceReply) => void): void {
    this.#up(() => {
      const answer = Context.get(this.node.cloud!, SubDeviceSessions).answer(
        this.device,
        this.session,
        address,
        method,
        params
      )
      this.#cluster.fork(this.node, Effect.map(answer, (reply) => this.#down(() => replied(reply))))
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
  readonly #reset = (): void => {
    this.#release()
    this.#time.after(this.#random.int(5, 100), () => this.#closed())
  }

  /** The node does not hold its end any more. */
  #release(): void {
    if (!this.isHeld) return
    this.isHeld = false
    this.node.connections.delete(this.#reset)
    if (this.attachedAt !== undefined) this.#observer.ended(this)
  }

  #offer(
    message: Omit<UplinkMessage, "receivedAt">,
    stored: (reply: DeviceReply.DeviceReply) => void,
    replied: () => void
  ): void {
    const uplink = Context.get(this.node.cloud!, Uplink)
    const later = uplink.offer({ ...message, receivedAt: this.#time.now }, (end) => {
      if (Exit.isFailure(end)) return
      stored(end.value)
      this.#down(replied)
    })
    if (later !== undefined) this.#cluster.fork(this.node, later)
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
      this.#release()
      return this.#down(() => this.#closed())
    }
    const sessions = Context.get(cloud, DeviceSessions)
    const attach = sessions.attach({
      device: this.device,
      ip: address,
      deliver: (message, acknowledged) => Effect.sync(() => this.#deliver(message, acknowledged)),
      backlog: () => undefined,
      close: () => this.#close()
    })
    // A disabled device is refused before it is attached.
    const admitted = Effect.flatMap(
      Context.get(cloud, DeviceAuthenticator).admitted(this.device),
      (found) => Option.isSome(found) ? Effect.succeed(found.value) : Effect.fail("refused")
    )
    this.#cluster.fork(
      this.node,
      Effect.andThen(admitted, attach).pipe(
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
            this.#release()
            this.#down(() => this.#closed())
          })
        )
      )
    )
  }

  #deliver(message: DownlinkMessage, acknowledged: (() => void) | undefined): void {
    const confirm = () => {
      acknowledged?.()
      if (acknowledged !== undefined) this.#observer.confirmed(message.subDevice ?? this.device, Number(message.id))
    }
    this.#down(() => this.#end.received(message, () => this.#up(confirm)))
  }

  /** The node ends the connection. */
  #close(): Effect.Effect<void> {
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
    this.#release()
    const { session } = this
    return session === undefined ? Effect.void : Context.get(this.node.cloud!, DeviceSessions).detach(session)
  }
}
