/**
 * `npm start`: runs the reference server until SIGTERM or SIGINT.
 */
import "effect/schema/SchemaJITCompiler/enable"
import { IdleCollection } from "@device-cloud/platform-node"
import { NodeRuntime } from "@effect/platform-node"
import { Cause, Effect, Exit, Layer } from "effect"
import { explain } from "./Explanation.ts"
import * as Server from "./Server.ts"
import * as ServerConfig from "./ServerConfig.ts"

/** How long a server may take to stop before the process exits, milliseconds. */
const shutdownLimit = 10_000

const endBy = (signal: NodeJS.Signals) =>
  process.once(signal, () => setTimeout(() => process.exit(1), shutdownLimit).unref())
endBy("SIGTERM")
endBy("SIGINT")

ServerConfig.load.pipe(
  Effect.flatMap((config) => Layer.launch(Layer.merge(Server.layer(config), IdleCollection.layer))),
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
