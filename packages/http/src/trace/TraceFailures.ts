/**
 * Failures of the routes of traces.
 */
import type * as Core from "@device-cloud/core"
import { Code } from "../Code.ts"
import { failure } from "../Failure.ts"

export const TooManyTraces = failure(
  "TooManyTraces",
  Code.stateForbids,
  "As many devices of the project are traced as may be"
)

/** From the errors of the domain. */
export const traceFailures = {
  TooManyTraces: ({ message }: Core.TooManyTraces) => TooManyTraces.make({ message })
}
