/**
 * Runs a plan: a fleet, its operators and its faults on one virtual clock, with
 * invariants that are checked all along. The same plan gives the same run, byte for byte.
 */
import type { DeviceCloud } from "@device-cloud/core"
import { Cause, type Effect, Exit } from "effect"
import { Cluster, type StoreChange } from "./Cluster.ts"
import * as Fleet from "./Fleet.ts"
import { FleetDevice, type World } from "./FleetDevice.ts"
import * as Stored from "./invariants/Stored.ts"
import type { Plan } from "./Plan.ts"
import type { SeededRandom } from "./SeededRandom.ts"
import { VirtualTime } from "./VirtualTime.ts"
import { type Scene, type Violation, Witness } from "./Witness.ts"

/** What came of a run. */
export interface Outcome {
  /** SHA-256 of the history of the run, hex. */
  readonly digest: string
  /** What must not have happened; at most 20. */
  readonly violations: ReadonlyArray<Violation>
  readonly counts: Witness["counts"]
}

export interface RunOptions {
  /** Hears each line of the history. */
  readonly log?: ((line: string) => void) | undefined
  /** Changes the stores, for example so that they lose writes. */
  readonly stores?: StoreChange | undefined
}

/** A Monday, at midnight. */
const start = Date.UTC(2026, 0, 5)

const minute = 60_000

/** How long everything may become quiet at the end, minutes. */
const quietMinutes = 5

/** Runs the plan to its end, in this turn of the event loop. */
export const run = (plan: Plan, options: RunOptions = {}): Outcome => {
  const time = new VirtualTime(start)
  const witness = new Witness(time, options.log)
  const cluster = new Cluster(time, {
    seed: plan.seed,
    bus: { lost: 0.02, doubled: 0.02, latest: 200 },
    failed: (message) => witness.violated("nothing fails", message),
    stores: options.stores
  })
  const scene: Scene = {
    time,
    read: (effect) => cluster.read(effect),
    violated: (invariant, message) => witness.violated(invariant, message)
  }
  witness.invariants = [Stored.make(scene)]

  for (let place = 0; place < plan.nodes; place++) cluster.start(place)
  time.runUntil(time.now + 1000)
  const fleet = now(time, cluster, Fleet.make(plan))

  const world: World = {
    seed: plan.seed,
    time,
    cluster,
    witness,
    pickNode: (random: SeededRandom) => {
      const alive = cluster.nodes.filter(({ cloud, process }) => cloud !== undefined && !process.isKilled)
      return alive.length === 0 ? undefined : random.pick(alive)
    }
  }
  const devices = plan.devices.map((each) => new FleetDevice(each, fleet.devices.get(each.id)!, world))
  for (const device of devices) device.start()

  const from = time.now
  for (let i = 1; i <= plan.minutes; i++) {
    time.runUntil(from + i * minute)
    witness.minute(scene.read)
  }
  for (const device of devices) device.retire()
  for (let i = 1; i <= quietMinutes; i++) {
    time.runUntil(from + (plan.minutes + i) * minute)
    witness.minute(scene.read)
  }
  witness.finished()
  return { digest: witness.digest, violations: witness.violations, counts: witness.counts }
}

/** Runs an effect on the first node, to its end. */
const now = <A, E>(time: VirtualTime, cluster: Cluster, effect: Effect.Effect<A, E, DeviceCloud.DeviceCloud>): A => {
  const [node] = cluster.nodes
  let exit: Exit.Exit<A, E> | undefined
  node!.process.soon(() =>
    node!.process.fork(effect, node!.cloud!).addObserver((end) => {
      exit = end
    })
  )
  time.runUntil(time.now + 1000)
  if (exit === undefined) throw new Error("The fleet could not be made in time")
  if (Exit.isFailure(exit)) throw Cause.squash(exit.cause)
  return exit.value
}
