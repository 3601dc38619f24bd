/**
 * Follows the stream of events, and comes back where it was: what the cloud tells the world.
 */
import { type ClientRequest, request } from "node:http"
import { ownerKey } from "../ReferenceServer.ts"
import type { CloudNode } from "./CloudNode.ts"

export interface StatusEvent {
  readonly status: "online" | "offline"
  readonly version: number
  /** Unix milliseconds. */
  readonly time: number
}

/** What the events said of one device. */
export interface Told {
  /** Numbers of reports, in their order. */
  readonly reports: Array<number>
  readonly statuses: Array<StatusEvent>
}

interface EventData {
  readonly device_id: string
  readonly time: number
  readonly status: StatusEvent["status"]
  readonly version: number
  readonly properties: { readonly n?: { readonly value: number } }
}

export class EventFollower {
  readonly byDevice = new Map<string, Told>()
  /** Places at which the stream said that events are missing. */
  gaps = 0
  private readonly node: () => CloudNode
  private lastEventId = ""
  private isOver = false
  private sent: ClientRequest | undefined

  constructor(node: () => CloudNode) {
    this.node = node
  }

  /** Resolves when the stream has begun. */
  start(): Promise<void> {
    return new Promise((resolve) => {
      const follow = async () => {
        while (!this.isOver) {
          await this.follow(resolve)
          await new Promise((next) => setTimeout(next, 200))
        }
      }
      void follow()
    })
  }

  stop(): void {
    this.isOver = true
    this.sent?.destroy()
  }

  /** Resolves when the stream has ended. */
  private follow(onBegun: () => void): Promise<void> {
    return new Promise((resolve) => {
      this.sent = request(`${this.node().address.http}/openapi/v1/events?type=property,status`, {
        headers: {
          authorization: `Bearer ${ownerKey}`,
          ...this.lastEventId === "" ? {} : { "last-event-id": this.lastEventId }
        }
      }, (response) => {
        let rest = ""
        response.setEncoding("utf8").on("data", (chunk: string) => {
          onBegun()
          const blocks = `${rest}${chunk}`.split("\n\n")
          rest = blocks.pop()!
          for (const block of blocks) this.read(block)
        })
      })
      // Comments come every 15 seconds: a node that says nothing for longer stands still.
      this.sent.setTimeout(20_000, () => this.sent?.destroy())
      this.sent.on("error", () => {})
      this.sent.once("close", resolve)
      this.sent.end()
    })
  }

  told(deviceId: string): Told {
    let told = this.byDevice.get(deviceId)
    if (told === undefined) this.byDevice.set(deviceId, told = { reports: [], statuses: [] })
    return told
  }

  private read(block: string): void {
    const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, "m").exec(block)?.[1]
    const type = field("event")
    if (type === "gap") this.gaps++
    if (type !== "property" && type !== "status") return
    this.lastEventId = field("id") ?? this.lastEventId
    const event = JSON.parse(field("data")!) as EventData
    const told = this.told(event.device_id)
    if (type === "status") told.statuses.push({ status: event.status, version: event.version, time: event.time })
    else if (event.properties.n !== undefined) told.reports.push(event.properties.n.value)
  }
}
