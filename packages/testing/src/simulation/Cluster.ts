/**
 * The nodes of a simulated cloud: each a `DeviceCloud.layer` of its own in a
 * {@link VirtualProcess}, all of them on one storage in memory, which stands for the
 * database. What nodes tell each other goes over a bus that loses, doubles and delays.
 */
import {
  DeviceCloud,
  LookInterval,
  NodeBus,
  type Notice,
  NoticeListeners,
  PresenceTimes,
  Randomness,
  StoreError,
  WebhookClient
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Cause, Context, Effect, Exit, Layer, Logger, References, Scope } from "effect"
import * as Faults from "../Faults.ts"
import * as LossyNodeBus from "../LossyNodeBus.ts"
import { SeededRandom } from "./SeededRandom.ts"
import * as SlowStores from "./SlowStores.ts"
import { VirtualProcess, type VirtualTime } from "./VirtualTime.ts"

/** Stores that take the place of others on all nodes, for example some that lose writes. Each node builds its own. */
export type StoreChange = Layer.Layer<never, never, DeviceCloud.Stores>

export interface ClusterOptions {
  readonly seed: number
  readonly bus: LossyNodeBus.Faults
  /** How long half a call of a store takes at most, milliseconds; 0: no time. */
  readonly slowness: number
  /** Milliseconds between two looks of a node for what is due; its heartbeats keep the proportion. */
  readonly look: number
  /** Milliseconds between two sweeps of a node. */
  readonly sweep: number
  /** What a node logs as an error. */
  readonly failed: (message: string) => void
  readonly stores?: StoreChange | undefined
}

/** A process that is or was a node. */
export interface CloudNode {
  /** Its place among the nodes; the one that starts after its death has the same. */
  readonly place: number
  /** Who it is to the others. */
  readonly nodeId: string
  readonly process: VirtualProcess
  /** Its services; undefined while it starts. */
  cloud: Context.Context<DeviceCloud.DeviceCloud> | undefined
  /** Called when it is killed: its machine ends the connections that are open. */
  readonly connections: Set<() => void>
}

/** Stores whose calls may be part of a transaction of another one: such a call fails as a whole. */
const parts = DeviceCloud.stores
  .map(({ key }) => key.slice(key.lastIndexOf("/") + 1))
  .filter((name) => !["UplinkStore", "FeedStore", "NodeBus"].includes(name)) as ReadonlyArray<Faults.Target>

/** When a node that could not start is started again, milliseconds. */
const restartAfter = 2000

/** While the stores are away, calls fail. Some transactions that were on their way have happened all the same. */
const outage = (isAway: () => boolean): ReadonlyArray<Faults.Fault> => {
  const transactions: ReadonlyArray<Faults.Target> = ["UplinkStore.commit", "FeedStore.commit"]
  return [
    { on: transactions, does: "fail", probability: 0.8, calls: isAway },
    { on: transactions, does: "loseAnswer", calls: isAway },
    { on: parts, does: "fail", calls: isAway }
  ]
}

export class Cluster {
  /** The stores as they are, for whoever checks them. */
  readonly stores: Context.Context<DeviceCloud.Stores>
  readonly nodes: Array<CloudNode> = []
  /** Whether nodes cannot reach the stores. */
  isStorageAway = false
  readonly #time: VirtualTime
  readonly #options: ClusterOptions
  readonly #reading: <A, E>(effect: Effect.Effect<A, E, DeviceCloud.Stores>) => A
  /** What each node hears, by its id. */
  readonly #heard = new Map<string, (notice: Notice) => void>()
  #started = 0

