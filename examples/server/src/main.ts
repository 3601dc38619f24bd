/**
 * `npm start`: runs the reference server until SIGTERM or SIGINT.
 */
import "effect/schema/SchemaJITCompiler/enable"
import { IdleCollection } from "@device-cloud/platform-node"
import { NodeRuntime } from "@effect/platform-node"
import { Cause, Effect, Exit, Layer } from "effect"
import cluster from "node:cluster"
import { explain } from "./Explanation.ts"
import * as Server from "./Server.ts"
import * as ServerConfig from "./ServerConfig.ts"
import * as Signals from "./Signals.ts"
import * as Supervisor from "./Supervisor.ts"
import * as WorkerChannel from "./WorkerChannel.ts"

/** How long a server may take to stop before the process exits, milliseconds, beside the time to drain. */
const shutdownMillis = 10_000
let drainMillis = 0

const stop = Signals.install(() => shutdownMillis + drainMillis)
if (cluster.isWorker) WorkerChannel.onStop(stop)

const run = Effect.fnUntraced(function*(config: ServerConfig.ServerConfig) {
  drainMillis = config.drainSeconds * 1000
  if (config.workers > 1 && cluster.isPrimary) return yield* Layer.launch(Supervisor.layer(config))
  return yield* Layer.launch(Layer.merge(Server.layer(config), IdleCollection.layer))
})

ServerConfig.load.pipe(
  Effect.flatMap(run),
  Effect.tapCause((cause) =>
    Cause.hasInterruptsOnly(cause)
      ? Effect.void
      : Effect.sync(() => {
        process.stderr.write(`Device Cloud cannot run. ${explain(Cause.squash(cause))}\n`)
      })
  ),
  NodeRuntime.runMain({
    disableErrorReporting: true,
    teardown: (exit, onExit) => onExit(Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause) ? 0 : 1)
  })
)
