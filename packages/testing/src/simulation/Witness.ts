/**
 * Sees what happens in a simulation: writes it down as the history of the run, and
 * tells the invariants, which say what must not have happened.
 */
import type { DeviceCloud, DeviceIdentity, FeedEntry } from "@device-cloud/core"
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
  readonly name: string
  /** The cloud has acknowledged a report. */
  readonly acknowledged?: (report: AcknowledgedReport) => void
  readonly attached?: (link: Link) => void
  readonly ended?: (link: Link) => void
  /** The feed has an event, which may have been recorded up to a minute ago. */
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

/** What an invariant may look at. */
export interface Scene {
  readonly time: VirtualTime
  /** Reads the stores, past everything that nodes do to them. */
  readonly read: <A, E>(effect: Effect.Effect<A, E, DeviceCloud.Stores>) => A
  /** Something must not have happened. */
  readonly violated: (invariant: string, message: string) => void
}

/** How many events of the feed are read at once. */
const pageSize = 10_000

/** Violations after which nobody wants to hear more. */
const enough = 20

export class Witness implements LinkObserver {
  readonly violations: Array<Violation> = []
  readonly counts = { reports: 0, connections: 0, events: 0 }
  invariants: ReadonlyArray<Invariant> = []
  readonly #time: VirtualTime
  readonly #digest = createHash("sha256")
  readonly #log: ((line: string) => void) | undefined
  #place: FeedPlace = feedStart

  /** `log` hears each line of the history. */
  constructor(time: VirtualTime, log: ((line: string) => void) | undefined) {
    this.#time = time
    this.#log = log
  }

  /** Of all lines of the history so far. */
  get digest(): string {
    return this.#digest.copy().digest("hex")
  }

  note(what: string): void {
    const line = `${this.#time.now} ${what}\n`
    this.#digest.update(line)
    this.#log?.(line)
  }

  violated(invariant: string, message: string): void {
    if (this.violations.length >= enough) return
    this.note(`violated ${invariant}: ${message}`)
    this.violations.push({ invariant, at: this.#time.now, message })
  }

  connecting({ device, node }: Link): void {
    this.note(`${device.deviceName} connects to ${node.nodeId}`)
  }

  attached(link: Link): void {
    this.counts.connections++
    this.note(`${link.device.deviceName} attached, epoch ${link.session?.epoch}`)
    for (const { attached } of this.invariants) attached?.(link)
  }

  ended(link: Link): void {
    this.note(`${link.device.deviceName} ended, epoch ${link.session?.epoch}`)
    for (const { ended } of this.invariants) ended?.(link)
  }

  acknowledged(device: DeviceIdentity, propertyId: string, value: number, time: number): void {
    this.counts.reports++
    this.note(`${device.deviceName} ${propertyId} ${value} of ${time} acknowledged`)
    for (const { acknowledged } of this.invariants) acknowledged?.({ device, propertyId, value, time })
  }

  /** Reads on in the feed, and tells that a minute is over. */
  minute(read: Scene["read"]): void {
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
