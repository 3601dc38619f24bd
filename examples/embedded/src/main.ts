/**
 * Runs the greenhouse once.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect } from "effect"
import { Cloud, greenhouse } from "./greenhouse.ts"

greenhouse.pipe(
  Effect.flatMap(({ moisture, nickname, plugged, unplugged }) =>
    Console.log(`${nickname}: moisture ${moisture} %, ${plugged}; then unplugged: ${unplugged}`)
  ),
  Effect.provide(Cloud),
  NodeRuntime.runMain
)
