/**
 * What one message of a device may carry and set off, so that its batch stays
 * small for the devices beside it (docs/decisions/0047-what-one-message-may-cost.md).
 */
import { type DeviceReply, parameterError } from "./DeviceReply.ts"

/** Values of properties and events in one message. */
export const maxValues = 1000

/** Reactions that one message sets off, on all of its devices together. */
export const maxReactions = 100

/** The reply to a message with more than {@link maxValues}. */
export const tooManyValues: DeviceReply = parameterError(
  `params: expected at most ${maxValues} values of properties and events in a message`
)

/** The reply to a message with more than {@link maxReactions}. */
export const tooManyReactions: DeviceReply = parameterError(
  `params: expected at most ${maxReactions} executions of scenes by a message`
)
