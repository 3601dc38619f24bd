/**
 * Stores that take their time, as those over a network do: before a call has an effect
 * and before its caller hears of it, so that a node can stop, and others can come in
 * between. What a call does is still one step.
 */
import { DeviceCloud, NodeBus } from "@device-cloud/core"
import { Context, Effect } from "effect"
import type { SeededRandom } from "./SeededRandom.ts"

/** Set within a call: what it calls in turn is part of its transaction, and takes no time of its own. */
const WithinCall = Context.Reference<boolean>("@device-cloud/testing/simulation/WithinCall", {
  defaultValue: () => false
})

/** `longest`: the most that half a call takes, milliseconds. Few take as long. */
export const make = (
  stores: Context.Context<DeviceCloud.Stores>,
  random: SeededRandom,
  longest: number
): Context.Context<DeviceCloud.Stores> => {
  const pause = Effect.suspend(() => {
    const millis = Math.floor(longest * random.nextDoubleUnsafe() ** 4)
    return millis === 0 ? Effect.void : Effect.sleep(millis)
  })

  const slow = (result: unknown): unknown =>
    Effect.isEffect(result)
      ? Effect.flatMap(WithinCall, (isWithin) =>
        isWithin
          ? result
          : Effect.andThen(pause, Effect.provideService(result, WithinCall, true)).pipe(Effect.tap(pause)))
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
