/**
 * A device that reports, obeys commands, and remembers all of it: one side of the ledger.
 */
import type { Socket } from "node:net"
import { openDevice, publish } from "../DeviceSocket.ts"
import type { LoadDevice } from "../Load.ts"
import { subscribePacket } from "../MqttPackets.ts"
import type { CloudNode } from "./CloudNode.ts"

/** A connection, and when the cloud had accepted it. Unix milliseconds. */
export interface Connection {
  readonly node: CloudNode
  readonly socket: Socket
  from?: number
  to?: number
}

/** A command that came. */
export interface Receipt {
  readonly messageId: number
  readonly connection: Connection
  /** When it was replied to, Unix milliseconds. */
  readonly at: number
  /** Whether the cloud had acknowledged the reply to an earlier delivery. */
  readonly wasDone: boolean
}

/** Milliseconds. */
const pauses = { reconnect: 100, connack: 10_000 }

export class DrillDevice {
  readonly credentials: LoadDevice
  /** Numbers of the reports that the cloud has acknowledged. */
  readonly acknowledged: Array<number> = []
  readonly receipts: Array<Receipt> = []
  readonly connections: Array<Connection> = []
  /** Commands that came. */
  readonly came = new Set<number>()
  /** Commands whose replies were acknowledged. */
  private readonly done = new Set<number>()
  /** The moment of the latest acknowledged report, Unix milliseconds; of when it was sent. */
  latestAcknowledged = 0
  /** The report that has no answer yet. */
  private outstanding: { readonly n: number; readonly connection: Connection; readonly at: number } | undefined
  private reports = 0
  private packetId = 0
  private waiting = new Map<Connection, Map<number, () => void>>()
  private timer: NodeJS.Timeout | undefined
  private isWanted = false
  private readonly choose: () => CloudNode
  private readonly scheme: "mqtt" | "mqtts"

  /** `choose` names the node to connect to after a connection was lost. */
  constructor(credentials: LoadDevice, choose: () => CloudNode, scheme: "mqtt" | "mqtts" = "mqtt") {
    this.credentials = credentials
    this.choose = choose
    this.scheme = scheme
  }

  get id(): string {
    return this.credentials.deviceId
  }

  /** The newest connection that the cloud has accepted and that is open. */
  get current(): Connection | undefined {
    return this.connections.findLast(({ from, to }) => from !== undefined && to === undefined)
  }

  /** Connections that are open. */
  get open(): ReadonlyArray<Connection> {
    return this.connections.filter(({ from, to }) => from !== undefined && to === undefined)
  }

  /** Connects, beside the connections that are open: the cloud ends those. Comes back when a connection is lost. */
  connect(node: CloudNode = this.choose()): void {
    this.isWanted = true
    const topic = this.credentials.topic.replace("event/property/post", "service/property/set")
    const waiting = new Map<number, () => void>()
    const connection: Connection = {
      node,
      socket: openDevice(this.credentials, {
        mqtt: node.address[this.scheme],
        // A session that is found again gets commands at once.
        cleanSession: false,
        onConnack: (code, socket) => {
          if (code !== 0) return socket.destroy()
          connection.from = Date.now()
          socket.write(subscribePacket(topic, 1))
        },
        onMessage: (topicOf, payload, socket) => {
          if (topicOf !== topic) return
          const { id } = JSON.parse(payload.toString()) as { readonly id: string }
          const messageId = Number(id)
          this.came.add(messageId)
          this.receipts.push({ messageId, connection, at: Date.now(), wasDone: this.done.has(messageId) })
          const reply = JSON.stringify({ id, code: 200, data: {} })
          socket.write(publish(`${topic}_reply`, reply, 1, this.expect(waiting, () => this.done.add(messageId))))
        },
        onPuback: (_socket, packetId) => {
          waiting.get(packetId)?.()
          waiting.delete(packetId)
        },
        onClose: () => {
          const isNewest = this.connections.at(-1) === connection
          if (connection.from === undefined) this.connections.splice(this.connections.indexOf(connection), 1)
          else connection.to = Date.now()
          this.waiting.delete(connection)
          if (this.outstanding?.connection === connection) this.outstanding = undefined
          if (this.isWanted && isNewest) {
            setTimeout(() => this.isWanted && this.current === undefined && this.connect(), pauses.reconnect)
          }
        }
      })
    }
    this.waiting.set(connection, waiting)
    this.connections.push(connection)
    setTimeout(() => {
      if (connection.from === undefined) connection.socket.destroy()
    }, pauses.connack).unref()
  }

  /** Waits until the cloud has accepted the newest connection. */
  async untilConnected(): Promise<void> {
    while (this.connections.at(-1)?.from === undefined || this.current === undefined) {
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }

  /** Reports 1, 2, 3 … at QoS 1, each when the one before was acknowledged or its connection is lost. */
  startReports(interval: number): void {
    this.timer = setInterval(() => {
      const connection = this.current
      if (connection === undefined || this.outstanding !== undefined) return
      const n = ++this.reports
      const at = Date.now()
      this.outstanding = { n, connection, at }
      const id = this.expect(this.waiting.get(connection)!, () => {
        this.acknowledged.push(n)
        this.latestAcknowledged = at
        this.outstanding = undefined
      })
      const body = JSON.stringify({ id: String(n), version: "1.0", params: { n } })
      connection.socket.write(publish(this.credentials.topic, body, 1, id))
    }, interval)
  }

  stopReports(): void {
    clearInterval(this.timer)
  }

  /** Whether an answer to a report is missing. */
  get isReporting(): boolean {
    return this.outstanding !== undefined
  }

  /** Milliseconds that the report on its way has waited for; 0 without one. */
  get silence(): number {
    return this.outstanding === undefined ? 0 : Date.now() - this.outstanding.at
  }

  /** Leaves: without a word, as when its power is cut. */
  leave(): void {
    this.isWanted = false
    for (const { socket } of this.connections) socket.destroy()
  }

  private expect(waiting: Map<number, () => void>, onAcknowledged: () => void): number {
    this.packetId = this.packetId % 65_535 + 1
    waiting.set(this.packetId, onAcknowledged)
    return this.packetId
  }
}
