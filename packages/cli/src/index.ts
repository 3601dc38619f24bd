/**
 * The command line of Device Cloud, for programs that run it themselves: the
 * program `device-cloud` is `run` with the arguments of its process.
 *
 * ```ts
 * import { run } from "@device-cloud/cli"
 * import * as NodeServices from "@effect/platform-node/NodeServices"
 * import { Effect } from "effect"
 * import { FetchHttpClient } from "effect/http"
 *
 * await Effect.runPromise(
 *   run(["devices", "list"], "1.0.0").pipe(Effect.provide([NodeServices.layer, FetchHttpClient.layer]))
 * )
 * ```
 */
export { CommandFailure, exitCodeOf } from "./CommandFailure.ts"
export { run } from "./CommandLine.ts"
