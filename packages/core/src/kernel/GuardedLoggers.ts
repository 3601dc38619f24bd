/**
 * The loggers of an application, which may throw: at a value that JSON cannot say, for example.
 */
import { Effect, Layer, Logger } from "effect"

/** The loggers as they are, but for what they throw: whoever logs works on. */
export const layer: Layer.Layer<never> = Layer.effect(
  Logger.CurrentLoggers,
  Effect.map(Logger.CurrentLoggers, (loggers) => new Set([...loggers].map(guarded)))
)

const guarded = (logger: Logger.Logger<unknown, unknown>): Logger.Logger<unknown, void> =>
  Logger.make((options) => {
    try {
      logger.log(options)
    } catch {
      // There is nowhere to say it.
    }
  })
