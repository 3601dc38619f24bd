/**
 * Failures of the routes of commands.
 */
import type * as Core from "@device-cloud/core"
import { maxWaiting } from "@device-cloud/core"
import { Code } from "../Code.ts"
import { failure, retryData } from "../Failure.ts"

export const NoSuchMessage = failure("NoSuchMessage", Code.noSuchMessage, "The device has no such message")

export const MessageNotQueued = failure(
  "MessageNotQueued",
  Code.stateForbids,
  "The message is on its way already, or has ended"
)

export const ServiceIsSync = failure("ServiceIsSync", Code.operationUnfit, "The service is synchronous")

export const TooManyMessages = failure(
  "TooManyMessages",
  Code.tooMany,
  "Too many messages wait for the device",
  retryData
)

/** Seconds after which a device may have taken one of its commands. */
const retryAfter = 10

/** From the errors of the domain. */
export const commandFailures = {
  CommandNotFound: ({ messageId }: Core.CommandNotFound) =>
    NoSuchMessage.make({ message: `There is no message ${messageId} for this device` }),
  CommandNotQueued: ({ messageId, state }: Core.CommandNotQueued) =>
    MessageNotQueued.make({ message: `Message ${messageId} is ${state}; only a queued one can be cancelled` }),
  ServiceIsSync: ({ serviceId }: Core.ServiceIsSync) =>
    ServiceIsSync.make({ message: `Service ${serviceId} is synchronous; only asynchronous ones are called` }),
  TooManyCommands: ({ deviceId }: Core.TooManyCommands) =>
    TooManyMessages.make({
      message: `Device ${deviceId} has ${maxWaiting} messages that wait; cancel some or let them expire`,
      data: { retry_after: retryAfter }
    })
}
