/**
 * Sees what happens in a simulation: writes it down as the history of the run, and
 * tells the invariants, which say what must not have happened.
 */
import type { Command, DeviceCloud, DeviceIdentity, DownlinkMessage, FeedEntry, ProjectId } from "@device-cloud/core"
import { type FeedPlace, feedStart, FeedStore } from "@device-cloud/core"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import type { Link, LinkObserver } from "./Link.ts"
import type { VirtualTime } from "./VirtualTime.ts"

/** Something that must not have happened. */
export interface Violation {
  /** The name of the invariant. */
  readonly invariant: string
  /** Unix milliseconds. */
  readonly at: number
  readonly message: string
}

/** Says what must hold. Each member hears of what happens, at once. */
export interface Invariant {
  /** The cloud has acknowledged a report. */
  readonly acknowledged?: (report: AcknowledgedReport) => void
  /** A node has attached a connection. */
  readonly attached?: (link: Link) => void
  /** A node knows that a connection has ended. */
  readonly ended?: (link: Link) => void
  /** An operator was told that the cloud has a command. */
  readonly issued?: (command: Command) => void
  /** An operator was told that a command is cancelled. */
  readonly cancelled?: (command: Command) => void
  /** A device got a message; `device` undefined: it is for a device that is not there. */
  readonly delivered?: (link: Link, device: DeviceIdentity | undefined, message: DownlinkMessage) => void
  /** The cloud knows that a device has confirmed a message. */
  readonly confirmed?: (device: DeviceIdentity, messageId: number) => void
  /** The cloud has acknowledged the reply to a command. */
  readonly answered?: (device: DeviceIdentity, messageId: number, code: number) => void
  /** A device says which version it runs. */
  readonly informs?: (device: DeviceIdentity, version: string) => void
  /** An operator was told that a campaign runs. */
  readonly campaign?: (projectId: ProjectId, taskId: number) => void
  /** A device was asked for with the key of another project. */
  readonly trespassed?: (device: DeviceIdentity, wasFound: boolean) => void
  /** A device was deleted, or is about to be. */
  readonly deleted?: (device: DeviceIdentity) => void
  /** The feed has an event, which was recorded in the last minute. */
  readonly recorded?: (entry: FeedEntry) => void
  /** A minute is over. */
  readonly minute?: () => void
  /** Everything is quiet again, and nothing more happens. */
  readonly finished?: () => void
}

export interface AcknowledgedReport {
  readonly device: DeviceIdentity
  readonly propertyId: string
  readonly value: number
  /** When it was measured, Unix milliseconds. */
  readonly time: number
}

/** A time in which a node stood still or was dead. Unix milliseconds. */
export interface Disturbance {
  readonly place: number
  readonly from: number
  /** Infinity: it goes on. */
  until: number
}

/** What an invariant may look at. */
export interface Inspection {
  readonly time: VirtualTime
  /** Reads the stores, past everything that nodes do to them. */
  readonly read: <A, E>(effect: Effect.Effect<A, E, DeviceCloud.Stores>) => A
  /** Something must not have happened. */
  readonly violated: (invariant: string, message: string) => void
  /** Whether a node (undefined: any) was disturbed between two times. */
  readonly wasDisturbed: (place: number | undefined, from: number, until: number) => boolean
}

/** Characters of the history that are digested at once: fewer cost more for each line. */
const chunk = 65_536

/** How many events of the feed are read at once. */
const pageSize = 10_000

/** Violations after which nobody wants to hear more. */
const enough = 20

export class Witness implements LinkObserver {
  readonly violations: Array<Violation> = []
  readonly counts = { reports: 0, connections: 0, commands: 0, deliveries: 0, campaigns: 0, events: 0 }
  readonly disturbances: Array<Disturbance> = []
  invariants: ReadonlyArray<Invariant> = []
  readonly #time: VirtualTime
  readonly #digest = createHash("sha256")
  readonly #log: ((line: string) => void) | undefined
  /** Lines that are not digested yet. */
  #lines = ""
  #place: FeedPlace = feedStart

  /** `log` hears each line of the history. */
  constructor(time: VirtualTime, log: ((line: string) => void) | undefined) {
    this.#time = time
    this.#log = log
  }

  /** Of all lines of the history so far. */
  get digest(): string {
    return this.#digest.copy().update(this.#lines).digest("hex")
  }

