/**
 * Runs a plan: a fleet, its operators and its faults on one virtual clock, with
 * invariants that are checked all along. The same plan gives the same run, byte for byte.
 */
import type { DeviceCloud } from "@device-cloud/core"
import { Cause, type Effect, Exit } from "effect"
import { Cluster, type StoreChange } from "./Cluster.ts"
import * as Fleet from "./Fleet.ts"
import { FleetDevice, type World } from "./FleetDevice.ts"
import * as Commands from "./invariants/Commands.ts"
import * as Isolation from "./invariants/Isolation.ts"
import * as Presence from "./invariants/Presence.ts"
import * as ScenesFire from "./invariants/ScenesFire.ts"
import * as Stored from "./invariants/Stored.ts"
import * as Upgrades from "./invariants/Upgrades.ts"
import * as Versions from "./invariants/Versions.ts"
import * as Operators from "./Operators.ts"
import type { Fault, Plan } from "./Plan.ts"
import { VirtualTime } from "./VirtualTime.ts"
import { type Inspection, type Violation, Witness } from "./Witness.ts"

/** What came of a run. */
export interface Outcome {
  /** SHA-256 of the history of the run, hex. */
  readonly digest: string
  /** What must not have happened; at most 20. */
  readonly violations: ReadonlyArray<Violation>
  /** How often what has happened. */
  readonly counts: Witness["counts"]
}

export interface RunOptions {
  /** Hears each line of the history. */
  readonly log?: ((line: string) => void) | undefined
  /** Stores in place of others, for example some that lose writes. */
  readonly stores?: StoreChange | undefined
}

/** A Monday, at midnight. */
const start = Date.UTC(2026, 0, 5)

const minute = 60_000

/** How long everything may become quiet at the end, minutes: longer than commands live. */
const quietMinutes = 4

/** Runs the plan to its end, in this turn of the event loop. */
export const run = (plan: Plan, options: RunOptions = {}): Outcome => {
  const time = new VirtualTime(start)
  const witness = new Witness(time, options.log)
  const cluster = new Cluster(time, {
    seed: plan.seed,
    bus: plan.bus,
    slowness: plan.slowness,
    look: plan.look * 1000,
    sweep: plan.sweep * 1000,
    failed: (message) => witness.violated("nothing fails", message),
    stores: options.stores
  })
  for (let place = 0; place < plan.nodes; place++) cluster.start(place)
  time.runUntil(time.now + 1000)
  const fleet = make(time, cluster, Fleet.make(plan))

  const world: World = {
    seed: plan.seed,
    time,
    cluster,
    witness,
    pickNode: (random) => {
      const alive = cluster.nodes.filter(({ cloud, process }) => cloud !== undefined && !process.isKilled)
      return alive.length === 0 ? undefined : random.pick(alive)
    }
  }
  const devices = plan.devices.map((each) => {
    const { own, subDevices } = fleet.devices.get(each.id)!
    return new FleetDevice(each, own, subDevices, world)
  })
  const inspection: Inspection = {
    time,
    read: (effect) => cluster.read(effect),
    violated: (invariant, message) => witness.violated(invariant, message),
    wasDisturbed: (place, from, until) => witness.wasDisturbed(place, from, until)
  }
  witness.invariants = [
    Stored.make(inspection),
    Versions.make(inspection),
    Commands.make(inspection),
    Presence.make(inspection, devices, plan.sweep * 1000),
    Upgrades.make(inspection),
    ScenesFire.make(inspection, fleet, plan),
    Isolation.make(inspection, fleet)
  ]

  for (const device of devices) device.start()
  const carryOut = Operators.make(fleet, world)
  for (const step of plan.steps) time.after(step.at * 1000, () => carryOut(step))
  const breaks = faults(world, devices)
  for (const fault of plan.faults) time.after(fault.at * 1000, () => breaks(fault))

  const from = time.now
  const runTo = (minutes: number) => {
    time.runUntil(from + minutes * minute)
    witness.minute(inspection.read)
  }
  for (let i = 1; i <= plan.minutes; i++) runTo(i)
  // One after the other: what follows from a thousand devices that leave at once is limited.
  devices.forEach((device, i) => void time.after((i / devices.length) * minute, () => device.retire()))
  for (let i = 1; i <= quietMinutes; i++) runTo(plan.minutes + i)
  witness.finished()
  return { digest: witness.digest, violations: witness.violations, counts: witness.counts }
}

/** Returns what lets a fault happen, and pass. */
const faults = ({ cluster, time, witness }: World, devices: ReadonlyArray<FleetDevice>) => {
  const byId = new Map(devices.map((device) => [device.plan.id, device]))
  return (fault: Fault): void => {
    const later = (run: () => void) => void time.after(fault.lasts * 1000, run)
    if (fault.breaks === "network") {
      const device = byId.get(fault.device)
      device?.loseNetwork(fault.silent)
      return later(() => device?.findNetwork())
    }
    if (fault.breaks === "storage") {
      if (cluster.isStorageAway) return
      cluster.isStorageAway = true
      const worksAgain = cluster.nodes.map(({ place }) =>
        witness.disturbed(place, `has no storage for ${fault.lasts} s`)
      )
      return later(() => {
        cluster.isStorageAway = false
        for (const works of worksAgain) works()
      })
    }
    const node = cluster.nodes[fault.node]
    // It has another fault.
    if (node === undefined || !node.process.isRunning) return
    const worksAgain = witness.disturbed(fault.node, `${fault.breaks} for ${fault.lasts} s`)
    if (fault.breaks === "freeze") {
      node.process.freeze()
      return later(() => {
        node.process.thaw()
        worksAgain()
      })
    }
    cluster.kill(node)
    later(() => {
      cluster.start(fault.node)
      worksAgain()
    })
  }
}

/** Runs an effect on the first node, to its end. */
const make = <A, E>(time: VirtualTime, cluster: Cluster, effect: Effect.Effect<A, E, DeviceCloud.DeviceCloud>): A => {
  const node = cluster.nodes[0]!
  const exits: Array<Exit.Exit<A, E>> = []
  node.process.soon(() => node.process.fork(effect, node.cloud!).addObserver((exit) => void exits.push(exit)))
  while (exits.length === 0) time.runUntil(time.now + 1000)
  const [exit] = exits
  if (Exit.isFailure(exit!)) throw Cause.squash(exit.cause)
  return exit!.value
}
