/**
 * Failures of the routes of commands.
 */
import type * as Core from "@device-cloud/core"
import { Schema } from "effect"
import { Code } from "../Code.ts"
import { failure, retryData } from "../Failure.ts"

export const NoSuchMessage = failure("NoSuchMessage", Code.noSuchMessage, "The device has no such message")

export const MessageNotQueued = failure(
  "MessageNotQueued",
  Code.stateForbids,
  "The message is on its way already, or has ended"
)

export const DeviceNotConnected = failure(
  "DeviceNotConnected",
  Code.deviceNotConnected,
  "The device is not connected, so that nobody can wait for its reply"
)

export const NoReply = failure("NoReply", Code.noReply, "The device has not replied in time; the command goes on", {
  message_id: Schema.String
})

export const TooManyMessages = failure(
  "TooManyMessages",
  Code.tooMany,
  "Too many messages wait for the device",
  retryData
)

export const TooManyBroadcasts = failure(
  "TooManyBroadcasts",
  Code.tooMany,
  "The product has had a broadcast within a second",
  retryData
)

/** Seconds after which a device may have taken one of its commands. */
const retryAfter = 10

/** From the errors of the domain. */
export const commandFailures = {
  CommandNotFound: ({ message }: Core.CommandNotFound) => NoSuchMessage.make({ message }),
  CommandNotQueued: ({ message }: Core.CommandNotQueued) => MessageNotQueued.make({ message }),
  DeviceNotConnected: ({ message }: Core.DeviceNotConnected) => DeviceNotConnected.make({ message }),
  NoReply: ({ message, messageId }: Core.NoReply) =>
    NoReply.make({
      message,
      data: { message_id: messageId }
    }),
  TooManyBroadcasts: ({ message }: Core.TooManyBroadcasts) =>
    TooManyBroadcasts.make({ message, data: { retry_after: 1 } }),
  TooManyCommands: ({ message }: Core.TooManyCommands) =>
    TooManyMessages.make({
      message,
      data: { retry_after: retryAfter }
    })
}
