/**
 * Failures of the routes of bulk commands.
 */
import type * as Core from "@device-cloud/core"
import { Code } from "../Code.ts"
import { failure, retryData } from "../Failure.ts"

export const NoSuchBulkCommand = failure(
  "NoSuchBulkCommand",
  Code.noSuchBulkCommand,
  "The project has no such bulk command"
)

export const BulkCommandCancelled = failure(
  "BulkCommandCancelled",
  Code.stateForbids,
  "The bulk command is cancelled already"
)

export const BulkScopeUnfit = failure(
  "BulkScopeUnfit",
  Code.stateForbids,
  "The group or product has no devices, or more than a bulk command takes"
)

export const TooManyBulkCommands = failure(
  "TooManyBulkCommands",
  Code.tooMany,
  "Too many bulk commands of the project run",
  retryData
)

/** Seconds after which a bulk command may have ended. */
const retryAfter = 60

/** From the errors of the domain. */
export const bulkCommandFailures = {
  BulkCommandNotFound: ({ message }: Core.BulkCommandNotFound) => NoSuchBulkCommand.make({ message }),
  BulkCommandCancelled: ({ message }: Core.BulkCommandCancelled) => BulkCommandCancelled.make({ message }),
  BulkScopeUnfit: ({ message }: Core.BulkScopeUnfit) => BulkScopeUnfit.make({ message }),
  TooManyBulkCommands: ({ message }: Core.TooManyBulkCommands) =>
    TooManyBulkCommands.make({ message, data: { retry_after: retryAfter } })
}
