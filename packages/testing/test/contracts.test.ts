import { DeviceId, ReplayStore } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { detached } from "../src/contracts/Detached.ts"

class Replays {
  readonly used = new Set<string>()

  use({ random }: { readonly random: string }): Effect.Effect<"fresh" | "used"> {
    return Effect.sync(() => {
      if (this.used.has(random)) return "used"
      this.used.add(random)
      return "fresh"
    })
  }

  prune(): Effect.Effect<number> {
    return Effect.succeed(0)
  }
}

const use = Effect.flatMap(
  ReplayStore,
  (store) => store.use({ deviceId: DeviceId.make("d"), random: "r", at: 0, until: 1 })
)

it.effect("a store whose methods need it as `this` fails a contract, as it fails in the core", () =>
  Effect.gen(function*() {
    const replays = new Replays()
    const { used } = replays
    const literal = {
      used,
      use(options: { readonly random: string }) {
        return Replays.prototype.use.call(this, options)
      },
      prune: replays.prune
    }
    const free = ReplayStore.of({ use: (options) => replays.use(options), prune: () => replays.prune() })
    const outcome = (store: ReplayStore["Service"]) =>
      Effect.map(
        Effect.exit(Effect.suspend(() => Effect.provide(use, detached(Layer.succeed(ReplayStore, store))))),
        Exit.isSuccess
      )
    assert.deepStrictEqual(yield* Effect.forEach([replays, literal, free], outcome), [false, false, true])
  }))