  note(what: string): void {
    const line = `${this.#time.now} ${what}\n`
    this.#log?.(line)
    this.#lines += line
    if (this.#lines.length < chunk) return
    this.#digest.update(this.#lines)
    this.#lines = ""
  }

  violated(invariant: string, message: string): void {
    if (this.violations.length >= enough) return
    this.note(`violated ${invariant}: ${message}`)
    this.violations.push({ invariant, at: this.#time.now, message })
  }

  /** A node stands still or dies. Returns what says when it works again. */
  disturbed(place: number, what: string): () => void {
    this.note(`node ${place} ${what}`)
    const disturbance: Disturbance = { place, from: this.#time.now, until: Number.POSITIVE_INFINITY }
    this.disturbances.push(disturbance)
    return () => {
      this.note(`node ${place} works again`)
      disturbance.until = this.#time.now
    }
  }

  wasDisturbed(place: number | undefined, from: number, until: number): boolean {
    return this.disturbances.some((each) =>
      (place === undefined || each.place === place) && each.from <= until && each.until >= from
    )
  }

  attached(link: Link): void {
    this.counts.connections++
    this.note(`${link.device.deviceName} is attached to ${link.node.nodeId}, epoch ${link.session?.epoch}`)
    for (const { attached } of this.invariants) attached?.(link)
  }

  ended(link: Link): void {
    this.note(`${link.device.deviceName} has left ${link.node.nodeId}, epoch ${link.session?.epoch}`)
    for (const { ended } of this.invariants) ended?.(link)
  }

  acknowledged(report: AcknowledgedReport): void {
    this.counts.reports++
    this.note(`${report.device.deviceName} ${report.propertyId} ${report.value} of ${report.time} is acknowledged`)
    for (const { acknowledged } of this.invariants) acknowledged?.(report)
  }

  issued(command: Command): void {
    this.counts.commands++
    this.note(`command ${command.messageId} for ${command.deviceId}`)
    for (const { issued } of this.invariants) issued?.(command)
  }

  cancelled(command: Command): void {
    this.note(`command ${command.messageId} is cancelled`)
    for (const { cancelled } of this.invariants) cancelled?.(command)
  }

  delivered(link: Link, device: DeviceIdentity | undefined, message: DownlinkMessage): void {
    this.counts.deliveries++
    this.note(`${device?.deviceName} gets ${message.method} ${message.id}`)
    for (const { delivered } of this.invariants) delivered?.(link, device, message)
  }

  confirmed(device: DeviceIdentity, messageId: number): void {
    for (const { confirmed } of this.invariants) confirmed?.(device, messageId)
  }

  answered(device: DeviceIdentity, messageId: number, code: number): void {
    this.note(`${device.deviceName} has answered ${messageId} with ${code}`)
    for (const { answered } of this.invariants) answered?.(device, messageId, code)
  }

  informs(device: DeviceIdentity, version: string): void {
    for (const { informs } of this.invariants) informs?.(device, version)
  }

  campaign(projectId: ProjectId, taskId: number): void {
    this.counts.campaigns++
    this.note(`campaign ${taskId}`)
    for (const { campaign } of this.invariants) campaign?.(projectId, taskId)
  }

  trespassed(device: DeviceIdentity, wasFound: boolean): void {
    this.note(`trespass on ${device.deviceName}: ${wasFound}`)
    for (const { trespassed } of this.invariants) trespassed?.(device, wasFound)
  }

  deleted(device: DeviceIdentity): void {
    this.note(`${device.deviceName} is deleted`)
    for (const { deleted } of this.invariants) deleted?.(device)
  }

  /** Reads on in the feed, and tells that a minute is over. */
  minute(read: Inspection["read"]): void {
    let hasMore = true
    while (hasMore) {
      const page = read(
        Effect.flatMap(
          Effect.service(FeedStore),
          (feed) => feed.read({ projectId: undefined, after: this.#place, limit: pageSize })
        )
      )
      hasMore = page.hasMore
      this.#place = page.next
      for (const entry of page.entries) {
        this.counts.events++
        this.note(`feed ${JSON.stringify(entry.event)}`)
        for (const { recorded } of this.invariants) recorded?.(entry)
      }
    }
    for (const { minute } of this.invariants) minute?.()
  }

  finished(): void {
    for (const { finished } of this.invariants) finished?.()
  }
}
