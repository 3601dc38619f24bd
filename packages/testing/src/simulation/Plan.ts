/**
 * What is to happen in a simulation. A plan follows from a seed; a part of it can be
 * left out without a change of the others, so that a failing plan can be made smaller.
 */
import type { Faults } from "../LossyNodeBus.ts"
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
    /** 0: the device itself; otherwise which of its sub-devices. */
    readonly sub: number
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
  /** No node reaches the stores. */
  | { readonly at: number; readonly breaks: "storage"; readonly lasts: number }

export interface Plan {
  readonly seed: number
  /** How long devices and operators work. */
  readonly minutes: number
  readonly nodes: number
  /** How long half a call of a store takes at most, milliseconds; 0: no time. */
  readonly slowness: number
  /** Seconds between two looks of a node for what is due; its heartbeats keep the proportion. */
  readonly look: number
  /** Seconds between two sweeps of a node. */
  readonly sweep: number
  /** What becomes of what nodes tell each other. */
  readonly bus: Faults
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
  /** As in `Plan`. Default: 30, and 0 for a large fleet. */
  readonly slowness?: number | undefined
}

/** Projects in a plan. */
export const projects = 2

/** Sub-devices of a gateway, at most. */
const maxSubDevices = 4

const profiles: ReadonlyArray<readonly [Profile, number]> = [
  ["reporter", 0.4],
  ["thermostat", 0.3],
  ["sleeper", 0.2],
  ["gateway", 0.1]
]

/** Seconds between two reports, from and to. */
const paces: Readonly<Record<Profile, readonly [number, number]>> = {
  reporter: [1200, 3600],
  thermostat: [1800, 3600],
  sleeper: [7200, 21_600],
  gateway: [3600, 7200]
}

const profileOf = (random: SeededRandom): Profile => {
  let rest = random.nextDoubleUnsafe()
  for (const [profile, part] of profiles) {
    if (rest < part) return profile
    rest -= part
  }
  return "reporter"
}

/** From a bus as it should be to none at all: what nodes tell each other is a hint. */
const buses: ReadonlyArray<Faults> = [
  { lost: 0, doubled: 0, latest: 0 },
  { lost: 0.02, doubled: 0.02, latest: 200 },
  { lost: 0.3, doubled: 0.2, latest: 2000 },
  { lost: 1, doubled: 0, latest: 0 }
]

/** Devices with which a fleet is large: it is simulated for its size, more than for what a node meets between two steps. */
const large = 1000

/** How many nodes stand still in a day, and how many die. */
const nodeFaultsInADay = 3

/** Seconds that a command may wait. */
const ttls = [0, 20, 60, 120] as const

/** Makes the plan that follows from the seed. The shorter it is, the faster everything goes in it. */
export const make = ({ devices: count, minutes, nodes = 3, seed, slowness }: PlanSize): Plan => {
  const isLarge = count > large
  /** How much faster everything goes than in a day of a real fleet. */
  const haste = Math.min(Math.max(1440 / minutes, 1), 120)
  const devices = Array.from({ length: count }, (_, id): DevicePlan => {
    const random = new SeededRandom(seed, "device", id)
    const profile = profileOf(random)
    const [min, max] = paces[profile]
    return {
      id,
      project: random.int(0, projects - 1),
      profile,
      every: Math.round(random.between(min, max) / haste),
      subDevices: profile === "gateway" ? random.int(1, maxSubDevices) : 0
    }
  })
  /** How many times something happens that happens so often to each device in a day. */
  const times = (perDeviceAndDay: number) => Math.ceil(perDeviceAndDay * count * (minutes / 1440) * haste)
  const seconds = 60 * minutes
  return {
    seed,
    minutes,
    nodes,
    slowness: slowness ?? (isLarge ? 0 : 30),
    look: isLarge ? 5 : 1,
    sweep: isLarge ? 600 : 10,
    bus: new SeededRandom(seed, "bus").pick(buses),
    devices,
    steps: stepsOf(new SeededRandom(seed, "operators"), { devices, seconds, times, haste }),
    faults: faultsOf(new SeededRandom(seed, "faults"), { devices, seconds, times, haste, nodes })
  }
}

interface Extent {
  readonly devices: ReadonlyArray<DevicePlan>
  readonly seconds: number
  readonly times: (perDeviceAndDay: number) => number
  readonly haste: number
}

const inOrder = <A extends { readonly at: number }>(items: ReadonlyArray<A>): ReadonlyArray<A> =>
  items.toSorted((a, b) => a.at - b.at)

const stepsOf = (random: SeededRandom, { devices, haste, seconds, times }: Extent): ReadonlyArray<Step> => {
  const at = () => random.int(1, seconds)
  const many = (count: number, make: (i: number) => Step) => Array.from({ length: count }, (_, i) => make(i))
  return inOrder([
    ...many(times(2 + haste / 4), (): Step => {
      const { id, subDevices } = random.pick(devices)
      return {
        at: at(),
        act: random.pick(["set", "set", "set", "call", "tell", "desire"]),
        device: id,
        sub: random.chance(0.5) ? random.int(0, subDevices) : 0,
        value: random.int(1, 100_000),
        ttl: random.pick(ttls)
      }
    }),
    ...many(
      times(0.02),
      () => ({ at: at(), act: "disable", device: random.pick(devices).id, lasts: random.int(5, 600) })
    ),
    ...many(times(0.01), () => ({ at: at(), act: "delete", device: random.pick(devices).id })),
    ...many(2 + times(0.02), () => ({ at: at(), act: "trespass", device: random.pick(devices).id })),
    ...many(projects, (i) => ({
      at: at(),
      act: "upgrade",
      project: i,
      firmware: i + 1,
      push: random.chance(0.8),
      retries: random.int(0, 2),
      cancelAfter: random.chance(0.3) ? random.int(10, 300) : 0
    }))
  ])
}

const faultsOf = (
  random: SeededRandom,
  { devices, haste, nodes, seconds, times }: Extent & { readonly nodes: number }
): ReadonlyArray<Fault> => {
  const at = () => random.int(1, seconds)
  const many = (count: number, make: () => Fault) => Array.from({ length: count }, make)
  // A few networks flap, most are quiet.
  const flapping = devices.filter(() => random.chance(0.2))
  const nodeFaults = nodes === 1 ? 0 : Math.ceil(nodeFaultsInADay * (seconds / 86_400) * haste)
  const node = () => random.int(0, nodes - 1)
  return inOrder([
    ...many(times(1), () => ({
      at: at(),
      breaks: "network",
      device: random.pick(flapping.length > 0 && random.chance(0.8) ? flapping : devices).id,
      lasts: random.chance(0.7) ? random.int(0, 20) : random.int(20, 600),
      silent: random.chance(0.4)
    })),
    ...many(nodeFaults, () => ({
      at: at(),
      breaks: "freeze",
      node: node(),
      lasts: random.chance(0.5) ? random.int(1, 8) : random.int(8, 40)
    })),
    ...many(
      Math.floor(nodeFaults / 2) + (random.chance(0.5) ? 1 : 0),
      () => ({ at: at(), breaks: "storage", lasts: random.int(1, 20) })
    ),
    ...many(nodeFaults, () => ({ at: at(), breaks: "kill", node: node(), lasts: random.int(2, 40) }))
  ])
}
