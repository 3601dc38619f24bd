/**
 * The clock of a cloud on one machine: the time of the system, running by the time
 * that passes (docs/decisions/0093-the-clock-of-the-cloud.md).
 */
import { SteadyClock } from "@device-cloud/core"
import { Clock, Effect, Layer } from "effect"

/**
 * Whatever is built on this layer has a clock that is never set back: it does not
 * notice when the system's clock jumps and is back within a minute, goes ahead with one
 * that stays ahead, and is a tenth slower until it is where one is that stays behind.
 */
export const layer: Layer.Layer<never> = Layer.effect(
  Clock.Clock,
  Effect.suspend(() => SteadyClock.following(passed, ask))
)

/** Milliseconds since the process began. */
const passed = (): number => performance.now()

/** `Date.now()` leaves out what is less than a millisecond. */
const ask = Effect.sync((): SteadyClock.ClockBounds => {
  const least = Date.now() - passed()
  return { least, most: least + 1 }
})
