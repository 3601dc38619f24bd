/**
 * Failures of the routes of remote configurations.
 */
import type * as Core from "@device-cloud/core"
import { Code } from "../Code.ts"
import { failure, retryData } from "../Failure.ts"

export const NoConfiguration = failure("NoConfiguration", Code.stateForbids, "There is no configuration to push")

export const TooManyPushes = failure("TooManyPushes", Code.tooMany, "Too many pushes wait", retryData)

/** Seconds after which a push may have ended. */
const retryAfter = 60

/** From the errors of the domain. */
export const configurationFailures = {
  ConfigurationNotFound: ({ message }: Core.ConfigurationNotFound) => NoConfiguration.make({ message }),
  TooManyPushes: ({ message }: Core.TooManyPushes) => TooManyPushes.make({ message, data: { retry_after: retryAfter } })
}
