/**
 * A device of the fleet: connects, loses its network, comes back, sleeps. A gateway
 * adds its sub-devices and logs them in.
 */
import type { DeviceIdentity, DeviceReply, DownlinkMessage } from "@device-cloud/core"
import { deviceKey, sessionErrorMethod } from "@device-cloud/core"
import { createHmac } from "node:crypto"
import type { CloudNode, Cluster } from "./Cluster.ts"
import { FleetThing, patience } from "./FleetThing.ts"
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

/** Who a device or sub-device is, and its secret. */
export interface Credentials {
  readonly identity: DeviceIdentity
  readonly deviceSecret: string
}

/** How long a sleeper listens, milliseconds. */
const wakeful = 30_000

/** When a gateway tries to log a sub-device in again, milliseconds. */
const loginAgain = 30_000

/** A thing behind a gateway. */
interface SubDevice {
  readonly thing: FleetThing
  readonly credentials: Credentials
  /** Since when the gateway has it logged in, Unix milliseconds. */
  onlineSince: number | undefined
}

export class FleetDevice {
  readonly plan: DevicePlan
  readonly thing: FleetThing
  readonly subDevices: ReadonlyArray<SubDevice>
  readonly #world: World
  readonly #random: SeededRandom
  #link: Link | undefined
  /** Since when the device knows that it is connected, Unix milliseconds. */
  #readySince: number | undefined
  #hasNetwork = true
  #isRetired = false
  #waiting: Timer | undefined
  #retries = 0

  constructor(plan: DevicePlan, own: Credentials, subDevices: ReadonlyArray<Credentials>, world: World) {
    this.plan = plan
    this.#world = world
    this.#random = new SeededRandom(world.seed, "life", plan.id)
    const giveUp = () => this.#giveUp()
    this.thing = new FleetThing(own.identity, world, {
      isReady: () => this.#readySince !== undefined,
      send: (message, stored, replied) => this.#link?.send(message, ({ code }) => stored(code), replied),
      giveUp,
      restart: () => this.#restart()
    })
    this.subDevices = subDevices.map((credentials) => {
      const { identity } = credentials
      const sub: SubDevice = {
        credentials,
        onlineSince: undefined,
        thing: new FleetThing(identity, world, {
          isReady: () => sub.onlineSince !== undefined,
          send: (message, stored, replied) =>
            this.#link?.sendFor(identity, message, ({ code }) => stored(code), replied),
          giveUp,
          restart: () => sub.thing.opened()
        })
      }
      return sub
    })
  }

  /** The connection that the device knows to have, and since when it does, Unix milliseconds. */
  get connection(): { readonly link: Link; readonly since: number } | undefined {
    return this.#link === undefined || this.#readySince === undefined
      ? undefined
      : { link: this.#link, since: this.#readySince }
  }

  /** Begins to live: some time within its first interval. */
  start(): void {
    const { every, profile } = this.plan
    const { time } = this.#world
    if (profile !== "sleeper") time.after(this.#random.between(0, 60_000), () => this.#connect())
    time.after(this.#random.int(0, every) * 1000, () => this.#live())
  }

  /** The network of the device goes. `silent`: the cloud does not notice. */
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
    this.thing.measure()
    for (const { thing } of this.subDevices) thing.measure()
    if (this.plan.profile === "sleeper") this.#connect()
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
    const link = new Link(this.thing.identity, node, { time, cluster, random: this.#random }, {
      opened: () => this.#opened(),
      closed: () => this.#closed(),
      received: (message, confirm) => this.#received(link, message, confirm)
    }, witness)
    this.#link = link
    this.#waiting = time.after(patience, () => this.#giveUp())
  }

  #opened(): void {
    this.#stopWaiting()
    this.#readySince = this.#world.time.now
    this.#retries = 0
    this.thing.opened()
    if (this.subDevices.length > 0) this.#addSubDevices()
    if (this.plan.profile !== "sleeper") return
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

  #giveUp(): void {
    this.#link?.close()
    this.#closed()
  }

  #restart(): void {
    this.#link?.close()
    this.#ended()
    this.#world.time.after(this.#random.int(2000, 10_000), () => this.#connect())
  }

  #ended(): void {
    this.#link = undefined
    this.#readySince = undefined
    this.#stopWaiting()
    this.thing.closed()
    for (const sub of this.subDevices) {
      sub.onlineSince = undefined
      sub.thing.closed()
    }
  }

  #stopWaiting(): void {
    if (this.#waiting !== undefined) this.#waiting.run = undefined
    this.#waiting = undefined
  }

  #received(link: Link, message: DownlinkMessage, confirm: () => void): void {
    if (message.method === sessionErrorMethod) return this.#lost(message)
    const to = message.subDevice
    const thing = to === undefined
      ? this.thing
      : this.subDevices.find(({ thing: { identity } }) => identity.deviceId === to.deviceId)?.thing
    this.#world.witness.delivered(link, thing?.identity, message)
    confirm()
    thing?.received(message)
  }

  #addSubDevices(): void {
    const link = this.#link!
    const proofs = this.subDevices.map(({ credentials }) => this.#proofOf(credentials))
    link.send({ method: "thing.topo.add", params: proofs }, () => {}, () => {
      for (const sub of this.subDevices) this.#login(link, sub)
    })
  }

  #login(link: Link, sub: SubDevice): void {
    if (this.#link !== link || sub.onlineSince !== undefined) return
    link.requestSession("combine.login", this.#proofOf(sub.credentials), ({ code }: DeviceReply.DeviceReply) => {
      if (this.#link !== link) return
      if (code !== 200) return void this.#world.time.after(loginAgain, () => this.#login(link, sub))
      sub.onlineSince = this.#world.time.now
      sub.thing.opened()
    })
  }

  /** The cloud says that a sub-device is not logged in any more. */
  #lost({ params }: DownlinkMessage): void {
    const { data } = params as { readonly data: Pick<DeviceIdentity, "productKey" | "deviceName"> }
    const sub = this.subDevices.find(({ credentials: { identity } }) => deviceKey(identity) === deviceKey(data))
    if (sub === undefined) return
    sub.onlineSince = undefined
    sub.thing.closed()
    const link = this.#link!
    this.#world.time.after(loginAgain, () => this.#login(link, sub))
  }

  #proofOf({ deviceSecret, identity: { deviceName, productKey } }: Credentials) {
    const fields = { clientId: deviceName, deviceName, productKey, timestamp: String(this.#world.time.now) }
    const text = Object.entries(fields).sort(([a], [b]) => a < b ? -1 : 1).flat().join("")
    return { ...fields, signMethod: "hmacSha1", sign: createHmac("sha1", deviceSecret).update(text).digest("hex") }
  }
}
