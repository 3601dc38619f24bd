/**
 * Runs the scene of the cold store once.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect } from "effect"
import { Application, coldStore } from "./coldStore.ts"

coldStore.pipe(
  Effect.flatMap((detail) => Console.log(detail)),
  Effect.provide(Application),
  NodeRuntime.runMain
)