  constructor(time: VirtualTime, options: ClusterOptions) {
    this.#time = time
    this.#options = options
    const database = new VirtualProcess(time, new SeededRandom(options.seed, "database"))
    let stores: Context.Context<DeviceCloud.Stores> | undefined
    this.#run(database, Layer.build(StorageMemory.layer), (exit) => {
      if (Exit.isSuccess(exit)) stores = exit.value
    })
    time.runUntil(time.now)
    this.stores = stores!
    this.#reading = Effect.runSyncWith(Context.merge(this.stores, database.context))
  }

  /** Reads a store, at once. */
  read<A, E>(effect: Effect.Effect<A, E, DeviceCloud.Stores>): A {
    return this.#reading(effect)
  }

  /** Starts a node at a place. */
  start(place: number): CloudNode {
    const nodeId = `node-${place}-${++this.#started}`
    const random = new SeededRandom(this.#options.seed, nodeId)
    const process = new VirtualProcess(this.#time, random)
    const node: CloudNode = { place, nodeId, process, cloud: undefined, connections: new Set() }
    this.nodes[place] = node
    process.soon(() => {
      const built = Effect.tap(Layer.build(this.#layerOf(node, random)), (cloud) =>
        Effect.sync(() => {
          const ofProcess = Context.merge(process.context, this.#logging(nodeId))
          node.cloud = Context.merge(cloud, ofProcess)
        }))
      this.#run(process, built, (exit) => {
        if (Exit.isSuccess(exit)) return
        if (!(Cause.squash(exit.cause) instanceof StoreError)) {
          return this.#options.failed(`${nodeId} did not start: ${Cause.pretty(exit.cause)}`)
        }
        // Without its storage a server ends, and its supervisor starts it anew.
        this.kill(node)
        this.#time.after(restartAfter, () => this.start(place))
      })
    })
    return node
  }

  /** Ends a node as a lost machine ends: nothing of it runs any more. */
  kill(node: CloudNode): void {
    node.process.kill()
    this.#heard.delete(node.nodeId)
    for (const end of node.connections) end()
  }

  /** Runs an effect on a node. */
  fork<A, E>(node: CloudNode, effect: Effect.Effect<A, E, DeviceCloud.DeviceCloud>): void {
    if (node.cloud !== undefined) Effect.runForkWith(node.cloud)(effect)
  }

  #layerOf(node: CloudNode, random: SeededRandom): Layer.Layer<DeviceCloud.DeviceCloud, unknown> {
    const { bus, look, seed, slowness, stores = Layer.empty, sweep } = this.#options
    const faults = Faults.layer({ seed: `${seed} ${node.nodeId}`, faults: outage(() => this.isStorageAway) })
    const Stores: Layer.Layer<DeviceCloud.Stores> =
      (slowness === 0 ? faults : SlowStores.layer(random, slowness).pipe(Layer.provide(faults))).pipe(
        Layer.provide(Layer.provideMerge(Layer.fresh(stores), Layer.succeedContext(this.stores)))
      )
    return Layer.fresh(DeviceCloud.layer).pipe(
      Layer.provide(LossyNodeBus.layer(() => bus)),
      Layer.provide(Layer.succeed(NodeBus, this.#busOf(node))),
      Layer.provide(Stores),
      Layer.provide(Layer.mergeAll(
        Layer.succeed(Randomness, random),
        Layer.succeed(LookInterval, look),
        Layer.succeed(PresenceTimes, { beat: 2 * look, gap: 5 * look, silence: 9 * look, sweep }),
        // No webhook leaves a simulation: each is taken.
        Layer.succeed(WebhookClient, {
          refuse: () => undefined,
          send: () => Effect.succeed({ status: 200, body: "" })
        })
      )),
      Layer.provide(PlatformNode.layer),
      Layer.provide(Layer.succeedContext(this.#logging(node.nodeId)))
    )
  }

  #busOf({ nodeId, process }: CloudNode): NodeBus["Service"] {
    const listeners = new NoticeListeners()
    this.#heard.set(nodeId, (notice) => process.soon(() => listeners.hear(notice)))
    return NodeBus.of({
      nodeId,
      publish: (notices, to) =>
        Effect.sync(() => {
          for (const [id, hear] of this.#heard) {
            if (to === undefined || to === id) notices.forEach(hear)
          }
        }),
      listen: listeners.listen
    })
  }

  /** What a node logs as an error is a failure of the simulation. */
  #logging(nodeId: string): Context.Context<never> {
    const logger = Logger.make<unknown, void>(({ cause, logLevel, message }) => {
      if (logLevel === "Error" || logLevel === "Fatal") {
        const reasons = cause.reasons.length === 0 ? "" : `: ${Cause.pretty(cause)}`
        this.#options.failed(`${nodeId} logs: ${[message].flat().join(" ")}${reasons}`)
      }
    })
    return Context.make(Logger.CurrentLoggers, new Set([logger])).pipe(
      Context.add(References.MinimumLogLevel, "Error")
    ) as Context.Context<never>
  }

  /** Runs an effect whose resources stay until the end of the simulation. */
  #run<A, E>(
    process: VirtualProcess,
    effect: Effect.Effect<A, E, Scope.Scope>,
    ended: (exit: Exit.Exit<A, E>) => void
  ): void {
    process.fork(effect, Context.make(Scope.Scope, Scope.makeUnsafe())).addObserver(ended)
  }
}
