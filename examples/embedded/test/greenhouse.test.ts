import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Cloud, greenhouse } from "../src/greenhouse.ts"

it.effect("the core runs inside a program without a network", () =>
  Effect.gen(function*() {
    assert.deepStrictEqual(yield* greenhouse, {
      nickname: "Tomatoes",
      moisture: 43,
      plugged: "online",
      unplugged: "offline"
    })
  }).pipe(Effect.provide(Cloud)))
