/**
 * Logs on standard error: one line for each entry, whatever is in it, so that no
 * text from outside becomes a line of its own.
 */
import { Layer, Logger, References } from "effect"
import type { ServerConfig } from "./ServerConfig.ts"

export const layer = ({ logLevel }: ServerConfig) =>
  Layer.merge(
    Layer.succeed(References.MinimumLogLevel, logLevel),
    Logger.layer([Logger.withConsoleError(Logger.formatLogFmt), Logger.tracerLogger])
  )
