/**
 * `device-cloud serve`: the reference server.
 */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { env } from "node:process"
import { failure } from "./CommandFailure.ts"

export const serveCommand = Command.make(
  "serve",
  {},
  Effect.fnUntraced(function*() {
    const { run } = yield* Effect.tryPromise({
      try: async () => {
        await import("effect/schema/SchemaJITCompiler/enable")
        return import("@device-cloud/server")
      },
      catch: (cause) =>
        failure(
          (cause as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND"
            ? "The server is a package of its own: npm install @device-cloud/server"
            : String(cause)
        )
    })
    // The server has signals and an end of its own: it begins when this program has ended.
    yield* Effect.sync(() => setImmediate(() => run(env)))
  })
).pipe(
  Command.withDescription(
    "Run the reference server until it is interrupted. Environment variables configure it (docs/operations): STORAGE=memory keeps nothing. Needs the package @device-cloud/server."
  ),
  Command.withShortDescription("Run the reference server")
)
