#!/usr/bin/env node
/**
 * The program `device-cloud`.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { createRequire } from "node:module"
import { Console, Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { CommandFailure, exitCodeOf, failure } from "./CommandFailure.ts"
import { run } from "./CommandLine.ts"

const { version } = createRequire(import.meta.url)("../package.json") as { readonly version: string }

/**
 * Ends when nobody reads any more what is printed, as with `| head -1`, and fails when it cannot be written, as on a
 * full disk. What is printed after that is lost.
 */
const unread = Effect.callback<void, CommandFailure>((resume) => {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on(
      "error",
      (error: NodeJS.ErrnoException) =>
        resume(
          error.code === "EPIPE"
            ? Effect.interrupt
            : Effect.fail(failure(`What is printed cannot be written: ${error.message}`))
        )
    )
  }
})

/** A stream says in the next round of the event loop that it could not write. */
const nextRound = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

Effect.suspend(() => run(process.argv.slice(2), version)).pipe(
  Effect.ensuring(nextRound),
  Effect.raceFirst(unread),
  Effect.tapError((error) => error instanceof CommandFailure ? Console.error(error.message) : Effect.void),
  Effect.provide(Layer.mergeAll(NodeServices.layer, FetchHttpClient.layer)),
  NodeRuntime.runMain({ teardown: (exit, onExit) => onExit(exitCodeOf(exit)) })
)
