/**
 * A device of the fleet: connects, reports, obeys, sleeps, loses its network and comes
 * back. What it does follows from its plan and from what the cloud does to it.
 */
import type { DeviceIdentity, DownlinkMessage } from "@device-cloud/core"
import type { CloudNode, Cluster } from "./Cluster.ts"
import { Link } from "./Link.ts"
import type { DevicePlan } from "./Plan.ts"
import { SeededRandom } from "./SeededRandom.ts"
import type { Timer, VirtualTime } from "./VirtualTime.ts"
import type { Witness } from "./Witness.ts"

/** What a device lives in. */
export interface World {
  readonly seed: number
  readonly time: VirtualTime
  readonly cluster: Cluster
  readonly witness: Witness
  /** The node that a balancer picks for the device; undefined: there is none. */
  readonly pickNode: (random: SeededRandom) => CloudNode | undefined
}

/** How long a device waits for an answer before it gives its connection up, milliseconds. */
const patience = 20_000

/** How long a sleeper listens, milliseconds. */
const wakeful = 30_000

/** A value that the cloud has not acknowledged yet. */
interface Report {
  readonly value: number
  readonly time: number
}

export class FleetDevice {
  readonly plan: DevicePlan
  readonly identity: DeviceIdentity
  readonly #world: World
  readonly #random: SeededRandom
  #link: Link | undefined
  #isReady = false
  #hasNetwork = true
  #isRetired = false
  /** The report that is on its way, until it is acknowledged. */
  #pending: Report | undefined
  #waiting: Timer | undefined
  #retries = 0

  constructor(plan: DevicePlan, identity: DeviceIdentity, world: World) {
    this.plan = plan
    this.identity = identity
    this.#world = world
    this.#random = new SeededRandom(world.seed, "life", plan.id)
  }

  /** The connection that the device holds. */
  get link(): Link | undefined {
    return this.#link
  }

  /** Begins to live: some time within its first interval. */
  start(): void {
    const { every, profile } = this.plan
    const { time } = this.#world
    if (profile !== "sleeper") time.after(this.#random.between(0, 60_000), () => this.#connect())
    time.after(this.#random.int(0, every) * 1000, () => this.#live())
  }

  /** The network of the device goes. */
  loseNetwork(silent: boolean): void {
    this.#hasNetwork = false
    this.#link?.cut(silent)
  }

  findNetwork(): void {
    this.#hasNetwork = true
    if (this.plan.profile !== "sleeper") this.#connect()
  }

  /** Nobody hears of the device again. */
  retire(): void {
    this.#isRetired = true
    this.#link?.close()
    this.#ended()
  }

  #live(): void {
    if (this.#isRetired) return
    if (this.plan.profile === "sleeper") this.#connect()
    else this.#report()
    // On the second, as devices with a schedule do.
    const next = this.#pace() * this.#random.between(0.9, 1.1)
    this.#world.time.after(Math.round(next) * 1000, () => this.#live())
  }

  /** Seconds until the next report. */
  #pace(): number {
    const { every, profile } = this.plan
    const hour = (this.#world.time.now / 3_600_000) % 24
    return profile === "thermostat" && (hour < 6 || hour >= 23) ? 3 * every : every
  }

  #connect(): void {
    if (this.#isRetired || !this.#hasNetwork || this.#link !== undefined) return
    const node = this.#world.pickNode(this.#random)
    if (node === undefined) return this.#again()
    const { cluster, time, witness } = this.#world
    const link = new Link(this.identity, node, { time, cluster, random: this.#random }, {
      opened: () => this.#opened(),
      closed: () => this.#closed(),
      received: (message, confirm) => this.#received(message, confirm)
    }, witness)
    this.#link = link
    witness.connecting(link)
    this.#await()
  }

  #opened(): void {
    this.#stopWaiting()
    this.#isReady = true
    this.#retries = 0
    if (this.#pending !== undefined) this.#send(this.#pending)
    if (this.plan.profile !== "sleeper") return
    this.#report()
    const link = this.#link!
    this.#world.time.after(wakeful, () => {
      if (this.#link !== link) return
      link.close()
      this.#ended()
    })
  }

  #closed(): void {
    this.#ended()
    if (this.plan.profile !== "sleeper") this.#again()
  }

  /** Connects again after a pause that grows. */
  #again(): void {
    const pause = Math.min(1000 * 2 ** this.#retries++, 60_000)
    this.#world.time.after(pause * this.#random.between(0.5, 1.5), () => this.#connect())
  }

  #ended(): void {
    this.#link = undefined
    this.#isReady = false
    this.#stopWaiting()
  }

  /** Gives the connection up unless an answer comes. */
  #await(): void {
    this.#stopWaiting()
    this.#waiting = this.#world.time.after(patience, () => {
      this.#link?.close()
      this.#closed()
    })
  }

  #stopWaiting(): void {
    if (this.#waiting !== undefined) this.#waiting.run = undefined
    this.#waiting = undefined
  }

  #report(): void {
    // A value that nobody could take is overtaken by the next one.
    if (this.#pending !== undefined && this.#isReady) return
    this.#pending = { value: this.#measure(), time: this.#world.time.now }
    if (this.#isReady) this.#send(this.#pending)
  }

  /** A temperature with the rhythm of a day. */
  #measure(): number {
    const hour = (this.#world.time.now / 3_600_000) % 24
    const daily = 20 + 6 * Math.sin(((hour - 9) / 24) * 2 * Math.PI)
    return Math.round((daily + this.#random.between(-5, 5)) * 10) / 10
  }

  #send(report: Report): void {
    const { witness } = this.#world
    const link = this.#link!
    link.send(
      { method: "thing.event.property.post", params: { temperature: report } },
      (reply) => {
        if (reply.code === 200) witness.acknowledged(this.identity, "temperature", report.value, report.time)
      },
      () => {
        if (this.#pending === report) this.#pending = undefined
        this.#stopWaiting()
      }
    )
    this.#await()
  }

  #received(_message: DownlinkMessage, confirm: () => void): void {
    confirm()
  }
}
