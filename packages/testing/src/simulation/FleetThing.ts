/**
 * What lives in a device of the fleet: the device itself, or a sub-device behind a
 * gateway. It measures, obeys commands, follows its shadow and installs firmware.
 */
import {
  type DeviceIdentity,
  type DownlinkMessage,
  type Json,
  upgradeMethod,
  type UplinkMessage
} from "@device-cloud/core"
import { SeededRandom } from "./SeededRandom.ts"
import type { Timer, VirtualTime } from "./VirtualTime.ts"
import type { Witness } from "./Witness.ts"

/** How the thing speaks. */
export interface Voice {
  /** Whether it can speak now. */
  readonly isReady: () => boolean
  /** `stored` runs when the cloud has stored the message, `replied` when the thing knows that. */
  readonly send: (
    message: Pick<UplinkMessage, "method" | "params">,
    stored: (code: number) => void,
    replied: () => void
  ) => void
  /** The cloud does not answer. */
  readonly giveUp: () => void
  /** The device starts anew, for example with other firmware. */
  readonly restart: () => void
}

/** A value that the cloud has not acknowledged yet. */
interface Report {
  readonly propertyId: string
  readonly value: number
  readonly time: number
}

/** How long a thing waits for an answer before it gives its connection up, milliseconds. */
export const patience = 20_000

/** Reports that wait for a connection; of more, the oldest are lost. */
const maxWaiting = 20

/** What the thing does about commands, in parts of all commands. */
const refuses = 0.04
const ignores = 0.03

export class FleetThing {
  readonly identity: DeviceIdentity
  readonly #time: VirtualTime
  readonly #witness: Witness
  readonly #random: SeededRandom
  readonly #voice: Voice
  readonly #reports: Array<Report> = []
  readonly #waiting = new Set<Timer>()
  #sending: Report | undefined
  #version = "1.0.0"
  #target = 0

  constructor(
    identity: DeviceIdentity,
    world: { readonly seed: number; readonly time: VirtualTime; readonly witness: Witness },
    voice: Voice
  ) {
    this.identity = identity
    this.#time = world.time
    this.#witness = world.witness
    this.#random = new SeededRandom(world.seed, "thing", identity.deviceName)
    this.#voice = voice
  }

  /** The thing can speak: it says what it runs, and what it has measured. */
  opened(): void {
    this.#witness.informs(this.identity, this.#version)
    this.#ask("thing.ota.inform", { version: this.#version })
    this.#sendNext()
  }

  /** The thing cannot speak any more. */
  closed(): void {
    for (const timer of this.#waiting) timer.run = undefined
    this.#waiting.clear()
    this.#sending = undefined
  }

  /** Measures a temperature: it has the rhythm of a day, and sometimes something burns. */
  measure(): void {
    const hour = (this.#time.now / 3_600_000) % 24
    const daily = 20 + 3 * Math.sin(((hour - 9) / 24) * 2 * Math.PI)
    const isHot = this.#random.chance(0.03)
    this.#add("temperature", Math.round((daily + this.#random.between(-3, 3) + (isHot ? 15 : 0)) * 10) / 10)
  }

  received({ id, method, params }: DownlinkMessage): void {
    if (method === upgradeMethod) return this.#install((params as { readonly version: string }).version)
    if (method === "thing.shadow") return this.#follow(params as { readonly state: { readonly desired: Params } })
    if (!method.startsWith("thing.service.")) return
    if (this.#random.chance(ignores)) return
    this.#later(this.#random.int(50, 2000), () => {
      const isRefused = this.#random.chance(refuses)
      if (!isRefused && method === "thing.service.property.set") this.#obey((params as Params)["target"])
      const code = isRefused ? 100_001 : 200
      this.#ask(`${method}_reply`, { id, code, data: {} }, () => {
        this.#witness.answered(this.identity, Number(id), code)
      })
    })
  }

  #follow({ state }: { readonly state: { readonly desired: Params } }): void {
    const { target } = state.desired
    if (target !== undefined) this.#later(this.#random.int(50, 1000), () => this.#obey(target))
  }

  #obey(target: Json | undefined): void {
    if (typeof target !== "number") return
    this.#target = target
    this.#add("target", this.#target)
  }

  #install(version: string): void {
    if (version === this.#version) return
    const step = (percent: number) => this.#ask("thing.ota.progress", { step: String(percent), desc: "" })
    this.#later(this.#random.int(1000, 20_000), () => {
      step(30)
      this.#later(this.#random.int(1000, 20_000), () => {
        if (this.#random.chance(0.08)) return step(-1)
        // Some lose their power at the worst moment, and say nothing of it.
        if (this.#random.chance(0.05)) return this.#voice.restart()
        step(100)
        this.#version = version
        this.#voice.restart()
      })
    })
  }

  #add(propertyId: string, value: number): void {
    if (this.#reports.length >= maxWaiting) this.#reports.shift()
    this.#reports.push({ propertyId, value, time: this.#time.now })
    this.#sendNext()
  }

  /** Reports one value after the other, each again until it is acknowledged. */
  #sendNext(): void {
    const [report] = this.#reports
    if (report === undefined || this.#sending !== undefined || !this.#voice.isReady()) return
    this.#sending = report
    const { propertyId, time, value } = report
    this.#ask(
      "thing.event.property.post",
      { [propertyId]: { value, time } },
      (code) => {
        if (code === 200) this.#witness.acknowledged({ device: this.identity, propertyId, value, time })
      },
      () => {
        if (this.#sending !== report) return
        this.#sending = undefined
        if (this.#reports[0] === report) this.#reports.shift()
        this.#sendNext()
      }
    )
  }

  #ask(method: string, params: Json, stored: (code: number) => void = () => {}, replied: () => void = () => {}): void {
    if (!this.#voice.isReady()) return
    const waiting = this.#later(patience, () => this.#voice.giveUp())
    this.#voice.send({ method, params }, stored, () => {
      waiting.run = undefined
      this.#waiting.delete(waiting)
      replied()
    })
  }

  /** Does something later, unless the connection ends before. */
  #later(millis: number, run: () => void): Timer {
    const timer = this.#time.after(millis, () => {
      this.#waiting.delete(timer)
      run()
    })
    this.#waiting.add(timer)
    return timer
  }
}

type Params = Readonly<Record<string, Json>>
