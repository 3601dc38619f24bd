/**
 * What is to happen in a simulation. A plan follows from a seed; a part of it can be
 * left out without a change of the others, so that a failing plan can be made smaller.
 */
import { SeededRandom } from "./SeededRandom.ts"

/**
 * How a device lives. `reporter`: is connected and reports. `thermostat`: the same,
 * less often at night. `sleeper`: connects, reports, listens for a moment and leaves.
 * `gateway`: speaks for its sub-devices, too.
 */
export type Profile = "reporter" | "thermostat" | "sleeper" | "gateway"

export interface DevicePlan {
  /** Names the device in the plan. */
  readonly id: number
  /** The project that it belongs to. */
  readonly project: number
  readonly profile: Profile
  /** Seconds between two reports. */
  readonly every: number
  /** Sub-devices of a gateway. */
  readonly subDevices: number
}

/** What an operator does. Times are seconds from the start; a device is named by its id. */
export type Step =
  | {
    readonly at: number
    readonly act: "set" | "call" | "tell" | "desire"
    readonly device: number
    readonly value: number
    /** Seconds; of commands. */
    readonly ttl: number
  }
  /** Disables a device for that many seconds. */
  | { readonly at: number; readonly act: "disable"; readonly device: number; readonly lasts: number }
  | { readonly at: number; readonly act: "delete"; readonly device: number }
  /** Upgrades the devices of a project to the firmware of this number. */
  | {
    readonly at: number
    readonly act: "upgrade"
    readonly project: number
    readonly firmware: number
    readonly push: boolean
    readonly retries: number
    /** Cancels the campaign after that many seconds; 0: does not. */
    readonly cancelAfter: number
  }
  /** Asks for a device with the key of another project. */
  | { readonly at: number; readonly act: "trespass"; readonly device: number }

/** What breaks, and for how many seconds. */
export type Fault =
  /** The network of a device. `silent`: the cloud notices nothing until the keep-alive time is over. */
  | {
    readonly at: number
    readonly breaks: "network"
    readonly device: number
    readonly lasts: number
    readonly silent: boolean
  }
  /** A node stands still. */
  | { readonly at: number; readonly breaks: "freeze"; readonly node: number; readonly lasts: number }
  /** A node is killed; another one starts in its place when the time is over. */
  | { readonly at: number; readonly breaks: "kill"; readonly node: number; readonly lasts: number }

export interface Plan {
  readonly seed: number
  /** How long devices and operators work. */
  readonly minutes: number
  readonly nodes: number
  readonly devices: ReadonlyArray<DevicePlan>
  readonly steps: ReadonlyArray<Step>
  readonly faults: ReadonlyArray<Fault>
}

/** How large a plan is. */
export interface PlanSize {
  readonly seed: number
  readonly devices: number
  readonly minutes: number
  /** Default 3. */
  readonly nodes?: number | undefined
}

/** Projects in a plan. */
export const projects = 2

const profiles: ReadonlyArray<readonly [Profile, number]> = [
  ["reporter", 0.4],
  ["thermostat", 0.3],
  ["sleeper", 0.2],
  ["gateway", 0.1]
]

/** Seconds between two reports, from and to. */
const paces: Readonly<Record<Profile, readonly [number, number]>> = {
  reporter: [600, 1800],
  thermostat: [900, 1800],
  sleeper: [3600, 10_800],
  gateway: [1200, 3600]
}

const profileOf = (random: SeededRandom): Profile => {
  let rest = random.nextDoubleUnsafe()
  for (const [profile, part] of profiles) {
    if (rest < part) return profile
    rest -= part
  }
  return "reporter"
}

/** Makes the plan that follows from the seed. The shorter it is, the faster everything goes in it. */
export const make = ({ devices: count, minutes, nodes = 3, seed }: PlanSize): Plan => {
  /** How much faster everything goes than in a day of a real fleet. */
  const haste = Math.min(Math.max(1440 / minutes, 1), 12)
  const devices = Array.from({ length: count }, (_, id): DevicePlan => {
    const random = new SeededRandom(seed, "device", id)
    const profile = profileOf(random)
    const [min, max] = paces[profile]
    return {
      id,
      project: random.int(0, projects - 1),
      profile,
      every: Math.round(random.between(min, max) / haste),
      subDevices: profile === "gateway" ? random.int(1, 4) : 0
    }
  })
  return { seed, minutes, nodes, devices, steps: [], faults: [] }
}
