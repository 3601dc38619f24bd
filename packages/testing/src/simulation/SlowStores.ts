/**
 * Stores that take their time, as those over a network do: before a call has an effect
 * and before its caller hears of it, so that a node can stop, and others can come in
 * between. What a call does is still one step.
 */
import { DeviceCloud, NodeBus } from "@device-cloud/core"
import { Context, Effect, Layer } from "effect"
import type { SeededRandom } from "./SeededRandom.ts"

/** Set within a call: what it calls in turn is part of its transaction, and takes no time of its own. */
const WithinCall = Context.Reference<boolean>("@device-cloud/testing/simulation/WithinCall", {
  defaultValue: () => false
})

/** How many calls wait before they begin, and how many after they have ended, as part of all. */
const often = 0.15

/** `longest`: the most that half a call takes, milliseconds. Few take as long. */
export const layer = (
  random: SeededRandom,
  longest: number
): Layer.Layer<DeviceCloud.Stores, never, DeviceCloud.Stores> =>
  Layer.effectContext(Effect.map(Effect.context<DeviceCloud.Stores>(), (stores) => make(stores, random, longest)))

const make = (
  stores: Context.Context<DeviceCloud.Stores>,
  random: SeededRandom,
  longest: number
): Context.Context<DeviceCloud.Stores> => {
  const pause = () => random.chance(often) ? Math.ceil(longest * random.nextDoubleUnsafe() ** 2) : 0

  const slow = (result: unknown): unknown =>
    Effect.isEffect(result)
      ? Effect.flatMap(WithinCall, (isWithin) => {
        if (isWithin) return result
        const before = pause()
        const after = pause()
        const call = Effect.provideService(result, WithinCall, true)
        const begun = before === 0 ? call : Effect.delay(call, before)
        return after === 0 ? begun : Effect.tap(begun, Effect.sleep(after))
      })
      : result

  return DeviceCloud.stores.filter((store) => store !== NodeBus).reduce<Context.Context<never>>(
    (context, store) => {
      const service = Context.get(stores, store as typeof DeviceCloud.stores[0]) as unknown as Record<string, unknown>
      const slowed = Object.fromEntries(
        Object.entries(service).map(([name, member]) => [
          name,
          typeof member === "function" ? (...args: ReadonlyArray<unknown>) => slow(member(...args)) : slow(member)
        ])
      )
      return Context.add(context, store as typeof DeviceCloud.stores[0], slowed as never)
    },
    stores
  ) as Context.Context<DeviceCloud.Stores>
}
