/**
 * The server as the whole of a process.
 */
import { IdleCollection } from "@device-cloud/platform-node"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Effect, Exit, Layer } from "effect"
import cluster from "node:cluster"
import { explain } from "./Explanation.ts"
import * as Server from "./Server.ts"
import { type EnvironmentVariables, ServerConfig } from "./ServerConfig.ts"
import * as Signals from "./Signals.ts"
import * as Supervisor from "./Supervisor.ts"
import * as WorkerChannel from "./WorkerChannel.ts"

/** How long a server may take to stop before the process exits, milliseconds, beside the time to drain. */
const shutdownMillis = 10_000

/**
 * Runs the server until SIGTERM or SIGINT, then exits with code 0. A second signal
 * ends the process at once. If the server cannot run, prints on standard error what
 * to change and exits with code 1.
 *
 * `variables` are those of docs/operations. With `WORKERS` above 1 this process
 * supervises, and each worker is a process that runs `device-cloud-server`.
 *
 * @example
 * import "effect/schema/SchemaJITCompiler/enable"
 * import { run } from "@device-cloud/server"
 *
 * run({ ...process.env, STORAGE: "memory", HTTP_PORT: "0" })
 */
export const run = (variables: EnvironmentVariables): void => {
  let drainMillis = 0
  const stop = Signals.install(() => shutdownMillis + drainMillis)
  if (cluster.isWorker) WorkerChannel.onStop(stop)

  const serve = Effect.fnUntraced(function*(config: ServerConfig) {
    drainMillis = config.drainSeconds * 1000
    if (config.workers > 1 && cluster.isPrimary) return yield* Layer.launch(Supervisor.layer(config, variables))
    return yield* Layer.launch(Layer.merge(Server.layer(config), IdleCollection.layer))
  })

  ServerConfig.fromEnv(variables).pipe(
    Effect.flatMap(serve),
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
}
