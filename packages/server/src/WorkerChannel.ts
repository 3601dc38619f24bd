/**
 * What a worker and its supervisor tell each other, over the channel between their
 * processes.
 */
import { DeviceSessions, NodeBus } from "@device-cloud/core"
import { Console, Effect, Layer, Schema } from "effect"
import cluster from "node:cluster"

/** Where a server can be reached: the line that it prints when it is ready. */
export const Ready = Schema.Struct({
  event: Schema.Literal("ready"),
  http: Schema.String,
  /** Absent without `HTTPS_PORT`. */
  https: Schema.optional(Schema.UndefinedOr(Schema.String)),
  mqtts: Schema.String,
  mqtt: Schema.NullOr(Schema.String)
})
export interface Ready extends Schema.Schema.Type<typeof Ready> {}

/** What a worker tells its supervisor. */
export const FromWorker = Schema.Union([
  /** It hears what it is told. What was sent before is lost: `node:cluster` listens earlier, and drops it. */
  Schema.Struct({ event: Schema.Literal("hears") }),
  /** Its port of operations listens. */
  Schema.Struct({ event: Schema.Literal("operations"), http: Schema.String }),
  /** It serves, as this node of the cloud. */
  Schema.Struct({ event: Schema.Literal("serves"), nodeId: Schema.String, ready: Ready })
])
export type FromWorker = typeof FromWorker.Type

/** What a supervisor tells its worker. */
const ToWorker = Schema.Union([
  /** The processes of these nodes have ended. */
  Schema.Struct({ event: Schema.Literal("ended"), nodeIds: Schema.Array(Schema.String) }),
  Schema.Struct({ event: Schema.Literal("stop") })
])
export type ToWorker = typeof ToWorker.Type

const isToWorker = Schema.is(ToWorker)

/** Says where the operations of this server are: on standard output, or to the supervisor. */
export const announceOperations = (http: string): Effect.Effect<void> => say({ event: "operations", http })

/** Says that this server is ready: on standard output, or to the supervisor. */
export const announceReady = (ready: Ready): Effect.Effect<void, never, NodeBus> =>
  Effect.flatMap(
    NodeBus,
    ({ nodeId }) => cluster.isWorker ? say({ event: "serves", nodeId, ready }) : Console.log(JSON.stringify(ready))
  )

const say = (message: FromWorker): Effect.Effect<void> =>
  cluster.isWorker ? Effect.sync(() => tellSupervisor(message)) : Console.log(JSON.stringify(message))

const tellSupervisor = (message: FromWorker): void => {
  process.send?.(message)
}

/** In a worker: sets the devices of nodes offline that have ended, while the layer lives. */
export const layerEndedNodes: Layer.Layer<never, never, DeviceSessions> = Layer.effectDiscard(
  Effect.gen(function*() {
    if (!cluster.isWorker) return
    const sessions = yield* DeviceSessions
    const runFork = Effect.runForkWith(yield* Effect.context<never>())
    const heard = (message: unknown) => {
      if (!isToWorker(message) || message.event !== "ended") return
      for (const nodeId of message.nodeIds) runFork(sessions.nodeEnded(nodeId))
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => process.on("message", heard)),
      () => Effect.sync(() => process.off("message", heard))
    )
  })
)

/** In a worker: calls `stop` when the supervisor says so. */
export const onStop = (stop: () => void): void => {
  process.on("message", (message) => {
    if (isToWorker(message) && message.event === "stop") stop()
  })
  tellSupervisor({ event: "hears" })
}
